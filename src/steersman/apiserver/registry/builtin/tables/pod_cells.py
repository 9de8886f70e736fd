"""The cells of a Pod in tables: its state in one word."""

from __future__ import annotations

from typing import Any, NamedTuple

from steersman.apiserver.registry.ages import since
from steersman.apiserver.registry.builtin.tables.cells import NOTHING, age, name
from steersman.apiserver.registry.builtin.types.trees import Tree, items, metadata, subtree
from steersman.objects import parse_time

_ENDED = {"Succeeded": ("Succeeded", "The pod has completed successfully."), "Failed": ("Failed", "The pod failed.")}


class _Seen(NamedTuple):
    """A summary of containers."""

    reason: str
    ready: int
    restarts: int
    last: str | None


def pod(obj: Tree) -> list[Any]:
    """Pod."""
    spec, status = subtree(obj, "spec"), subtree(obj, "status")
    seen = _look(spec, status)
    sidecars = [one for one in items(spec, "initContainers") if one.get("restartPolicy") == "Always"]
    total = len(items(spec, "containers")) + len(sidecars)
    restarts = f"{seen.restarts} ({since(seen.last)} ago)" if seen.restarts and seen.last else f"{seen.restarts}"
    address = next((one.get("ip", "") for one in items(status, "podIPs")), "") or NOTHING
    return [
        name(obj),
        f"{seen.ready}/{total}",
        _ending(obj, status) or seen.reason,
        restarts,
        age(obj),
        address,
        spec.get("nodeName") or NOTHING,
        status.get("nominatedNodeName") or NOTHING,
        _gates(spec, status),
    ]


def row_conditions(obj: Tree) -> list[Tree]:
    """The conditions in the row of a Pod that has ended."""
    ended = _ENDED.get(subtree(obj, "status").get("phase", ""))
    if ended is None:
        return []
    return [{"type": "Completed", "status": "True", "reason": ended[0], "message": ended[1]}]


def _ending(obj: Tree, status: Tree) -> str:
    if "deletionTimestamp" not in metadata(obj):
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in _ENDED else "Terminating"


def _gates(spec: Tree, status: Tree) -> str:
    gates = items(spec, "readinessGates")
    found: dict[str, bool] = {}
    for one in items(status, "conditions"):
        found.setdefault(one.get("type", ""), one.get("status") == "True")
    passed = sum(found.get(gate.get("conditionType", ""), False) for gate in gates)
    return f"{passed}/{len(gates)}" if gates else NOTHING


def _later(one: str | None, other: str | None) -> str | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other, key=parse_time)


def _true(status: Tree, type_: str) -> bool:
    for one in items(status, "conditions"):
        if one.get("type") == type_:
            return one.get("status") == "True"
    return False


def _ended(state: Tree) -> str:
    """How a container ended."""
    if state.get("reason"):
        return state["reason"]
    return f"Signal:{state['signal']}" if state.get("signal") else f"ExitCode:{state.get('exitCode', 0)}"


def _look(spec: Tree, status: Tree) -> _Seen:
    reason = status.get("reason") or status.get("phase", "")
    for one in items(status, "conditions"):
        if one.get("type") == "PodScheduled" and one.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    first, sidecars, initializing = _look_at_init(spec, status, reason)
    if initializing and not _true(status, "Initialized"):
        return first
    return _look_at_main(status, first._replace(restarts=sidecars.restarts, last=sidecars.last))


def _look_at_init(spec: Tree, status: Tree, reason: str) -> tuple[_Seen, _Seen, bool]:
    """A summary of init containers: all of them, the sidecars, and whether they are still initializing."""
    given = items(spec, "initContainers")
    staying = {one.get("name", "") for one in given if one.get("restartPolicy") == "Always"}
    seen, sidecars = _Seen(reason, 0, 0, None), _Seen(reason, 0, 0, None)
    for index, one in enumerate(items(status, "initContainerStatuses")):
        count, stays = one.get("restartCount", 0), one.get("name", "") in staying
        finished = subtree(one, "lastState", "terminated").get("finishedAt")
        seen = seen._replace(restarts=seen.restarts + count, last=_later(seen.last, finished))
        if stays:
            sidecars = sidecars._replace(restarts=sidecars.restarts + count, last=_later(sidecars.last, finished))
        ended, waiting = subtree(one, "state").get("terminated"), subtree(one, "state", "waiting").get("reason", "")
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if stays and one.get("started"):
            seen = seen._replace(ready=seen.ready + (1 if one.get("ready") else 0))
            continue
        if ended is not None:
            reason = f"Init:{_ended(ended)}"
        elif waiting and waiting != "PodInitializing":
            reason = f"Init:{waiting}"
        else:
            reason = f"Init:{index}/{len(given)}"
        return seen._replace(reason=reason), sidecars, True
    return seen, sidecars, False


def _look_at_main(status: Tree, seen: _Seen) -> _Seen:
    running, failure = False, ""
    reason, ready, restarts, last = seen
    for one in reversed(items(status, "containerStatuses")):
        restarts += one.get("restartCount", 0)
        last = _later(last, subtree(one, "lastState", "terminated").get("finishedAt"))
        state = subtree(one, "state")
        ended, waiting = state.get("terminated"), subtree(state, "waiting").get("reason", "")
        if waiting:
            reason = waiting
        elif ended is not None:
            reason = _ended(ended)
            failure = reason if ended.get("exitCode", 0) else failure
        elif one.get("ready") and state.get("running") is not None:
            running, ready = True, ready + 1
    if reason == "Completed":
        if running and _true(status, "Ready"):
            reason = "Running"
        elif failure:
            reason = failure
        elif running:
            reason = "NotReady"
    return _Seen(reason, ready, restarts, last)
