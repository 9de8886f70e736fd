"""What is known of a set of Executables, and the status that follows from it. Pure."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from steersman.objects import Condition, MicroTime, is_true, set_condition
from steersman.workloads.dependencies import UNHEALTHY, is_unhealthy
from steersman.workloads.files import Watched
from steersman.workloads.kinds import (
    Executable,
    ExecutableReplicaSet,
    HealthStatus,
    ReplicaSetObservation,
)


class Replicas(msgspec.Struct):
    """What the controller remembers of a set."""

    sequence: int = 0
    """The number of the latest Executable."""
    restarts: int = -1
    """All restarts; -1 until the status was read."""
    reason: str = ""
    """Why the latest restart happened, as a sentence."""
    lineages: list[int] = msgspec.field(default_factory=list[int])
    """The restarts in a row of the Executables that are to be created next."""
    changed: str = ""
    """A file that has changed since the latest restart, and when, in the loop's time."""
    changed_at: float = 0.0
    asked: str = ""
    """Why another object asks for a restart, as a sentence."""
    next_restart: float | None = None
    """When the next restart is due, in the loop's time."""
    exhausted: str = ""
    """What the set waits for, if no further restart follows."""
    last_scale: MicroTime | None = None
    watched: Watched | None = None
    """The files that the set watches."""
    unwatched: str = ""
    """Why changes of some watched files are missed, and what to do."""


def state_of(executable: Executable) -> str:
    """The state of an Executable."""
    return executable.status.state if executable.status is not None else ""


def ended_words(executable: Executable) -> str:
    """How an Executable has ended, in words."""
    status = executable.status
    name = executable.key.name
    if status is None or status.exit_code is None:
        why = status.steersman.message if status is not None and status.steersman is not None else None
        return f"{name} failed ({(why or state_of(executable)).rstrip('.')})"
    return f"{name} ended with exit code {status.exit_code}"


def write_status(
    replica_set: ExecutableReplicaSet,
    alive: Sequence[Executable],
    record: Replicas,
    *,
    now: datetime,
    stopped: str = "",
) -> None:
    """Write the status of a set. ``stopped`` is a sentence if an annotation stops it."""
    status = replica_set.ensure_status()
    states = [state_of(each) for each in alive]
    wanted = replica_set.spec.replicas
    status.observed_generation = replica_set.generation
    status.observed_replicas = len(alive)
    status.running_replicas = states.count("Running")
    status.failed_replicas = states.count("FailedToStart") + states.count("Unknown")
    status.finished_replicas = states.count("Finished") + states.count("Terminated")
    status.last_scale_time = record.last_scale
    healthy = sum(each.status is not None and each.status.health_status == "Healthy" for each in alive)
    status.health_status = "Caution" if stopped else _health(healthy, wanted)
    waits = [each.status.steersman.waiting_for for each in alive if each.status is not None and each.status.steersman]
    next_restart = None
    if record.next_restart is not None:
        left = record.next_restart - asyncio.get_running_loop().time()
        known = status.steersman.next_restart if status.steersman is not None else None
        next_restart = MicroTime.of(now + timedelta(seconds=left))
        if known is not None and abs(known - next_restart) < timedelta(milliseconds=50):
            # The same moment, computed again.
            next_restart = known
    status.steersman = ReplicaSetObservation(
        restarts=max(record.restarts, 0),
        last_restart_reason=record.reason or None,
        next_restart=next_restart,
        waiting_for=record.exhausted or next((each for each in waits if each), None),
        message=stopped or None,
        unwatched=record.unwatched or None,
    )
    for kind in ("Started", "Healthy", "Completed", "Ready"):
        set_condition(status, _condition(kind, replica_set, alive, stopped), now=now)


def _health(healthy: int, wanted: int) -> HealthStatus:
    return "Healthy" if healthy >= wanted else "Caution" if healthy else "Unhealthy"


def _condition(kind: str, replica_set: ExecutableReplicaSet, alive: Sequence[Executable], stopped: str) -> Condition:
    """Whether a condition holds for all replicas."""
    wanted = replica_set.spec.replicas
    holding = [each for each in alive if each.status is not None and is_true(each.status.conditions, kind)]
    holds = len(holding) >= wanted and len(holding) == len(alive)
    message = "" if holds else f"{len(holding)} of {wanted} replicas."
    missing = next((each for each in alive if each not in holding and each.status is not None), None)
    if missing is not None and missing.status is not None and missing.status.steersman is not None:
        why = missing.status.steersman.message or missing.status.steersman.waiting_for
        message += f" {missing.key.name}: {why.rstrip('.')}." if why else ""
    has_failed = kind == "Healthy" and any(each.status is not None and is_unhealthy(each.status) for each in alive)
    reason = "Stopped" if stopped else UNHEALTHY if has_failed else "SomeReplicas"
    return Condition(
        type=kind,
        status="True" if holds else "False",
        reason="AllReplicas" if holds else reason,
        message="" if holds else stopped or message,
        observed_generation=replica_set.generation,
    )
