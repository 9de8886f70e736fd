"""Readiness of workloads: the rules of their own controllers, computed from the status alone. Pure."""

from __future__ import annotations

from typing import Any

from steersman.patterns.readiness.fields import at, condition, holds, number, quoted, word
from steersman.patterns.readiness.result import Readiness, failed, ready, unobserved, waits


def deployment(obj: Any) -> Readiness:
    """Ready if all replicas have the current template and are available, and no old replica is left."""
    if (late := unobserved(obj)) is not None:
        return late
    progress = condition(obj, "Progressing")
    if at(progress, "reason") == "ProgressDeadlineExceeded":
        return failed("ProgressDeadlineExceeded", _with_refusal(obj, f"the rollout is stuck: {quoted(progress)}"))
    asked = number(obj, "spec", "replicas", default=1)
    updated = number(obj, "status", "updated_replicas")
    if updated < asked:
        words = f"{_of(updated, asked, 'replica')} updated"
        if at(obj, "spec", "paused"):
            return waits("Paused", f"its rollout is paused: {words}")
        return waits("Updating", _with_refusal(obj, words))
    if (old := number(obj, "status", "replicas") - updated) > 0:
        paused = ", and its rollout is paused" if at(obj, "spec", "paused") else ""
        return waits("Updating", f"{_still(old, 'old replica')}{paused}")
    return _available(obj, asked)


def replica_set(obj: Any) -> Readiness:
    """Ready if all replicas are available. The same rule serves ReplicationControllers."""
    return unobserved(obj) or _available(obj, number(obj, "spec", "replicas", default=1))


def stateful_set(obj: Any) -> Readiness:
    """Ready if all replicas are available, and those that the update strategy replaces have the current template."""
    if (late := unobserved(obj)) is not None:
        return late
    asked = number(obj, "spec", "replicas", default=1)
    there = number(obj, "status", "replicas")
    if there < asked:
        return waits("Scaling", f"{_of(there, asked, 'replica')} created")
    strategy = at(obj, "spec", "update_strategy")
    if at(strategy, "type") != "OnDelete" and (late := _rolling(obj, strategy, asked)) is not None:
        return late
    return _available(obj, asked)


def _rolling(obj: Any, strategy: Any, asked: int) -> Readiness | None:
    """The unfinished part of a rolling update. Ordinals below the partition keep the old template, as the spec asks."""
    partition = number(strategy, "rolling_update", "partition")
    updated = number(obj, "status", "updated_replicas")
    moving = max(asked - partition, 0)
    if updated < moving:
        kept = f" ({partition} kept back by its partition)" if partition else ""
        return waits("Updating", f"{_of(updated, moving, 'replica')} updated{kept}")
    present, wanted = at(obj, "status", "current_revision"), at(obj, "status", "update_revision")
    # With a partition the two revisions differ permanently; without one, making them equal is the controller's last step.
    if not partition and present != wanted:
        return waits("Updating", f"its controller has not finished the rollout from {present} to {wanted}")
    return None


def daemon_set(obj: Any) -> Readiness:
    """Ready if a Pod of the current template is available on every node that should have one."""
    if (late := unobserved(obj)) is not None:
        return late
    asked = number(obj, "status", "desired_number_scheduled")
    if not asked:
        return ready("no node should run it")
    updated = number(obj, "status", "updated_number_scheduled")
    if at(obj, "spec", "update_strategy", "type") != "OnDelete" and updated < asked:
        return waits("Updating", f"its Pods are updated on {updated} of {_count(asked, 'node')}")
    on = number(obj, "status", "number_ready")
    if on < asked:
        return waits("NotAvailable", f"its Pods are ready on {on} of {_count(asked, 'node')}")
    available = number(obj, "status", "number_available")
    if available < asked:
        long = _long_enough(obj)
        return waits("NotAvailable", f"its Pods are available on {available} of {_count(asked, 'node')}{long}")
    return ready(f"its Pods are ready on {_count(asked, 'node')}")


def job(obj: Any) -> Readiness:
    """Ready if the Job has completed. A running Job is not ready."""
    for kind in ("Failed", "FailureTarget"):
        found = condition(obj, kind)
        if holds(found):
            return failed(word(at(found, "reason"), "Failed"), f"it failed: {quoted(found) or 'no message'}")
    if holds(condition(obj, "Complete")):
        return ready("it has completed", reason="Complete")
    if at(obj, "spec", "suspend") or holds(condition(obj, "Suspended")):
        return waits("Suspended", "it is suspended")
    active, done = number(obj, "status", "active"), number(obj, "status", "succeeded")
    asked = at(obj, "spec", "completions")
    if not active and not done:
        if bad := number(obj, "status", "failed"):
            return waits("Running", f"{_have(bad, 'Pod')} failed, none runs")
        return waits("Running", "none of its Pods has started yet")
    progress = (
        f"{done} of {_have(asked, 'Pod')} succeeded" if isinstance(asked, int) else f"{_have(done, 'Pod')} succeeded"
    )
    bad = number(obj, "status", "failed")
    return waits("Running", f"{progress}, {active} active{f', {bad} failed' if bad else ''}")


def cron_job(obj: Any) -> Readiness:
    """Ready when it exists, suspended or not."""
    if at(obj, "spec", "suspend"):
        return ready("it is suspended: no Job is started", reason="Suspended")
    return ready("it exists", reason="Exists")


def _available(obj: Any, asked: int) -> Readiness:
    """Whether ``asked`` replicas are available, and none is left over."""
    status = at(obj, "status")
    on, available = number(status, "ready_replicas"), number(status, "available_replicas")
    if on < asked:
        return waits("NotAvailable", _with_refusal(obj, f"{_of(on, asked, 'replica')} ready"))
    if available < asked:
        return waits("NotAvailable", f"{_of(available, asked, 'replica')} available{_long_enough(obj)}")
    if (over := number(status, "replicas") - asked) > 0:
        return waits("Scaling", _still(over, "replica", " too many"))
    return ready(f"{_of(asked, asked, 'replica')} ready" if asked else "no replicas are requested")


def _with_refusal(obj: Any, words: str) -> str:
    """Add the controller's reason why Pods cannot be created, if it gives one: a quota, or admission."""
    found = condition(obj, "ReplicaFailure")
    return f"{words}; Pods cannot be created: {quoted(found)}" if holds(found) else words


def _long_enough(obj: Any) -> str:
    seconds = number(obj, "spec", "min_ready_seconds")
    return f" (they count after {seconds} s)" if seconds else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _of(some: int, asked: int, noun: str) -> str:
    return f"{some} of {_count(asked, noun)} {'is' if asked == 1 else 'are'}"


def _have(number: int, noun: str) -> str:
    return f"{_count(number, noun)} {'has' if number == 1 else 'have'}"


def _still(number: int, noun: str, after: str = "") -> str:
    return f"{_count(number, noun)}{after} {'is' if number == 1 else 'are'} still there"
