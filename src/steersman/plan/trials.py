"""Runs a manager once to find out what it would do, without writing or waiting.

Guarantees
- Every object that a controller would reconcile at its start is reconciled. It is reconciled again, at most `ROUNDS`
  times, while that changes the plan and the reconcile requeues or has changed its own object.
- The order is always the same: one object after the other, by controller and key. So objects that affect each other
  give the same plan each time. Only a reconcile that takes longer than `TURN` seconds no longer holds up the next.
- It ends: what a reconcile would wait for is recorded, not waited for. Reconciles that did not end or begin within the
  time limit are named. A reconcile that swallows its cancellation is an error that names it, its controller and its
  line.
- A failed reconcile fails alone, and its error is kept.
- Externals only look up while it runs, and work as before afterwards. Daemons and jobs of `while_leading` do not start.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any, cast

import msgspec

from steersman.aio import Supervisor
from steersman.cache import Informer
from steersman.client import Client
from steersman.controller import (
    Blueprint,
    Cause,
    Context,
    Controller,
    Done,
    Outcome,
    Request,
    Requeue,
    RequeueAfter,
)
from steersman.controller.results import Conflicted, Failure, result_of
from steersman.errors import PlanFailed, ReconcileStuck
from steersman.manager import LAST_SECONDS, Manager
from steersman.patterns import ChildIdentity, DaemonRuns, External, MachineReconciler
from steersman.plan.planned_objects import CURRENT, PlannedObjects, Reconcile

#: How often one object is reconciled.
ROUNDS = 8
#: Seconds until the next object is reconciled beside one that takes long.
TURN = 5.0
_POLL = 0.02
#: The progress of an external object during its first lookup: only that is waited for.
_LOOKED_FOR = frozenset({"unknown", "finding"})
_PATIENCE = 10.0


class Trial(msgspec.Struct):
    """How the reconcile of one object by one controller ended."""

    reconcile: Reconcile
    outcome: Outcome | None = None
    error: str = ""
    #: Whether it is still running.
    running: bool = True
    #: How often it was reconciled: once, and once more for each external result.
    times: int = 1
    #: The children to delete once everything is ready.
    pending: tuple[ChildIdentity, ...] = ()


class Trials:
    """Runs a manager's controllers with a client that writes nothing."""

    def __init__(self, planned: PlannedObjects) -> None:
        self._planned = planned
        self._found: dict[Reconcile, Trial] = {}
        #: What waits for its turn, and why it is reconciled.
        self._waiting: dict[Reconcile, tuple[Request, tuple[Cause, ...]]] = {}
        #: Whose turn it is; set when the reconcile has ended.
        self._turns: dict[Reconcile, asyncio.Event] = {}
        #: Failed lookups of external objects, and why.
        self.failed_lookups: list[tuple[str, str]] = []
        #: The caches at the end.
        self.informers: tuple[Informer[Any], ...] = ()

    @property
    def all(self) -> tuple[Trial, ...]:
        """One for each reconciled object of each controller."""
        return tuple(self._found.values())

    async def run(self, manager: Manager, client: Client, *, within: float) -> None:
        """Reconcile everything once; `PlanFailed` if the controllers cannot start. Changes the manager's blueprints."""
        async with AsyncExitStack() as stack:
            for external in _externals(manager):
                stack.enter_context(external.lookups_only())
            for daemons in _daemons(manager):
                stack.enter_context(daemons.not_started())
            for blueprint in manager.blueprints:
                await manager.remove(blueprint.name)
                manager.add(msgspec.structs.replace(blueprint, reconciler=_TrialReconciler(blueprint, self)))
            tasks = await stack.enter_async_context(Supervisor())
            work = tasks.start(manager.run(client, signals=False), name="plan: manager")
            try:
                async with asyncio.timeout(within):
                    await self._ended(manager)
            except TimeoutError:
                if not self._found:
                    raise PlanFailed(f"nothing was reconciled within {within:g} s{_why(manager)}") from None
                for late in (*self._turns, *self._waiting):
                    self._found.setdefault(late, Trial(late))
            finally:
                self._keep(manager)
                tasks.cancel()
                await asyncio.wait((work,), timeout=LAST_SECONDS)
                if not work.done():
                    stack.pop_all()  # the exit would wait for the task, and Python cannot end it
                    raise ReconcileStuck(
                        f"{manager.running_reconciles() or 'a stage of before_leading'} did not end within"
                        f" {LAST_SECONDS:g} s after its cancellation; it must let asyncio.CancelledError pass"
                    )

    def _keep(self, manager: Manager) -> None:
        """Keep what ends with the manager."""
        self.informers = manager.informers
        self.failed_lookups = [
            (f"{external.name} of {key.kind} {key.key}", why)
            for external in _externals(manager)
            for key, why in external.failed_lookups()
        ]

    async def _ended(self, manager: Manager) -> None:
        """Reconcile what the controllers ask for, round by round."""
        places = {blueprint.name: place for place, blueprint in enumerate(manager.blueprints)}
        while True:
            await self._idle(manager)
            if not self._waiting:
                return
            controllers = {controller.name: controller for controller in manager.controllers}
            for this in sorted(self._waiting, key=lambda each: (places[each.controller], each.key)):
                await self._take_turn(this, controllers[this.controller])

    async def _idle(self, manager: Manager) -> None:
        loop = asyncio.get_running_loop()
        patience = loop.time() + _PATIENCE
        while not _is_done(manager):
            await asyncio.sleep(_POLL)
            if not manager.controllers and loop.time() < patience:
                continue
            if why := _cannot_begin(manager, late=loop.time() > patience):
                raise PlanFailed(why)

    async def _take_turn(self, this: Reconcile, controller: Controller) -> None:
        request, causes = self._waiting.pop(this)
        ended = self._turns[this] = asyncio.Event()
        for cause in causes:
            controller.add(request, cause)
        try:
            async with asyncio.timeout(TURN):
                await ended.wait()
        except TimeoutError:
            pass  # it goes on beside the next one

    async def reconcile(self, blueprint: Blueprint, ctx: Context, request: Request) -> None:
        """Reconcile an object when it is its turn; otherwise note that it waits."""
        this = Reconcile(blueprint.name, blueprint.primary.gvk(), request.key)
        ended = self._turns.pop(this, None)
        if ended is not None:
            try:
                await self._try(this, blueprint, ctx, request)
            finally:
                ended.set()
            return
        trial = self._found.get(this)
        external = any(cause.what == "external" for cause in ctx.causes)
        if trial is None or (external and trial.times < ROUNDS):
            self._waiting[this] = (request, tuple(ctx.causes))

    async def _try(self, this: Reconcile, blueprint: Blueprint, ctx: Context, request: Request) -> None:
        """Reconcile one object as long as that changes the plan, and record how it ended."""
        trial = self._found.get(this)
        trial = self._found[this] = Trial(this, times=trial.times + 1 if trial is not None else 1)
        token = CURRENT.set(this)
        try:
            for _ in range(ROUNDS):
                before, own = self._planned.changes_of(this), self._own(this)
                result = await result_of(
                    blueprint.reconciler.reconcile(ctx, request), timeout=blueprint.options.timeout
                )
                trial.error, trial.outcome = "", None
                match result:
                    case Done() | Requeue() | RequeueAfter():
                        trial.outcome = result
                        again = isinstance(result, Requeue | RequeueAfter) or self._own(this) != own
                    case Conflicted(error):
                        trial.error, again = str(error), True
                        before = -1
                    case Failure(error):
                        trial.error, again = f"{type(error).__name__}: {error}", False
                if not again or self._planned.changes_of(this) == before:
                    break
        finally:
            CURRENT.reset(token)
        if isinstance(blueprint.reconciler, MachineReconciler):
            trial.pending = blueprint.reconciler.pending(ctx, request)
        trial.running = False

    def _own(self, this: Reconcile) -> Any:
        """The planned state of the reconciled object without its status, whose changes do not trigger a reconcile."""
        found = self._planned.find(this.kind, this.key)
        if found is None or found.after is None:
            return found is None
        metadata = {name: value for name, value in found.after["metadata"].items() if name != "resourceVersion"}
        return {**found.after, "metadata": metadata, "status": None}


