"""The context of a reconcile, and the interface of a reconciler."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from steersman.controller.causes import Causes, Request
from steersman.controller.outcomes import Outcome
from steersman.controller.writes.reconcile_client import ReconcileClient
from steersman.objects import Key, Object, Unstructured
from steersman.telemetry import Registry

if TYPE_CHECKING:
    from steersman.controller.sources.mappers import Stores
    from steersman.kinds.core_v1 import ObjectReference

T_co = TypeVar("T_co", covariant=True)


class ReconcileLogger(logging.LoggerAdapter[logging.Logger]):
    """Adds controller, key, reconcile id and causes to every log record, in addition to the call's own fields."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Join both sets of fields; those of the call take precedence."""
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


class Events(Protocol):
    """Records Kubernetes Events about an object; see `steersman.client.EventRecorder`."""

    def record(
        self,
        regarding: Object | Unstructured | ObjectReference,
        type: Literal["Normal", "Warning"],  # noqa: A002 - Kubernetes' own noun
        reason: str,
        action: str,
        note: str,
        related: Object | Unstructured | ObjectReference | None = None,
    ) -> None:
        """Record that ``action`` was taken or failed, and why. Returns at once and never raises."""
        ...


class _NoEvents:
    def record(self, *event: object, **named: object) -> None:
        """Do nothing."""


#: For reconciles outside a manager: drops all events.
NO_EVENTS: Events = _NoEvents()


class Context(msgspec.Struct, frozen=True):
    """The context of one reconcile: how to read and write, and why it happens.

    ```python
    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        await ctx.client.apply(deployment_for(site), owner=site)
        ctx.logger.info("deployed %s, because %s", site.spec.image, ctx.causes)
        return Done()
    ```
    """

    #: Reads the cache, which is never older than this program's own writes; ``client.live`` reads from the server.
    client: ReconcileClient
    request: Request
    causes: Causes
    logger: ReconcileLogger
    reconcile_id: str
    #: Records events about objects: ``ctx.events.record(site, "Warning", "NoImage", "Deploying", "...")``.
    events: Events = NO_EVENTS
    #: The metrics of the manager; None outside a manager.
    registry: Registry | None = None
    #: The name of the controller.
    controller: str = ""
    #: Why the key is throttled, if every reconcile of it writes and triggers the next; empty otherwise.
    loop: str = ""


class Reconciler(Protocol[T_co]):
    """Makes one object match its spec; a plain async function with the same parameters does, too.

    ```python
    class SiteReconciler(Reconciler[Site]):
        async def reconcile(self, ctx: Context, request: Request) -> Done: ...

    manager.controller(Site).owns(Deployment).run_with(SiteReconciler())
    ```

    It gets a key and no event, so it reads the current state and corrects what differs. It may run at any time and any number
    of times, but never twice at once for one key.
    """

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Read the state, change what differs from the spec, and return when to run again.

        - `Done`: when something changes.
        - `Requeue`: soon, with backoff.
        - `RequeueAfter`: after this many seconds.

        An exception is a failure of this key alone, and Steersman retries it with backoff: a `Conflict` without an error in the
        log, a `TerminalError` not before something changes.
        """
        ...


@runtime_checkable
class LeavingReconciler(Protocol):
    """A reconciler with a memory of keys, of which another process may have some later."""

    def leave(self, stores: Stores, concerns: Callable[[Key], bool]) -> None:
        """Forget these keys: from now on another process reconciles them."""
        ...


async def reconcile_in(ctx: Context, reconciler: Reconciler[Any]) -> Outcome:
    """Run one reconcile, in which `current_context` returns its context."""
    token = _current.set(ctx)
    try:
        return await reconciler.reconcile(ctx, ctx.request)
    finally:
        _current.reset(token)


def current_context() -> Context | None:
    """The context of the reconcile that calls this, also in the tasks and threads that it started; None outside one."""
    return _current.get()


_current: ContextVar[Context | None] = ContextVar("steersman_reconcile", default=None)

#: A reconciler as a plain function.
ReconcileFunction: TypeAlias = Callable[[Context, Request], Awaitable[Outcome]]
