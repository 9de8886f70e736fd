"""Runs a manager once to find out what it would do, without writing or waiting.

Guarantees
- Every object that a controller would reconcile at its start is reconciled. It is reconciled again, at most `ROUNDS`
  times, while that changes the plan and the reconcile requeues or has changed its own object.
- It ends: what a reconcile would wait for is recorded, not waited for. Reconciles beyond the time limit are named.
- A failed reconcile fails alone, and its error is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import msgspec

from steersman.aio import Supervisor
from steersman.cache import Informer
from steersman.cli.failure import Failure
from steersman.cli.intentions import CURRENT, Intentions, Reconcile
from steersman.client import Client
from steersman.controller import Context, ControllerPlan, Done, Outcome, Request, Requeue, RequeueAfter
from steersman.controller.attempts import Conflicted, Failed, Finished, attempt
from steersman.manager import Manager
from steersman.patterns.children import Identity
from steersman.patterns.external import External
from steersman.patterns.reconciler import MachineReconciler

#: How often one object is reconciled.
ROUNDS = 8
_LOOK = 0.02
#: The phases of an external object during its first lookup: only that is waited for.
_LOOKED_FOR = frozenset({"unknown", "finding"})
_PATIENCE = 10.0


class Look(msgspec.Struct):
    """How the rehearsal of one object by one controller ended."""

    who: Reconcile
    outcome: Outcome | None = None
    error: str = ""
    #: Whether it is still running.
    under_way: bool = True
    #: How often it was reconciled: once, and once more for each external result.
    times: int = 1
    #: The children to delete once everything is ready.
    pending: tuple[Identity, ...] = ()


class Rehearsal:
    """Runs a manager's controllers with a client that writes nothing."""

    def __init__(self, intentions: Intentions) -> None:
        self._intentions = intentions
        self.looks: dict[Reconcile, Look] = {}
        #: Failed lookups of external objects, and why.
        self.failed_looks: list[tuple[str, str]] = []
        #: The caches at the end.
        self.informers: tuple[Informer[Any], ...] = ()

    async def run(self, manager: Manager, client: Client, *, within: float) -> None:
        """Reconcile everything once; `Failure` if the controllers cannot start. Changes the manager's plans."""
        for plan in manager.plans:
            await manager.remove(plan.name)
            for source in plan.sources:
                if isinstance(source, External):
                    cast("External[Any, Any]", source).rehearse()
            manager.add(msgspec.structs.replace(plan, reconciler=_Looking(plan, self)))
        async with Supervisor() as tasks:
            tasks.start(manager.run(client, signals=False), name="plan: manager")
            try:
                async with asyncio.timeout(within):
                    await self._ended(manager)
            except TimeoutError:
                if not self.looks:
                    raise Failure(f"nothing was reconciled within {within:g} s{_why(manager)}") from None
            self.informers = manager.informers
            self.failed_looks = [
                (f"{source.name} of {key.kind} {key.key}", why)
                for source in _externals(manager)
                for key, why in source.failed_looks()
            ]
            tasks.cancel()

    async def _ended(self, manager: Manager) -> None:
        loop = asyncio.get_running_loop()
        patience = loop.time() + _PATIENCE
        while not _is_done(manager):
            await asyncio.sleep(_LOOK)
            if not manager.controllers and loop.time() < patience:
                continue
            if why := _cannot_begin(manager, late=loop.time() > patience):
                raise Failure(why)

    async def look(self, plan: ControllerPlan, ctx: Context, request: Request) -> None:
        """Reconcile one object as long as that changes the plan, and record how it ended."""
        who = Reconcile(plan.name, plan.primary.gvk(), request.key)
        look = self.looks.get(who)
        if look is not None and (look.times >= ROUNDS or not any(cause.what == "external" for cause in ctx.causes)):
            return
        look = self.looks[who] = Look(who, times=look.times + 1 if look is not None else 1)
        token = CURRENT.set(who)
        try:
            for _ in range(ROUNDS):
                before, own = self._intentions.changes_of(who), self._own(who)
                result = await attempt(plan.reconciler.reconcile(ctx, request), timeout=plan.options.timeout)
                look.error, look.outcome = "", None
                match result:
                    case Finished(outcome):
                        look.outcome = outcome
                        again = isinstance(outcome, Requeue | RequeueAfter) or self._own(who) != own
                    case Conflicted(error):
                        look.error, again = str(error), True
                        before = -1
                    case Failed(error):
                        look.error, again = f"{type(error).__name__}: {error}", False
                if not again or self._intentions.changes_of(who) == before:
                    break
        finally:
            CURRENT.reset(token)
        if isinstance(plan.reconciler, MachineReconciler):
            look.pending = plan.reconciler.pending(ctx, request)
        look.under_way = False

    def _own(self, who: Reconcile) -> Any:
        """The planned state of the reconciled object without its status, whose changes do not trigger a reconcile."""
        found = self._intentions.find(who.kind, who.key)
        if found is None or found.after is None:
            return found is None
        metadata = {name: value for name, value in found.after["metadata"].items() if name != "resourceVersion"}
        return {**found.after, "metadata": metadata, "status": None}


class _Looking:
    """A reconciler that runs the rehearsal of an object."""

    def __init__(self, plan: ControllerPlan, rehearsal: Rehearsal) -> None:
        self._plan = plan
        self._rehearsal = rehearsal

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Rehearse, and always return Done."""
        await self._rehearsal.look(self._plan, ctx, request)
        return Done()


def _is_done(manager: Manager) -> bool:
    controllers = manager.controllers
    if len(controllers) != len(manager.plans) or not all(each.working and not each.busy for each in controllers):
        return False
    return all(phase not in _LOOKED_FOR for source in _externals(manager) for _, phase, _ in source.phases())


def _externals(manager: Manager) -> list[External[Any, Any]]:
    return [
        cast("External[Any, Any]", source)
        for plan in manager.plans
        for source in plan.sources
        if isinstance(source, External)
    ]


def _cannot_begin(manager: Manager, *, late: bool) -> str:
    missing = _names(informer.gvk.kind for informer in manager.informers if not informer.served)
    if missing:
        return (
            f"the server does not serve {missing}: install the definitions first (steersman generate crds), then plan"
        )
    told = _why(manager)
    return f"the controllers cannot start{told}" if told and (late or "is forbidden" in told) else ""


def _why(manager: Manager) -> str:
    errors = [scope.last_error for informer in manager.informers for scope in informer.statistics().scopes]
    return next((f": {error}" for error in errors if error), "")


def _names(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
