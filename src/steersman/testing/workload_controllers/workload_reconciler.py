"""What the reconcilers of workloads share: the backoff after a rejection, and the status write."""

from __future__ import annotations

from typing import Any, TypeVar

from steersman.aio import Backoff, randomness
from steersman.controller import Context, Done, Outcome, Reconciler, RequeueAfter
from steersman.objects import Object

ObjectT = TypeVar("ObjectT", bound=Object)


class WorkloadReconciler(Reconciler[ObjectT]):
    """A reconciler that avoids a busy loop against a quota."""

    def __init__(self) -> None:
        self._backoffs: dict[str, Backoff] = {}

    def after(self, owner: Object, wait: float | None) -> Outcome:
        """The outcome of a step that the server accepted; ``wait`` is in seconds, None if only an event changes it."""
        self._backoffs.pop(owner.metadata.uid or "", None)
        return Done() if wait is None else RequeueAfter(wait)

    def rejected(self, owner: Object) -> Outcome:
        """The outcome of a step that the server rejected."""
        backoff = self._backoffs.setdefault(owner.metadata.uid or "", Backoff(initial=0.1, maximum=5.0))
        return RequeueAfter(backoff.next_delay(randomness()))


async def write_status(ctx: Context, owner: Any, status: object) -> bool:
    """Write the status of an object if it changed; returns whether it did."""
    if status == owner.status:
        return False
    owner.status = status
    await ctx.client.update(owner, subresource="status")
    return True
