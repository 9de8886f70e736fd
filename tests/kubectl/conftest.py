"""Both servers, and all scenarios played on them at once."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from kubectl.comparing import Outcome, compare
from kubectl.player import Play, Player, Server
from kubectl.scenario import MANIFESTS, Scenario

from samples.workers import summarize
from steersman import Client
from steersman.aio import Supervisor, name_suffix
from steersman.controlplane import CONTROLLERS, ControlPlane
from steersman.errors import NotFound
from steersman.kinds.core_v1 import ConfigMap, Namespace, ServiceAccount
from steersman.objects import ObjectMeta
from steersman.testing import Engine
from steersman.testing.engine.environment import Environment
from steersman.testing.engine.errors import KubectlError
from steersman.testing.engine.existing_cluster import find_kubectl
from steersman.testing.engine.kubectl import run_kubectl

#: kubectl processes at a time: more of them than processors only wait.
AT_ONCE = 2 + (os.cpu_count() or 2)
#: Scenarios at a time: enough that there is work while some only wait, and few enough that the first are soon done.
SCENARIOS_AT_ONCE = 4 * AT_ONCE
#: Seconds that a server may take until it serves new kinds, and fills a new namespace.
PATIENCE = 60.0


@asynccontextmanager
async def reference() -> AsyncGenerator[tuple[Path, str]]:
    """An engine with the controllers that the control plane has as well: its kubeconfig, and its address."""
    flags = {"kube-controller-manager": [f"--controllers={','.join(CONTROLLERS)}"]}
    async with Engine.start(controller_manager=True, flags=flags) as engine:
        await install_sites(engine.kubeconfig)
        # the garbage collector looks for new kinds when it starts, else every half minute
        await engine.controller_manager.restart()
        yield engine.kubeconfig, engine.url


@asynccontextmanager
async def embedded(folder: Path) -> AsyncGenerator[tuple[Path, str]]:
    """The control plane on a port, put together as ``steersman serve`` does: its kubeconfig, and its address."""
    async with ControlPlane(port=0, folder=folder, authorizer="rbac") as plane:
        assert plane.kubeconfig is not None
        assert plane.url is not None
        await install_sites(plane.kubeconfig)
        yield plane.kubeconfig, plane.url


async def install_sites(kubeconfig: Path) -> None:
    """Have sites served, and explained, by the server."""
    kubectl = find_kubectl(Environment.read())
    await run_kubectl(kubectl, ["apply", f"--filename={MANIFESTS / 'site-crd.yaml'}"], kubeconfig=kubeconfig)
    name = "crd/sites.kubectl.test.steersman.dev"
    await run_kubectl(kubectl, ["wait", "--for=condition=Established", name, "--timeout=60s"], kubeconfig=kubeconfig)
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await run_kubectl(kubectl, ["explain", "sites"], kubeconfig=kubeconfig)
            except KubectlError:
                await asyncio.sleep(0.1)
            else:
                return


@pytest.fixture(scope="package")
async def servers(tmp_path_factory) -> AsyncGenerator[tuple[Server, Server]]:
    """An engine, and the embedded server: the same kinds on both, and no others, which kubectl would find as well."""
    folder = tmp_path_factory.mktemp("kubectl")
    programs = find_kubectl(Environment.read()).parent

    def server(name: str, kubeconfig: Path, url: str) -> Server:
        home = folder / name
        home.mkdir()
        return Server(name, kubeconfig, url, home, programs)

    async with reference() as engine, embedded(folder / "served") as subject:
        yield server("engine", *engine), server("embedded", *subject)


async def ready_namespace(client: Client, name: str) -> None:
    """Make a namespace, and wait for what controllers put into each."""
    await client.create(Namespace(metadata=ObjectMeta(name=name)))
    async with asyncio.timeout(PATIENCE):
        for kind, key in ((ServiceAccount, "default"), (ConfigMap, "kube-root-ca.crt")):
            while True:
                try:
                    await client.get(kind, (name, key))
                    break
                except NotFound:
                    await asyncio.sleep(0.05)


@pytest.fixture(scope="package")
async def outcomes(servers, request, tmp_path_factory) -> AsyncGenerator[dict[str, asyncio.Future[Outcome]]]:
    """What comes of all scenarios that this run selected, played many at a time; each test waits for its own."""
    places, stages = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(SCENARIOS_AT_ONCE)
    suffix = name_suffix()
    played: list[Outcome] = []

    async def play(server: Server, client: Client, scenario: Scenario) -> Play:
        namespace = f"{re.sub('[/_]', '-', scenario.name)}-{suffix}"
        await ready_namespace(client, namespace)
        folder = tmp_path_factory.mktemp(f"{server.name}-{namespace}")
        return await Player(server, namespace, folder, places).play(scenario)

    async def one(scenario: Scenario, outcome: asyncio.Future[Outcome]) -> None:
        try:
            async with stages:
                plays = [play(server, client, scenario) for server, client in zip(servers, clients, strict=True)]
                found = compare(scenario, *await asyncio.gather(*plays))
            played.append(found)
            outcome.set_result(found)
        except Exception as error:  # noqa: BLE001 - the test of this scenario raises it
            outcome.set_exception(error)

    async def play_all(waited_for: dict[Scenario, asyncio.Future[Outcome]]) -> None:
        # new definitions show in the others' output, and the engine's garbage collector rests while it learns of them
        for installing in (False, True):
            chosen = [each for each in waited_for if each.installs is installing]
            await asyncio.gather(*(one(scenario, waited_for[scenario]) for scenario in chosen))

    async with AsyncExitStack() as exits:
        clients = [
            await exits.enter_async_context(Client.connect(kubeconfig=server.kubeconfig, field_manager="tests"))
            for server in servers
        ]
        tasks = await exits.enter_async_context(Supervisor())
        waited_for = {
            scenario: asyncio.get_running_loop().create_future() for scenario in _chosen(request.session.items)
        }
        tasks.start(play_all(waited_for), name="play")
        yield {scenario.name: outcome for scenario, outcome in waited_for.items()}
    lines, differing = sum(each.lines for each in played), sum(len(each.reports) for each in played)
    summarize(
        request.config,
        f"kubectl on the embedded server and on the engine: {len(played)} scenarios, {lines} lines, "
        f"{differing} of them with differences",
    )


def _chosen(items: list[pytest.Item]) -> list[Scenario]:
    chosen: dict[str, Scenario] = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        one = callspec.params.get("scenario") if callspec is not None else None
        if isinstance(one, Scenario):
            chosen[one.name] = one
    return list(chosen.values())
