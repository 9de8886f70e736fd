"""Kubernetes' own controllers work here as they do there: the real kube-controller-manager on the embedded server and on
the engine, the same work for both, and the same state at every checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from types import ModuleType

import pytest
from controller_manager import housekeeping, workloads
from controller_manager.servers import Server, embedded_server, engine_server
from controller_manager.stage import Meeting, Scenario, Stage, play

from samples import portions
from steersman.aio import Supervisor, name_suffix


def _scenarios(module: ModuleType) -> dict[str, Scenario]:
    """The public functions that a module defines itself."""
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    return {name: value for name, value in own.items() if asyncio.iscoroutinefunction(value) and name[0] != "_"}


SCENARIOS = _scenarios(workloads) | _scenarios(housekeeping)


@pytest.fixture(scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[Server, Server]]:
    """Both servers, each with its controller manager."""
    async with AsyncExitStack() as exits:
        folder: Path = tmp_path_factory.mktemp("controller-manager")
        engine = await exits.enter_async_context(engine_server())
        embedded = await exits.enter_async_context(embedded_server(folder))
        yield engine, embedded


@pytest.fixture(scope="module")
async def played(
    servers: tuple[Server, Server], request: pytest.FixtureRequest
) -> AsyncGenerator[dict[str, asyncio.Task[Meeting]]]:
    """All scenarios that this run selected, under way at once, each in a namespace of its own."""
    suffix = name_suffix()
    chosen = {item.callspec.params["name"] for item in request.session.items if _is_ours(item)}

    async def one(name: str) -> Meeting:
        meeting = Meeting()
        namespace = f"{name.replace('_', '-')}-{suffix}"
        first, second = (Stage(server, namespace, meeting) for server in servers)
        await play(SCENARIOS[name], (first, second), meeting)
        return meeting

    async with Supervisor() as tasks:
        outcomes = {name: asyncio.get_running_loop().create_future() for name in chosen}

        async def settle(name: str) -> None:
            try:
                outcomes[name].set_result(await one(name))
            except Exception as error:  # noqa: BLE001 - the test of this scenario raises it
                outcomes[name].set_exception(error)

        for name in chosen:
            tasks.start(settle(name), name=f"play {name}")
        yield outcomes
        tasks.cancel()


def _is_ours(item: pytest.Item) -> bool:
    return item.path == Path(__file__) and hasattr(item, "callspec")


@pytest.mark.slow
@pytest.mark.parametrize("name", portions.some(SCENARIOS, 11))
async def test_controllers_see_no_difference(played: dict[str, asyncio.Future[Meeting]], name: str) -> None:
    meeting = await played[name]
    assert meeting.differences == {}, "\n".join(f"{label}:\n{text}" for label, text in meeting.differences.items())
    assert meeting.checkpoints
