"""A program that we ship, as a simulation runs it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from steersman.simulation import Fault, Scenario, SimulationReport, simulated
from steersman.simulation.runs.faults import (
    ALL_FAULTS,
    ChildDeleted,
    ChildEdited,
    Coalesced,
    CrashBefore,
    CrashCommitted,
    CrashReplied,
    CutDeletion,
    DroppedWatch,
    StaleCache,
)
from steersman.simulation.runs.schedules import Violation


def all_but(*kinds: type[Fault]) -> tuple[Fault, ...]:
    """All faults, except for some kinds."""
    return tuple(fault for fault in ALL_FAULTS if not isinstance(fault, kinds))


#: For programs whose processes end with them: a crash leaves nothing to compare.
NO_CRASHES = all_but(CrashBefore, CrashCommitted, CrashReplied, CutDeletion)
#: For programs whose children keep a history of their own: an edit that was undone leaves another revision.
NO_MEDDLING = all_but(ChildEdited, ChildDeleted)
#: For controllers that follow the store itself, not a watch, and whose objects belong to users.
NO_WATCHES = all_but(ChildEdited, ChildDeleted, StaleCache, Coalesced, DroppedWatch)


def nothing(_: Violation) -> bool:
    """Excuse no violation."""
    return False


class ShippedProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A program, what its users do, and the faults that can happen to it."""

    scenario: Scenario
    faults: tuple[Fault, ...] = ALL_FAULTS
    #: The violations that the program announces as its behavior.
    excused: Callable[[Violation], bool] = nothing

    def report(
        self, *, singles: bool, pairs: int, random_schedules: int, seed: int = 1, jobs: int = 1
    ) -> SimulationReport:
        """Play it; the findings are those that it does not announce."""
        report = simulated(
            self.scenario,
            faults=self.faults,
            singles=singles,
            pairs=pairs,
            random_schedules=random_schedules,
            seed=seed,
            jobs=jobs,
        )
        findings = tuple(finding for finding in report.findings if not all(map(self.excused, finding.violations)))
        return msgspec.structs.replace(report, findings=findings)