class _TrialReconciler:
    """A reconciler that runs the trial of an object."""

    def __init__(self, blueprint: Blueprint, trials: Trials) -> None:
        self._blueprint = blueprint
        self._trials = trials

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Run the trial, and always return Done."""
        await self._trials.reconcile(self._blueprint, ctx, request)
        return Done()


def _is_done(manager: Manager) -> bool:
    controllers = manager.controllers
    if len(controllers) != len(manager.blueprints) or not all(
        controller.working and not controller.busy for controller in controllers
    ):
        return False
    return all(
        progress not in _LOOKED_FOR for external in _externals(manager) for _, progress, _ in external.progress()
    )


def _externals(manager: Manager) -> list[External[Any, Any]]:
    return [
        cast("External[Any, Any]", source)
        for blueprint in manager.blueprints
        for source in blueprint.sources
        if isinstance(source, External)
    ]


def _daemons(manager: Manager) -> list[DaemonRuns[Any]]:
    sources = [source for blueprint in manager.blueprints for source in blueprint.sources]
    return [cast("DaemonRuns[Any]", source) for source in sources if isinstance(source, DaemonRuns)]


def _cannot_begin(manager: Manager, *, late: bool) -> str:
    missing = ", ".join(dict.fromkeys(informer.gvk.kind for informer in manager.informers if not informer.served))
    if missing:
        return (
            f"the server does not serve {missing}: install the definitions first (steersman generate crds), then plan"
        )
    why = _why(manager)
    return f"the controllers cannot start{why}" if why and (late or "is forbidden" in why) else ""


def _why(manager: Manager) -> str:
    errors = [scope.last_error for informer in manager.informers for scope in informer.statistics().scopes]
    return next((f": {error}" for error in errors if error), "")
