"""``steersman restart``, ``stop``, ``start`` and ``scale``: change the services of a running application."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from steersman.cli.console import tell
from steersman.cli.failure import Failure
from steersman.cli.up.outcomes import ended_words
from steersman.cli.up.places import PlaceOptions, connected_board, parse_scales, run_command
from steersman.errors import Invalid
from steersman.projects import SCALES
from steersman.ui import Board, Row

#: Transient states: a run is starting or ending.
_PASSING = frozenset({"starting", "stopping", "building", "waiting"})


class ControlOptions(PlaceOptions, frozen=True, kw_only=True):
    """The options of the command line."""

    names: Sequence[str] = ()
    timeout: float = 60.0


def run_restart(options: ControlOptions) -> int:
    """Restart services, and wait until they run."""
    return run_command(lambda: _control(options, lambda board, names: board.restart(*names), _has_restarted))


def run_stop(options: ControlOptions) -> int:
    """Stop services, and wait until they have stopped."""
    return run_command(
        lambda: _control(options, lambda board, names: _each(board.stop, names), _has_stopped, is_start=False)
    )


def run_start(options: ControlOptions) -> int:
    """Start services that were stopped or have ended."""
    return run_command(lambda: _control(options, lambda board, names: _each(board.start, names), _has_started))


def run_scale(options: ControlOptions) -> int:
    """Change the number of replicas."""
    return run_command(lambda: _scale(options))


def _has_restarted(before: Row, row: Row) -> bool:
    is_new = (row.since, row.pid) != (before.since, before.pid)
    return bool(row.waiting_for) or (is_new and row.summary not in _PASSING)


def _has_stopped(before: Row, row: Row) -> bool:
    del before
    return row.state in {"stopped", "finished", "failed"}


def _has_started(before: Row, row: Row) -> bool:
    return before.state not in {"stopped", "finished", "failed"} or _has_restarted(before, row)


async def _control(
    options: ControlOptions,
    act: Callable[[Board, Sequence[str]], Awaitable[None]],
    is_done: Callable[[Row, Row], bool],
    *,
    is_start: bool = True,
) -> int:
    async with connected_board(options.running()) as (_, board):
        names = options.names or [row.name for row in board.rows if row.replicas or not is_start]
        for name in names:
            if is_start and not board.row(name).replicas:
                raise Failure(f"{name} is scaled to 0, so it cannot start: use steersman scale {name}=1")
        before = {name: board.row(name) for name in names}
        await act(board, names)
        await _until(board, names, lambda row: is_done(before[row.name], row), options.timeout)
        return _report(board.row(name) for name in names)


async def _each(action: Callable[[str], Awaitable[None]], names: Sequence[str]) -> None:
    for name in names:
        await action(name)


async def _scale(options: ControlOptions) -> int:
    record = options.running()
    scales = parse_scales(options.names)
    async with connected_board(record) as (client, board):
        # The session checks and applies it: several processes need other ports than one.
        try:
            await client.request("PATCH", SCALES, body=msgspec.json.encode(scales))
        except Invalid as error:
            what = ", ".join(f"{name} to {number}" for name, number in scales.items())
            raise Failure(f"cannot scale {what}, so nothing changes:\n{error.status.message}") from error
        await _until(board, list(scales), lambda row: row.replicas == scales[row.name] == row.ready, options.timeout)
        return _report(board.row(name) for name in scales)


async def _until(board: Board, names: Sequence[str], is_done: Callable[[Row], bool], seconds: float) -> None:
    version = board.version
    try:
        async with asyncio.timeout(seconds):
            while _late(board, names, is_done):
                version = await board.wait_changed(version)
    except TimeoutError:
        late = _late(board, names, is_done)
        raise Failure(f"timed out after {seconds:g} s: {', '.join(late)}") from None


def _late(board: Board, names: Sequence[str], is_done: Callable[[Row], bool]) -> list[str]:
    """The services that are not done, with their states. One without containers has no row."""
    rows = {row.name: row for row in board.rows}
    states = {name: rows[name].state if name in rows else "waiting" for name in names}
    return [f"{name} is {state}" for name, state in states.items() if name not in rows or not is_done(rows[name])]


def _report(rows: Iterable[Row]) -> int:
    """Print the states of services; returns an exit code."""
    code = 0
    for row in rows:
        words = row.state
        if row.state == "failed":
            words, code = ended_words(row), 1
        elif row.state == "waiting":
            words = f"waits for {row.waiting_for}"
        elif row.replicas > 1:
            words = f"{row.state} ({row.ready} of {row.replicas})"
        tell(f"{row.name}: {words}")
    return code
