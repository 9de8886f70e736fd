"""Runs schedules again, each in a process of its own, and returns what happened in them.

Guarantee: the program's modules in this process stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import msgspec

from steersman.simulation.exploration.branches import Branches, Message
from steersman.simulation.runs.schedules import FaultSchedule
from steersman.simulation.runs.trace import Entry
from steersman.simulation.runs.world import World
from steersman.simulation.scenario import Scenario

#: How much of a run is kept. A run that does not settle can be longer.
_ENTRIES_MAX = 20_000

Recording = tuple[Entry, ...]
_decoder = msgspec.msgpack.Decoder(Recording)


def recorded(scenario: Scenario, schedules: Sequence[FaultSchedule], *, jobs: int = 2) -> list[Recording]:
    """The trace of each schedule from the first start of the operator on; empty for a process that ended early."""
    recordings: list[Recording] = [() for _ in schedules]

    def on_message(message: Message) -> None:
        if not message.failure:
            recordings[cast("int", message.label)] = _decoder.decode(message.data)

    branches = Branches(jobs, on_message)
    for number, schedule in enumerate(schedules):
        if branches.branch(number):
            with branches.ending():
                world = World(scenario, seed=schedule.seed, decide=schedule.decide)
                try:
                    world.run()
                finally:
                    branches.send(msgspec.msgpack.encode(_from_start(world.trace)))
    branches.finish()
    return recordings


def _from_start(entries: Iterable[Entry]) -> Recording:
    """The entries from the first start of the operator on: what is before is the boot of the server."""
    trace = tuple(entries)
    first = next((number for number, entry in enumerate(trace) if entry.sort == "start"), 0)
    return trace[first : first + _ENTRIES_MAX]
