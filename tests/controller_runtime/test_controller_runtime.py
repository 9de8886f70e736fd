"""An operator in Go works here as it does there: written with controller-runtime, it sees the same of the embedded control
plane as of the engine, and leaves the same behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from controller_manager.servers import Server
from controller_manager.stage import Stage, play
from controller_runtime.operators import embedded_server, engine_server
from controller_runtime.voyage import install, voyage

from bench.contenders.preparing import go_program
from samples.meeting import Meeting
from steersman.aio import name_suffix


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncGenerator[tuple[Server, Server]]:
    """Both servers, with garbage collection."""
    async with AsyncExitStack() as exits:
        engine = await exits.enter_async_context(engine_server())
        embedded = await exits.enter_async_context(embedded_server(tmp_path))
        yield engine, embedded


@pytest.mark.slow
async def test_an_operator_of_controller_runtime_sees_no_difference(
    servers: tuple[Server, Server], tmp_path: Path
) -> None:
    program = await asyncio.to_thread(go_program, Path(__file__).parent, "fleet")
    meeting = Meeting()
    first, second = (Stage(server, f"fleet-{name_suffix()}", meeting) for server in servers)
    await asyncio.gather(install(first), install(second))

    async def scenario(stage: Stage) -> None:
        await voyage(stage, program, tmp_path)

    await play(scenario, (first, second), meeting)
    assert meeting.differences == {}, "\n".join(f"{label}:\n{text}" for label, text in meeting.differences.items())
    assert meeting.checkpoints[-1] == "leaders"
