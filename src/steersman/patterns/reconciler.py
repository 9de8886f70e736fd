"""One reconcile of one object: run its states, apply and prune children, finalize, report.

Guarantees
- Every reconcile starts with the first state and reads the cluster. It takes no decisions from earlier reconciles.
- Steersman applies what a state declared when the state returns, whatever it returns. A state that raises applies nothing.
- **Steersman prunes only children of completed states.** Children stay if their state was not reached, waits, failed or raised.
  A reconcile that raised prunes nothing. One that stopped early prunes only children that it saw the completed state declare.
- A separate request sets the finalizer before any other write, and another removes it after all of them.
- The clean-up also runs for an object that the server deleted in spite of a new finalizer (see `machine.lost_objects`).
- A finalizer whose clean-up is complete is not called again in the same term, or its children would return while they are deleted.
- While the label `SUSPEND_LABEL` is set, and is not "false", nothing is applied, pruned or finalized.
- If a state changes the identity of its object (name, uid, version), the identity is restored and the state fails.
- A state that changes anything else of its object in memory is named once in the log (see `unwritten_changes`).
- A reconcile writes the status at most once, and only if it changed. It reports an error there, then raises it for a retry.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec

from steersman.aio import AwaitCheck
from steersman.controller import Blueprint, Context, Done, Outcome, Request, RequeueAfter, claim, controller_for
from steersman.errors import Forbidden, Invalid, NotCached
from steersman.objects import GroupVersionKind, Object
from steersman.patterns.children import ChildIdentity, Outputs
from steersman.patterns.children.apply import StateResult, apply_outputs
from steersman.patterns.children.deletion import delete_in_order, prune
from steersman.patterns.children.kept_children import keep_claimed
from steersman.patterns.children.membership import CLAIMED, CLAIMED_ANNOTATION
from steersman.patterns.children.memory import ChildMemory, Memories
from steersman.patterns.children.ownerless_children import delete_ownerless
from steersman.patterns.children.uncached_children import LOOK_AGAIN, delete_uncached
from steersman.patterns.events import (
    last_recorded,
    log_conditions,
    record_changes,
    record_loop,
    record_pruned,
    record_readiness,
    record_suspension,
)
from steersman.patterns.external import External, look_outside
from steersman.patterns.machine.definition import Machine, StateFunction
from steersman.patterns.machine.errors import is_error, own_namespace_ends, words_of
from steersman.patterns.machine.finalizer_handover import drop_finalizers, is_ending, is_guarded, set_finalizer
from steersman.patterns.machine.graph import StateNode
from steersman.patterns.machine.identity import Identity
from steersman.patterns.machine.lost_objects import lost_object
from steersman.patterns.machine.transitions import (
    Complete,
    Stopped,
    Transition,
    announce_pending,
    clean_up_transition,
    transition_of,
)
from steersman.patterns.metrics import MachineMetrics, ReconcilerMetrics
from steersman.patterns.status.conditions import (
    SUSPEND_LABEL,
    Observations,
    Visit,
    is_complete,
    observe_deletion,
    observe_states,
    observe_suspension,
    overwritten,
    suspension_of,
    with_loop,
)
from steersman.patterns.status.conflicts import write_unless_contested
from steersman.patterns.status.draft import StatusDraft, Tree, unreported, wrong_status
from steersman.patterns.unwritten_changes import UnwrittenChanges

_EARLIER_NAME = "if that is an earlier name of this program, list it in Manager(formerly=...)"
#: Seconds after which a looping object is reconciled again: longer than any delay of the loop throttle.
LOOP_LOOK = 90.0


class MachineReconciler:
    """Reconciles the objects of a machine."""

    def __init__(self, machine: Machine, memories: Memories) -> None:
        #: The states, the kinds of children, and how an object is deleted.
        self.machine = machine
        self._externals = tuple(
            cast("External[Any, Any]", source) for source in machine.sources if isinstance(source, External)
        )
        self._metrics = ReconcilerMetrics()
        self._memories = memories
        self._unwritten = UnwrittenChanges()
        self.leave = memories.leave
        self._checked = False

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Run one reconcile."""
        metrics, memory = self._metrics.get(ctx), self._memories.of(ctx)
        try:
            obj = await ctx.client.find(self.machine.kind, request.key)
        except NotCached:
            # A cluster-scoped child may name an owner in a namespace that another manager watches.
            return Done()
        if (lost := await lost_object(ctx, self.machine, memory, obj)) is not None:
            if ended := await self._of(ctx, lost, metrics, memory).end_of_lost():
                return ended  # as a finalizer would, the clean-up holds a later object of the same name back
            del memory.lost[request.key]
        if obj is None:
            if metrics is not None:
                metrics.gone(request)
            for external in self._externals:
                external.forget(request.key)
            await delete_ownerless(ctx, memory)
            memory.forget(request.key)
            return Done()
        if not self._checked:
            self._checked = True
            if self.machine.graph.reports and (words := unreported(self.machine.kind)):
                ctx.logger.warning("%s: %s", self.machine.kind.__name__, words)
        return await self._of(ctx, obj, metrics, memory).run()

    def _of(self, ctx: Context, obj: Object, metrics: MachineMetrics | None, memory: ChildMemory) -> _Reconcile:
        return _Reconcile(self.machine, ctx, obj, metrics, memory, self._externals, self._unwritten)

    def pending(self, ctx: Context, request: Request) -> tuple[ChildIdentity, ...]:
        """The children that no state declares anymore and that the next complete reconcile deletes."""
        return self._memories.of(ctx).pending.get(request.key, ())


