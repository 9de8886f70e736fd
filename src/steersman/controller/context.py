"""What a reconcile is given, and what a reconciler is."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from steersman.controller.causes import Causes, Request
from steersman.controller.outcomes import Outcome
from steersman.controller.reconcile_client import ReconcileClient
from steersman.objects import Object, Unstructured
from steersman.telemetry import Registry

if TYPE_CHECKING:
    from steersman.kinds.core_v1 import ObjectReference

T_co = TypeVar("T_co", covariant=True)


class ReconcileLogger(logging.LoggerAdapter[logging.Logger]):
    """Adds controller, key, reconcile id and causes to every record, beside what the call itself adds."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Join both sets of fields; those of the call win."""
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


class Events(Protocol):
    """Tells people what happened to an object, where they look for it; see `steersman.client.EventRecorder`."""

    def record(
        self,
        regarding: Object | Unstructured | ObjectReference,
        type: Literal["Normal", "Warning"],  # noqa: A002 - Kubernetes' own noun
        reason: str,
        action: str,
        note: str,
        related: Object | Unstructured | ObjectReference | None = None,
    ) -> None:
        """Tell that ``action`` was taken or failed, and why; returns at once and never raises."""
        ...


class _NobodyListens:
    def record(self, *told: object, **named: object) -> None:
        """Nothing."""


#: For reconciles outside of a manager: what is told, nobody hears.
NO_EVENTS: Events = _NobodyListens()


class Context(msgspec.Struct, frozen=True):
    """One reconcile: how to read and write, and why it happens."""

    client: ReconcileClient
    request: Request
    causes: Causes
    logger: ReconcileLogger
    reconcile_id: str
    #: Records events about objects: ``ctx.events.record(site, "Warning", "NoImage", "Deploying", "...")``.
    events: Events = NO_EVENTS
    #: The metrics of the manager; None outside of one.
    registry: Registry | None = None
    #: The name of the controller.
    controller: str = ""


class Reconciler(Protocol[T_co]):
    """Makes one object so: ``class SiteReconciler(Reconciler[Site])``."""

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Read the state, change what differs from what is wanted, and say when to look again. Failures are raised."""
        ...


#: A reconciler that needs no class.
ReconcileFunction: TypeAlias = Callable[[Context, Request], Awaitable[Outcome]]
