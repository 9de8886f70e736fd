"""Copies probe results into the record of a workload."""

from __future__ import annotations

from functools import partial
from typing import Protocol, TypeVar

from steersman.workloads.kinds import HealthProbeResult
from steersman.workloads.world import World


class Probed(Protocol):
    """A record with the latest results of its probes."""

    results: tuple[HealthProbeResult, ...]


ProbedT = TypeVar("ProbedT", bound=Probed)


def defer_results(world: World[ProbedT], uid: str, results: tuple[HealthProbeResult, ...]) -> None:
    """Put results into a record at the next reconcile of its object."""
    world.defer(uid, partial(_set_results, results), "probes")


def _set_results(results: tuple[HealthProbeResult, ...], record: Probed) -> None:
    record.results = results
