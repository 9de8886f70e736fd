"""What a reconcile is given, and what a reconciler is."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from steersman.controller.causes import Causes, Request
from steersman.controller.outcomes import Outcome
from steersman.controller.reconcile_client import ReconcileClient

T_co = TypeVar("T_co", covariant=True)


class ReconcileLogger(logging.LoggerAdapter[logging.Logger]):
    """Adds controller, key, reconcile id and causes to every record, beside what the call itself adds."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Join both sets of fields; those of the call win."""
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


class Context(msgspec.Struct, frozen=True):
    """One reconcile: how to read and write, and why it happens."""

    client: ReconcileClient
    request: Request
    causes: Causes
    logger: ReconcileLogger
    reconcile_id: str


class Reconciler(Protocol[T_co]):
    """Makes one object so: ``class SiteReconciler(Reconciler[Site])``."""

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Read the state, change what differs from what is wanted, and say when to look again. Failures are raised."""
        ...


#: A reconciler that needs no class.
ReconcileFunction: TypeAlias = Callable[[Context, Request], Awaitable[Outcome]]
