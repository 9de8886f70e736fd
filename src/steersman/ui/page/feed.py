"""The data of the page as a stream of JSON lines: the state after each change, and the logs of all services.

Guarantees
- A slow browser delays no other and uses no extra memory: it gets the latest state, and a note in place of dropped lines.
- The stream has names, states and logs, and no environment variables.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec

from steersman.aio import Channel, Supervisor
from steersman.errors import ApiError
from steersman.ui.board import Board
from steersman.ui.joined_logs import LogLine
from steersman.ui.refusal import ActionRefused
from steersman.ui.rows import Row, service_of
from steersman.workloads import TRANSITIONS

#: Seconds between two states, and between two batches of lines, for a browser that keeps up.
_PACE: Final = 0.1
#: Seconds after which an idle stream sends a sign of life.
_BEAT: Final = 10.0
#: The past lines of each stream.
_TAIL: Final = 500
_encode = msgspec.json.Encoder().encode


async def feed(board: Board) -> AsyncGenerator[bytes]:
    """Follow a board until the reader closes the iterator."""
    messages: Channel[bytes] = Channel(2)
    async with Supervisor() as tasks:
        try:
            yield _message("hello", project=board.project, machines=_machines())
            tasks.start(_states(board, messages), name="page: states")
            tasks.start(_lines(board, messages), name="page: lines")
            tasks.start(_beats(messages), name="page: beats")
            async for message in messages:
                yield message
        finally:
            tasks.cancel()


async def _states(board: Board, messages: Channel[bytes]) -> None:
    while True:
        version = board.version
        await messages.send(_message("state", connected=board.connected, rows=[_row(board, row) for row in board.rows]))
        await asyncio.sleep(_PACE)
        await board.wait_changed(version)


async def _lines(board: Board, messages: Channel[bytes]) -> None:
    async with board.log_batches(tail=_TAIL) as batches:
        async for lines in batches:
            await messages.send(_message("lines", lines=[_line(line) for line in lines]))
            await asyncio.sleep(_PACE)


async def _beats(messages: Channel[bytes]) -> None:
    while True:
        await asyncio.sleep(_BEAT)
        await messages.send(_message("beat"))


def _message(kind: str, **fields: Any) -> bytes:
    return _encode({"type": kind, **fields}) + b"\n"


def _line(line: LogLine) -> tuple[str, str, int, float, str, int]:
    """A line as a list, which is shorter than an object."""
    moment = line.time.timestamp() if line.time is not None else 0.0
    return line.service, line.replica, int(line.stream == "stderr"), moment, line.text, line.dropped


def _row(board: Board, row: Row) -> dict[str, Any]:
    objects = board.objects
    kind, found = ("Executable", objects.executables) if row.kind == "process" else ("Container", objects.containers)
    own = [each for each in found.values() if service_of(each) == row.name and not each.deleting]
    states = {each.key.name: each.status.state if each.status is not None else "" for each in own}
    return {
        **msgspec.to_builtins(row),
        "since": row.since.timestamp() if row.since is not None else None,
        "summary": row.summary,
        "machine": kind,
        "states": sorted(states.items()),
    }


def _machines() -> dict[str, dict[str, list[str]]]:
    """The states of each kind, with their possible next states."""
    return {
        kind: {state: sorted(TRANSITIONS[kind][state]) for state in TRANSITIONS[kind]}
        for kind in ("Executable", "Container")
    }


async def act(board: Board, action: str, name: str) -> str:
    """Restart, stop or start a service; returns a sentence. Raises `ActionRefused`."""
    actions = {"restart": board.restart, "stop": board.stop, "start": board.start}
    if action not in actions:
        raise ActionRefused(f"unknown action {action!r}: use one of {', '.join(actions)}")
    try:
        await actions[action](name)
    except ApiError as error:
        raise ActionRefused(f"{action} {name}: {error}") from error
    return f"{name}: {action} was requested"
