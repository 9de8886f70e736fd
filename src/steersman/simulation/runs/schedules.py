"""Schedules and their results, as values that cross processes and are kept in files."""

from __future__ import annotations

import msgspec

from steersman.simulation.runs.faults import Fault, fault_name
from steersman.simulation.runs.places import Place


class PlacedFault(msgspec.Struct, frozen=True):
    """A fault at a place."""

    fault: Fault
    place: Place

    def __str__(self) -> str:
        return f"{fault_name(self.fault)}: {self.place}"


class FaultSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """What decides a run beside the program itself."""

    seed: int
    faults: tuple[PlacedFault, ...] = ()

    def decide(self, place: Place) -> Fault | None:
        """The fault at a place, if there is one."""
        return next((placed.fault for placed in self.faults if placed.place == place), None)

    def __str__(self) -> str:
        return f"seed {self.seed}" + "".join(f"; {placed}" for placed in self.faults)


class Violation(msgspec.Struct, frozen=True):
    """What a run did wrong."""

    #: The oracle that found it.
    oracle: str
    words: str

    def __str__(self) -> str:
        return self.words


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one run."""

    schedule: FaultSchedule
    violations: tuple[Violation, ...] = ()
    #: The faults that happened.
    fired: tuple[PlacedFault, ...] = ()
    #: Seconds of CPU time.
    seconds: float = 0.0
    #: The checks of `sometimes` that held, by their numbers.
    reached: frozenset[int] = frozenset()
