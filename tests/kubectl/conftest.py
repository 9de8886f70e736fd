"""Both servers, and all scenarios played on them at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from kubectl.comparing import Outcome, compare
from kubectl.player import Play, Player, Server
from kubectl.scenario import Scenario
from kubectl.site import Site

from steersman import Client
from steersman.aio import Supervisor, name_suffix
from steersman.apiserver import ApiServer, serve
from steersman.kinds.core_v1 import Namespace
from steersman.objects import ObjectMeta
from steersman.testing import Engine
from steersman.testing.environment import Environment
from steersman.testing.existing import find_kubectl

_PLAYED = pytest.StashKey[list[Outcome]]()
#: kubectl processes at a time: more of them than processors only wait.
AT_ONCE = 2 + (os.cpu_count() or 2)


@asynccontextmanager
async def embedded(folder: Path) -> AsyncGenerator[tuple[Path, str]]:
    """The embedded server on a port, put together as ``steersman serve`` does: its kubeconfig, and its address."""
    async with serve(ApiServer(resources=[Site], authorizer="rbac"), folder=folder) as served:
        yield served.kubeconfig, served.url


@pytest.fixture(scope="session")
async def servers(tmp_path_factory) -> AsyncGenerator[tuple[Server, Server]]:
    """An engine, and the embedded server: the same kinds on both, and no others, which kubectl would find as well."""
    folder = tmp_path_factory.mktemp("kubectl")
    programs = find_kubectl(Environment.read()).parent

    def server(name: str, kubeconfig: Path, url: str) -> Server:
        home = folder / name
        home.mkdir()
        return Server(name, kubeconfig, url, home, programs)

    async with AsyncExitStack() as exits:
        engine = await exits.enter_async_context(Engine.start())
        client = await exits.enter_async_context(engine.client(field_manager="tests"))
        await client.install(Site)
        kubeconfig, url = await exits.enter_async_context(embedded(folder / "served"))
        yield server("engine", engine.kubeconfig, engine.url), server("embedded", kubeconfig, url)


@pytest.fixture(scope="session")
async def outcomes(servers, request, tmp_path_factory) -> AsyncGenerator[dict[str, asyncio.Future[Outcome]]]:
    """What comes of all scenarios that this run selected, played many at a time; each test waits for its own."""
    places = asyncio.Semaphore(AT_ONCE)
    suffix = name_suffix()
    request.config.stash[_PLAYED] = played = list[Outcome]()

    async def play(server: Server, client: Client, scenario: Scenario) -> Play:
        namespace = f"{scenario.name.replace('/', '-')}-{suffix}"
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        folder = tmp_path_factory.mktemp(f"{server.name}-{namespace}")
        return await Player(server, namespace, folder, places).play(scenario)

    async def one(scenario: Scenario, outcome: asyncio.Future[Outcome]) -> None:
        try:
            plays = [play(server, client, scenario) for server, client in zip(servers, clients, strict=True)]
            found = compare(scenario, *await asyncio.gather(*plays))
            played.append(found)
            outcome.set_result(found)
        except Exception as error:  # noqa: BLE001 - the test of this scenario raises it
            outcome.set_exception(error)

    async with AsyncExitStack() as exits:
        clients = [
            await exits.enter_async_context(Client.connect(kubeconfig=server.kubeconfig, field_manager="tests"))
            for server in servers
        ]
        tasks = await exits.enter_async_context(Supervisor())
        waited_for = {
            scenario: asyncio.get_running_loop().create_future() for scenario in _chosen(request.session.items)
        }
        for scenario, outcome in waited_for.items():
            tasks.start(one(scenario, outcome), name=f"play {scenario.name}")
        yield {scenario.name: outcome for scenario, outcome in waited_for.items()}


def _chosen(items: list[pytest.Item]) -> list[Scenario]:
    chosen: dict[str, Scenario] = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        one = callspec.params.get("scenario") if callspec is not None else None
        if isinstance(one, Scenario):
            chosen[one.name] = one
    return list(chosen.values())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    played = config.stash.get(_PLAYED, None)
    if played is not None:
        lines, differing = sum(each.lines for each in played), sum(len(each.reports) for each in played)
        terminalreporter.write_line(
            f"kubectl on the embedded server and on the engine: {len(played)} scenarios, {lines} lines, "
            f"{differing} of them with differences"
        )
