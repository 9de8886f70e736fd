"""Readiness of Pods, explained by the containers that are not ready. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steersman.patterns.readiness.fields import at, condition, holds, items, number, one_line, quoted, word
from steersman.patterns.readiness.result import Readiness, failed, ready, waits

#: Every container starts by waiting for these reasons.
_USUAL = frozenset({"ContainerCreating", "PodInitializing"})
#: Reasons for which the kubelet's retries cannot succeed.
_HOPELESS = frozenset({"InvalidImageName"})


def pod(obj: Any) -> Readiness:
    """Ready if the Pod is Ready or has succeeded."""
    phase = at(obj, "status", "phase")
    if phase == "Succeeded":
        return ready("it has succeeded", reason="Succeeded")
    if phase == "Failed":
        return failed(word(at(obj, "status", "reason"), "Failed"), f"it failed: {_how_it_ended(obj)}")
    condition_ready = condition(obj, "Ready")
    if holds(condition_ready):
        return ready("it runs and is ready")
    return _unscheduled(obj) or _held_up(obj) or _not_ready(obj, condition_ready, phase)


def _how_it_ended(obj: Any) -> str:
    if said := quoted(at(obj, "status")):
        return said  # evicted, past its deadline, rejected by the node
    for name, status in _containers(obj):
        ended = at(status, "state", "terminated")
        if ended is not None and number(ended, "exit_code"):
            return f"container {name} {_exit(ended)}"
    return "no message"


def _exit(ended: Any) -> str:
    return f"ended with exit code {number(ended, 'exit_code')}{_after_colon(quoted(ended))}"


def _unscheduled(obj: Any) -> Readiness | None:
    found = condition(obj, "PodScheduled")
    if found is None or holds(found):
        return None
    if at(found, "reason") == "SchedulingGated":
        gates = ", ".join(str(at(each, "name")) for each in items(obj, "spec", "scheduling_gates"))
        return waits("SchedulingGated", f"it waits for its scheduling gates{_after_colon(gates)}")
    why = one_line(at(found, "message"))
    return waits(word(at(found, "reason"), "Unschedulable"), f"it cannot be scheduled{_after_colon(why)}")


def _held_up(obj: Any) -> Readiness | None:
    """The first container that does not start, init containers first."""
    creating = None
    for name, status in _containers(obj):
        waiting = at(status, "state", "waiting")
        if waiting is None:
            continue
        reason = at(waiting, "reason")
        if not reason or reason in _USUAL:
            creating = creating or waits("Creating", f"container {name} is being created")
        elif reason == "CrashLoopBackOff":
            return waits("CrashLoopBackOff", _crashing(name, status, waiting))
        else:
            verdict = failed if reason in _HOPELESS else waits
            return verdict(word(reason, "NotStarted"), f"container {name} cannot start: {quoted(waiting)}")
    return creating


def _crashing(name: str, status: Any, waiting: Any) -> str:
    ended = at(status, "last_state", "terminated")
    last = f"; the last time it {_exit(ended)}" if ended is not None else ""
    return f"container {name} crashes: {quoted(waiting)}{last}"


def _not_ready(obj: Any, found: Any, phase: Any) -> Readiness:
    for name, status in _containers(obj, initial=True):
        if at(status, "state", "running") is not None and not at(status, "ready"):
            return waits("Initializing", f"init container {name} runs")
    unready = [name for name, status in _containers(obj, initial=False) if not at(status, "ready")]
    if unready:
        which = f"container {unready[0]} is" if len(unready) == 1 else f"containers {', '.join(unready)} are"
        return waits("NotReady", f"{which} not ready")
    if said := quoted(found):
        return waits(word(at(found, "reason"), "NotReady"), f"it is not ready: {said}")
    return waits("NotReady", f"its phase is {phase}" if phase else "no node has reported on it yet")


def _containers(obj: Any, *, initial: bool | None = None) -> Iterator[tuple[str, Any]]:
    """The names and statuses of containers, init containers first."""
    fields = ("init_container_statuses", "container_statuses")
    for field in fields if initial is None else fields[:1] if initial else fields[1:]:
        for status in items(obj, "status", field):
            yield str(at(status, "name")), status


def _after_colon(text: str) -> str:
    return f": {text}" if text else ""
