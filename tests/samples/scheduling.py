"""Which worker runs which tests when workers share a run: ``pytest -n 4``.

As many workers as the machine has cores begin with files that compute, the others with files that mostly wait (for
leases, timeouts, other programs), so that waiting takes no time of a core. The longest come first, so that all end
together. `samples.durations` has how long each file runs and waits; a table that is out of date costs time only.

Guarantees: tests that share a costly fixture run in one worker; a test marked `alone` runs after every other worker has
ended; a test that ends its worker is reported once and not run again; test ids stay what they are without workers.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

from samples.durations import seconds_of, waits

if TYPE_CHECKING:
    import pytest
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

#: The work unit of the tests that are marked `alone`.
ALONE = "alone"
#: Rooms whose tests share servers or a world of their own: each is one work unit.
WHOLE_ROOMS = frozenset({"conformance", "examples", "faults", "kubectl"})
#: What a worker begins with, in this order: client-go lists every kind, and conformance leaves definitions behind.
FIRST = ("client_go", "conformance")
#: How many workers begin with files that compute.
CORES = os.cpu_count() or 1


class Scheduling(LoadScopeScheduling):
    """One work unit a file or a whole room, and last those that run alone."""

    def __init__(self, config: pytest.Config, log: Producer | None, notes: Path) -> None:
        super().__init__(config, log)
        self._notes = notes
        self._alone: frozenset[str] | None = None
        #: Whether each unit waits, and its seconds: all units are compared for each that is assigned.
        self._measured: dict[str, tuple[bool, float]] = {}

    def _split_scope(self, nodeid: str) -> str:
        if self._alone is None:
            # every worker wrote the same list before it reported its collection
            self._alone = frozenset(json.loads(self._notes.read_text(encoding="utf-8")))
        return ALONE if nodeid in self._alone else unit_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        waits_first = self.nodes.index(node) >= CORES
        unit = min(self.workqueue, key=lambda each: self._rank(each, waits_first=waits_first))
        self.workqueue.move_to_end(unit, last=False)
        super()._assign_work_unit(node)

    def _rank(self, unit: str, *, waits_first: bool) -> tuple[int, float]:
        if unit == ALONE:
            return 3, 0
        if (room := _room(unit)) in FIRST:
            return 0, FIRST.index(room)
        if unit not in self._measured:
            files = {nodeid.partition("::")[0] for nodeid in self.workqueue[unit]}
            self._measured[unit] = waits(files), sum(map(seconds_of, files))
        is_waiting, seconds = self._measured[unit]
        return 1 if is_waiting == waits_first else 2, -seconds

    def _reschedule(self, node: WorkerController) -> None:
        if node.shutting_down or node not in self.registered_collections:
            return
        # a worker begins its last test when it knows the next one, or that there is none
        while self.workqueue and self._pending_of(self.assigned_work[node]) <= 1:
            others = [each for each in self.nodes if each is not node]
            if self.workqueue.keys() != {ALONE} or not others:
                self._assign_work_unit(node)
            elif all(each.shutting_down for each in others):
                return  # the last worker waits for the others to end, see `remove_node`
            else:
                node.shutdown()
                return
        if not self.workqueue:
            node.shutdown()  # when it has done what it was given

    def remove_node(self, node: WorkerController) -> str | None:
        # done before what is left of its work goes to another worker: a test that hangs would end that one too
        crashed = self._give_up(node)
        super().remove_node(node)
        for each in self.nodes:
            self._reschedule(each)
        return crashed

    def _give_up(self, node: WorkerController) -> str | None:
        """Count the test that a worker was running as done; its id."""
        for unit in self.assigned_work[node].values():
            for nodeid, done in unit.items():
                if not done:
                    unit[nodeid] = True
                    return nodeid
        return None


def unit_of(nodeid: str) -> str:
    """The file of a test, or its room where that is not divided."""
    file = nodeid.partition("::")[0]
    return room if (room := _room(file)) in WHOLE_ROOMS else file


def _room(file: str) -> str:
    return file.removeprefix("tests/").partition("/")[0]