def blueprint_of(machine: Machine) -> Blueprint:
    """The controller that runs a machine."""
    builder = controller_for(machine.kind, name=machine.name)
    memories = Memories(machine.children)
    memories.watch(builder)
    for source in machine.sources:
        builder.on(source)
    if machine.declare is not None:
        machine.declare(builder)
    blueprint = builder.run_with(MachineReconciler(machine, memories))
    produced = (*machine.children.kinds, *machine.children.retired)
    written = tuple(child.kind for child in produced)
    across = tuple(child.kind for child in produced if child.across_namespaces)
    conditions = machine.graph.conditions if machine.graph.reports else ()
    return msgspec.structs.replace(
        blueprint,
        watches=memories.local_watches(blueprint.watches),
        formerly=machine.formerly,
        writes=written,
        across_namespaces=across,
        conditions=conditions,
    )


class _Reconcile:
    """One reconcile of one object."""

    def __init__(
        self,
        machine: Machine,
        ctx: Context,
        obj: Object,
        metrics: MachineMetrics | None,
        memory: ChildMemory,
        externals: tuple[External[Any, Any], ...],
        unwritten: UnwrittenChanges,
    ) -> None:
        self._machine = machine
        self._graph = machine.graph
        self._ctx = ctx
        self._obj = obj
        self._metrics = metrics
        self._memory = memory
        self._externals = externals
        self._unwritten = unwritten
        self._finalizers = machine.finalizers(ctx.client.field_managers)
        self._visits: list[Visit] = []
        #: The declared children, each with its state.
        self._declared: dict[ChildIdentity, str] = {}
        #: The objects that the owner claims by their labels.
        self._claimed: dict[GroupVersionKind, list[Any]] = {}
        #: The uids of the applied children.
        self._applied: set[str] = set()
        #: Seconds until the status that is held back now may be written.
        self._again: float | None = None

    async def run(self) -> Outcome:
        machine, ctx = self._machine, self._ctx
        if (value := suspension_of(self._obj)) is not None:
            await self._report(self._draft(), observe_suspension(self._graph, value))
            return Done()
        if not self._memory.children.scopes_known:
            # Cluster-scoped children need the finalizer, so learn the scopes before the first write.
            await self._memory.learn_scopes(ctx.client)
        if self._obj.deleting:
            if is_guarded(self._obj, self._finalizers):
                return await self._delete() if await is_ending(ctx, self._obj) else RequeueAfter(LOOK_AGAIN)
            self._memory.newly_guarded.pop(ctx.request.key, None)  # the deletion came before the finalizer
            return Done()
        self._memory.cleaned_up.pop(ctx.request.key, None)  # a restored server may have lost the deletion
        if self._memory.children.needs_finalizer:
            self._memory.note_owner(ctx.request.key, self._obj.uid)
            await delete_ownerless(ctx, self._memory, owner_uid=self._obj.uid)
        needed = machine.needs_finalizer(self._memory.children)
        guarded = await set_finalizer(ctx, self._obj, self._finalizers, self._memory, needed=needed)
        if guarded is None:
            return Done()
        self._obj = guarded
        draft = self._draft()
        if self._externals:
            await self._look_outside()
        return await self._run_states(draft)

    async def _look_outside(self) -> None:
        """Look up external objects first: after a restart none are known, and conditions must not report them missing."""
        # Without a reported condition there is none that could flap, so do not wait.
        conditions = getattr(getattr(self._obj, "status", None), "conditions", None) or ()
        reported = self._graph.reports and any(condition.type == self._graph.ready for condition in conditions)
        await look_outside(self._externals, self._obj, wait=reported)

    # states

    async def _run_states(self, draft: StatusDraft) -> Outcome:
        await draft.begin()
        try:
            await self._claim()
            await self._visit_states()
            if words := overwritten(self._graph, self._obj, draft.present):
                self._ctx.logger.warning("%s: %s", self._ctx.request, words)
            await self._prune()
        except BaseException as error:
            if not is_error(error):
                raise
            stopped = Stopped("Error", words_of(error), wrong=True)
            if ending := own_namespace_ends(error, self._obj):
                words = f"its namespace {self._obj.key.namespace} is being deleted"
                stopped = Stopped("NamespaceTerminating", words)
            observations = self._observed(draft, self._stopped_by(stopped))
            await self._report_failure(draft, observations, wrong=not ending)
            if ending:
                return Done()  # nothing can be created here anymore, and the object will be gone soon
            raise
        observations = self._observed(draft, self._visits)
        last = self._visits[-1].transition
        wrong = isinstance(last, Stopped) and last.wrong
        try:
            await self._report(draft, observations, complete=is_complete(self._visits), wrong=wrong)
        except (Invalid, msgspec.ValidationError, UnicodeError) as error:
            # The server rejected what a state set in the status: report the error without it.
            problem = wrong_status(self._obj, error)
            stopped = Stopped("Error", words_of(problem), wrong=True)
            observations = self._observed(draft, self._stopped_by(stopped))
            await self._report_failure(draft, observations, after=draft.before)
            raise problem from None
        # A loop may end without an event: reconcile again so that its condition does not outlive it.
        unlooped = LOOP_LOOK if self._ctx.loop and draft.speaks else None
        later = [seconds for seconds in (self._again, last.after, unlooped) if seconds is not None]
        return RequeueAfter(min(later)) if later else Done()

    def _observed(self, draft: StatusDraft, visits: list[Visit]) -> Observations:
        """The conditions after a reconcile."""
        present = draft.present
        return with_loop(self._graph, observe_states(self._graph, visits, present.keys()), self._ctx.loop, present)

    async def _claim(self) -> None:
        """Adopt the orphans that the owner claims, before states look at them."""
        for child in self._memory.children.kinds:
            if child.claims is not None:
                kind = cast("type[Object]", child.kind)
                labels = child.claims(self._obj)
                await keep_claimed(self._ctx, self._obj, self._memory, kind)
                self._claimed[kind.gvk()] = await claim(
                    self._ctx, self._obj, kind, labels, mark=CLAIMED_ANNOTATION, part=CLAIMED
                )

    async def _visit_states(self) -> None:
        name: str | None = self._graph.first.name
        while name is not None:
            node = self._graph.node(name)
            transition = await self._visit(node)
            self._visits.append(Visit(node, transition))
            name = transition.follows if isinstance(transition, Complete) else None

    async def _visit(self, node: StateNode) -> Transition:
        began = asyncio.get_running_loop().time()
        try:
            returned, result = await self._call(node.name, self._machine.functions[node.name])
            return transition_of(self._graph, node, returned, result)
        finally:
            if self._metrics is not None:
                self._metrics.ran(node.name, began)

    async def _call(
        self, name: str, function: StateFunction, *, namespace_ends: bool = False, owner_is_gone: bool = False
    ) -> tuple[object, StateResult]:
        """Run a state, then apply the children that it declared; those that cannot exist are skipped."""
        outputs = Outputs(
            self._obj,
            self._memory.children,
            state=name,
            ctx=self._ctx,
            taken={} if namespace_ends else self._declared,
            claimed=self._claimed,
            namespace_ends=namespace_ends,
            owner_is_gone=owner_is_gone,
        )
        identity, before = Identity(self._obj), self._unwritten.before(self._obj, name)
        with AwaitCheck():
            returned: object = await function(self._obj, outputs)
        identity.check(self._obj, name, (output.child for output in outputs.declared))
        await self._unwritten.check(self._ctx, self._obj, name, before)
        result = await apply_outputs(self._ctx, self._obj, outputs, self._memory, labels=self._machine.labels_states)
        self._applied.update(child.uid for child in result.children)
        record_changes(self._ctx, self._obj, result)
        return returned, result

    async def _prune(self) -> None:
        visits, key, uid = self._visits, self._ctx.request.key, self._obj.uid
        visited = {visit.node.name for visit in visits}
        complete = is_complete(visits)
        seen = self._memory.declaration_history.seen(key, uid)
        pruning = await prune(
            self._ctx,
            self._obj,
            self._memory,
            self._declared,
            applied=self._applied,
            states=None
            if complete
            else {visit.node.name for visit in visits if isinstance(visit.transition, Complete)},
            spared=[name for name in self._graph.names if name not in visited],
            seen=None if complete else seen,
            finished=isinstance(visits[-1].transition, Stopped) and visits[-1].transition.finished,
            guarded=is_guarded(self._obj, self._finalizers),
        )
        self._memory.declaration_history.note(
            key, uid, self._declared, complete=complete, pruned=[member.identity for member in pruning.pruned]
        )
        self._memory.pending.pop(key, None)
        if pruning.pending:
            self._memory.pending[key] = pruning.pending
            last = visits[-1]
            visits[-1] = Visit(last.node, announce_pending(last.transition, pruning.pending))
        record_pruned(self._ctx, self._obj, pruning.pruned)

    def _stopped_by(self, stopped: Stopped) -> list[Visit]:
        """The states that ran, with ``stopped`` for the one that raised: the first without a transition."""
        visits = self._visits
        if visits and isinstance(visits[-1].transition, Complete) and visits[-1].transition.follows is not None:
            return [*visits, Visit(self._graph.node(visits[-1].transition.follows), stopped)]
        if not visits:
            return [Visit(self._graph.first, stopped)]
        # Pruning failed after all states had their transitions.
        return [*visits[:-1], Visit(visits[-1].node, stopped)]

    # deletion

    async def _delete(self) -> Outcome:
        draft = self._draft()
        try:
            stopped = await self._end()
        except BaseException as error:
            if is_error(error):
                words = f"the clean-up failed: {words_of(error)}"
                await self._report_failure(draft, observe_deletion(self._graph, "Error", words))
            raise
        if stopped is not None:
            return await self._still_there(draft, stopped)
        if other := await drop_finalizers(self._ctx, self._obj, self._finalizers):
            return await self._still_there(draft, Stopped("Deleting", f"waits for {other}; {_EARLIER_NAME}"))
        self._memory.newly_guarded.pop(self._ctx.request.key, None)
        if self._metrics is not None and set(self._obj.metadata.finalizers or ()) <= set(self._finalizers.all):
            self._metrics.gone(self._ctx.request)
        return Done()

    async def end_of_lost(self) -> Outcome | None:
        """Clean up for an object that the server deleted in spite of its finalizer. None once that is complete."""
        if (value := suspension_of(self._obj)) is not None:
            words = "%s: no clean-up runs for the deleted object with uid %s: it had the label %s=%s"
            self._ctx.logger.warning(words, self._ctx.request, self._obj.uid, SUSPEND_LABEL, value)
            return None
        if not self._memory.children.scopes_known:
            await self._memory.learn_scopes(self._ctx.client)
        if (stopped := await self._end(lost=True)) is None:
            return None
        words = "%s: the clean-up for the deleted object with uid %s is not complete: %s"
        self._ctx.logger.warning(words, self._ctx.request, self._obj.uid, stopped.message)
        return RequeueAfter(LOOK_AGAIN if stopped.after is None else stopped.after)

    async def _end(self, *, lost: bool = False) -> Stopped | None:
        """Run the clean-up and delete the children that no owner reference holds. None once that is complete."""
        machine, obj = self._machine, self._obj
        if machine.clean_up is not None and self._memory.cleaned_up.get(obj.key) != obj.uid:
            transition = await self._clean_up(machine.clean_up, lost=lost)
            if isinstance(transition, Stopped):
                return transition
            # Another call would declare its children again while they are being deleted.
            self._memory.cleaned_up[obj.key] = obj.uid
        ordered, searched = machine.deletes_children(self._memory.children), self._memory.was_searched(obj)
        if ordered or not searched:
            # An earlier version may have had far children, of which nothing but the search tells when they are gone.
            order = (*self._graph.names, *filter(None, (self._graph.finalizer,)))
            if left := await delete_in_order(self._ctx, obj, self._memory, order, far_only=not ordered):
                return Stopped("Deleting", _listed(left), after=None if searched else LOOK_AGAIN)
        # If nothing declared explains the finalizer, an earlier version had children that only a label ties to the owner.
        unexplained = not machine.needs_finalizer(self._memory.children)
        left = await delete_uncached(self._ctx, obj, self._memory.children, unexplained=unexplained)
        return Stopped("Deleting", _listed(left), after=LOOK_AGAIN) if left else None

    async def _clean_up(self, function: StateFunction, *, lost: bool) -> Transition:
        """Run the finalizer, once more without new children if their namespace is being deleted: they cannot be created.

        The garbage collector would delete the new children of an owner that is gone, so these are left out too.
        """
        name = self._graph.finalizer or ""
        if lost:
            return clean_up_transition(self._graph, *await self._call(name, function, owner_is_gone=True))
        try:
            return clean_up_transition(self._graph, *await self._call(name, function))
        except Forbidden as error:
            if not own_namespace_ends(error, self._obj):
                raise
        where = f"namespace {self._obj.key.namespace} is being deleted"
        transition = clean_up_transition(self._graph, *await self._call(name, function, namespace_ends=True))
        if isinstance(transition, Stopped):
            hint = f"{where}, so nothing can be created in it: {name} can return Done() if out.namespace_ends"
            message = f"{transition.message}; {hint}" if transition.message else hint
            return msgspec.structs.replace(transition, message=message)
        self._ctx.logger.warning("%s: %s, so new children of %s were skipped", self._ctx.request, where, name)
        return transition

    async def _still_there(self, draft: StatusDraft, stopped: Stopped) -> Outcome:
        reason = stopped.reason if stopped.wrong else "Deleting"
        await self._report(draft, observe_deletion(self._graph, reason, stopped.message), wrong=stopped.wrong)
        return RequeueAfter(stopped.after) if stopped.after is not None else Done()

    # reporting

    def _draft(self) -> StatusDraft:
        graph = self._graph
        known = (*graph.conditions, graph.suspended, graph.looping)
        draft = StatusDraft(self._ctx, self._obj, known, formerly=self._machine.formerly, silent=not graph.reports)
        if self._metrics is not None:
            before = draft.present.get(self._graph.ready, {})
            ready = before.get("status") == "True" and before.get("observedGeneration", -1) == self._obj.generation
            self._metrics.seen(self._ctx.request, self._obj, ready=ready)
        return draft

    async def _report(
        self,
        draft: StatusDraft,
        observations: Observations,
        *,
        complete: bool = False,
        wrong: bool = False,
        after: Tree | None = None,
    ) -> None:
        ready, metrics = observations.get(self._graph.ready), self._metrics
        known = metrics.last(self._ctx.request) if metrics is not None else None
        if metrics is not None:
            metrics.reported(self._ctx.request, ready)
        held = await write_unless_contested(
            self._ctx, self._obj, self._memory.conflicts, draft, observations, complete=complete, after=after
        )
        if held is not None:
            self._again = held
            return
        if draft.speaks:
            before = draft.present
            log_conditions(self._ctx, before, observations)
            name = self._graph.suspended
            resumed = name in draft.taken_away
            record_loop(
                self._ctx, self._obj, observations.get(self._graph.looping), known=self._graph.looping in before
            )
            record_suspension(self._ctx, self._obj, observations.get(name), known=name in before, resumed=resumed)
            known = last_recorded(before.get(self._graph.ready))
        elif known is None:
            known = ready  # unknown whether an event was recorded before the program started
        record_readiness(self._ctx, self._obj, ready, known, wrong=wrong)

    async def _report_failure(
        self, draft: StatusDraft, observations: Observations, *, wrong: bool = True, after: Tree | None = None
    ) -> None:
        """Report an error that is about to be raised. A failure to report is logged, so that it does not hide the error."""
        try:
            await self._report(draft, observations, wrong=wrong, after=after)
        except Exception as failure:  # noqa: BLE001 - as above
            self._ctx.logger.warning("%s: its status could not be written: %s", self._ctx.request, failure)


def _listed(words: tuple[str, ...], limit: int = 3) -> str:
    shown = ", ".join(words[:limit])
    return f"{shown} and {len(words) - limit} more" if len(words) > limit else shown
