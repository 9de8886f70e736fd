"""The Pods of a workload: creating them from its template, counting them, choosing which to delete.

Guarantees
- A Pod counts as ready, available, active or terminating by kube-controller-manager's rules.
- Pods are created in batches that double; the first rejection stops, so a quota is not hit a thousand times.
- The least useful Pods are deleted first: unscheduled, pending, not ready, low deletion cost, young.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from steersman.aio import Supervisor
from steersman.controller import Context
from steersman.errors import Forbidden, NotFound, StatusError
from steersman.kinds.core_v1 import Pod, PodTemplateSpec
from steersman.objects import Object, ObjectMeta, find_condition, is_true, owner_reference

#: The maximum number of Pods to create or delete at once.
BURST = 500
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_OVER = frozenset({"Succeeded", "Failed"})
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def phase(pod: Pod) -> str:
    """The phase of a Pod; empty until the server sets one."""
    return (pod.status.phase or "") if pod.status is not None else ""


def is_active(pod: Pod) -> bool:
    """Whether a Pod has neither ended nor been deleted."""
    return phase(pod) not in _OVER and pod.metadata.deletion_timestamp is None


def is_terminating_pod(pod: Pod) -> bool:
    """Whether a Pod is being deleted and has not ended yet."""
    return phase(pod) not in _OVER and pod.metadata.deletion_timestamp is not None


def is_ready(pod: Pod) -> bool:
    """Whether the Pod's condition Ready is true."""
    return pod.status is not None and is_true(pod.status.conditions, "Ready")


def available_at(pod: Pod, min_ready_seconds: int) -> datetime | None:
    """When a Pod becomes, or became, available; None if it is not ready."""
    condition = find_condition(pod.status.conditions, "Ready") if pod.status is not None else None
    if condition is None or condition.status != "True" or condition.last_transition_time is None:
        return None
    return condition.last_transition_time + timedelta(seconds=min_ready_seconds)


def is_available(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Whether a Pod has been ready for long enough."""
    if not min_ready_seconds:
        return is_ready(pod)
    moment = available_at(pod, min_ready_seconds)
    return moment is not None and moment <= now


def next_available(pods: Iterable[Pod], min_ready_seconds: int, now: datetime) -> float | None:
    """The seconds until the next Pod becomes available; None if no ready Pod has to wait."""
    moments = [available_at(pod, min_ready_seconds) for pod in pods]
    waits = [(moment - now).total_seconds() for moment in moments if moment is not None and moment > now]
    return min(waits, default=None)


def from_template(owner: Object, template: PodTemplateSpec) -> Pod:
    """A Pod from a template, owned by ``owner``, with a generated name."""
    given = template.metadata or ObjectMeta()
    metadata = ObjectMeta(
        generate_name=f"{owner.metadata.name}-",
        namespace=owner.metadata.namespace,
        labels=dict(given.labels or {}) or None,
        annotations=dict(given.annotations or {}) or None,
        finalizers=list(given.finalizers or ()) or None,
        owner_references=[owner_reference(owner)],
    )
    return Pod(metadata=metadata, spec=copy.deepcopy(template.spec))


async def create(ctx: Context, owner: Object, pod: Pod) -> Pod | None:
    """Create a Pod and record the event; None in a terminating namespace."""
    try:
        made = await ctx.client.create(pod)
    except StatusError as error:
        if isinstance(error, Forbidden) and error.namespace_terminating:
            return None
        ctx.events.record(owner, "Warning", "FailedCreate", "Create", f"Error creating: {error.status.message}")
        raise
    ctx.events.record(owner, "Normal", "SuccessfulCreate", "Create", f"Created pod: {made.metadata.name}", made)
    return made


async def delete(ctx: Context, owner: Object, pod: Pod) -> None:
    """Delete a Pod and record the event; a missing Pod is not a failure."""
    try:
        await ctx.client.delete(pod)
    except NotFound:
        return
    except StatusError as error:
        ctx.events.record(owner, "Warning", "FailedDelete", "Delete", f"Error deleting: {error.status.message}")
        raise
    ctx.events.record(owner, "Normal", "SuccessfulDelete", "Delete", f"Deleted pod: {pod.metadata.name}", pod)


async def together(calls: Iterable[Coroutine[Any, Any, Any]]) -> StatusError | None:
    """Await calls concurrently; returns the first rejection of the server, after all have ended."""
    errors: list[StatusError] = []

    async def one(call: Coroutine[Any, Any, Any]) -> None:
        try:
            await call
        except StatusError as error:
            errors.append(error)

    async with Supervisor() as tasks:
        for call in calls:
            tasks.start(one(call), name="workload: pod")
    return errors[0] if errors else None


async def slow_start(number: int, make: Callable[[], Coroutine[Any, Any, Any]]) -> StatusError | None:
    """Call ``make`` this many times, in batches of 1, 2, 4 and so on; returns the rejection that stopped it, if any."""
    batch = 1
    while number > 0:
        size = min(batch, number)
        error = await together(make() for _ in range(size))
        if error is not None:
            return error
        number -= size
        batch = 2 * size
    return None


def to_delete(pods: Sequence[Pod], related: Iterable[Pod], number: int, now: datetime) -> list[Pod]:
    """The Pods to delete first; ``related`` are all Pods of the owner's siblings, which share nodes."""
    if number >= len(pods):
        return list(pods)
    on_node: dict[str, int] = {}
    for pod in related:
        if is_active(pod):
            on_node[pod.spec.node_name or ""] = on_node.get(pod.spec.node_name or "", 0) + 1
    return sorted(pods, key=lambda pod: _rank(pod, on_node, now))[:number]


def _rank(pod: Pod, on_node: dict[str, int], now: datetime) -> tuple[Any, ...]:
    ready = available_at(pod, 0)
    created = pod.metadata.creation_timestamp
    restarts = max(
        (each.restart_count for each in (pod.status.container_statuses if pod.status else ()) or ()), default=0
    )
    return (
        bool(pod.spec.node_name),
        _PHASES.get(phase(pod), 0),
        ready is not None,
        _cost(pod),
        -on_node.get(pod.spec.node_name or "", 0),
        _age(ready, now),
        -restarts,
        _age(created, now),
        pod.metadata.uid,
    )


def _age(moment: datetime | None, now: datetime) -> int:
    """An age on a logarithmic scale of nanoseconds, so that Pods of similar age rank equal."""
    seconds = (now - moment).total_seconds() if moment is not None else 0.0
    return int(math.log2(seconds * 1e9)) if seconds > 0 else -1


def _cost(pod: Pod) -> int:
    try:
        return int((pod.metadata.annotations or {}).get(_DELETION_COST, "0"))
    except ValueError:
        return 0
