"""One pass over one object: run its states, apply and prune children, finalize, report. The shell around pure parts.

Guarantees
- Every pass begins with the first state and finds out from the world; nothing but the world is remembered.
- What a state declared is applied when it returns, whatever it returns; of a state that raises, nothing is.
- **Only what a state completed is pruned**: children of a state that was not reached, waits, failed or raised stay. A pass
  that raised prunes nothing, and one that stopped early only what it saw the completed state declare before.
- The finalizer is set by a request of its own before anything else happens, and taken away after everything else.
- While the label `SUSPEND_LABEL` is there, and not "false", nothing is applied, pruned or finalized.
- An object whose name, or whatever else tells it from others, a state changed is put right, and the state is in error.
- One status write a pass, none if nothing changed; what went wrong is in it, and is raised for the runtime to try again.
"""

from __future__ import annotations

import asyncio
from operator import attrgetter

import msgspec

from steersman.controller import Context, Done, Outcome, Request, RequeueAfter, TerminalError
from steersman.objects import Object
from steersman.objects.errors import AlreadyExists, Conflict, Forbidden, Invalid
from steersman.patterns.applying import PhaseResult, apply_outputs
from steersman.patterns.children import Identity
from steersman.patterns.conditions import (
    Observations,
    Visit,
    is_complete,
    observe_deletion,
    observe_pass,
    observe_suspension,
    suspension_of,
)
from steersman.patterns.contested_status import write_unless_contested
from steersman.patterns.declarations import Declarations
from steersman.patterns.external import look_outside
from steersman.patterns.finalizers import add_finalizer, has_finalizer, remove_finalizer
from steersman.patterns.graph import StateNode
from steersman.patterns.judging import Complete, Stopped, Verdict, judge, judge_clean_up
from steersman.patterns.leftovers import LOOK_AGAIN, delete_unseen
from steersman.patterns.machine import Machine, StateFunction
from steersman.patterns.outputs import Outputs
from steersman.patterns.pruning import delete_in_order, prune
from steersman.patterns.status import StatusDraft, Tree
from steersman.patterns.tally import Tallies, Tally
from steersman.patterns.telling import last_told, tell_changes, tell_pruned, tell_readiness, tell_suspension


class MachineReconciler:
    """Reconciles the objects of a machine."""

    def __init__(self, machine: Machine) -> None:
        #: What it runs: states, kinds of children, how it is deleted.
        self.machine = machine
        self._tallies = Tallies()
        self._declarations = Declarations()

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Make one pass."""
        tally = self._tallies.get(ctx)
        obj = await ctx.client.find(self.machine.kind, request.key)
        if obj is None:
            if tally is not None:
                tally.gone(request)
            for external in self.machine.externals:
                external.forget(request.key)
            self._declarations.forget(request.key)
            return Done()
        return await _Pass(self.machine, ctx, obj, tally, self._declarations).run()


class _Pass:
    """One pass over one object."""

    def __init__(
        self, machine: Machine, ctx: Context, obj: Object, tally: Tally | None, declarations: Declarations
    ) -> None:
        self._machine = machine
        self._graph = machine.graph
        self._ctx = ctx
        self._obj = obj
        self._tally = tally
        self._declarations = declarations
        self._visits: list[Visit] = []
        #: Which state declared what.
        self._declared: dict[Identity, str] = {}
        #: The uids of what was applied.
        self._applied: set[str] = set()
        #: Seconds after which the status is to be written that is held back now.
        self._again: float | None = None

    async def run(self) -> Outcome:
        machine, ctx = self._machine, self._ctx
        value = suspension_of(self._obj)
        if value is not None:
            await self._report(self._draft(), observe_suspension(self._graph, value))
            return Done()
        if not machine.children.scopes_known:
            # what is cluster-scoped needs the finalizer, and nothing is written by guess
            await machine.children.learn_scopes(ctx.client)
        if self._obj.deleting:
            ours = any(has_finalizer(self._obj, name) for name in self._finalizers)
            return await self._delete() if ours else Done()
        if machine.needs_finalizer and not has_finalizer(self._obj, machine.finalizer):
            self._obj = await add_finalizer(ctx.client, self._obj, machine.finalizer)
        if machine.retired_finalizers:
            left = await remove_finalizer(ctx.client, self._obj, *machine.retired_finalizers)
            if left is None:
                return Done()
            self._obj = left
        if machine.externals:
            await self._look_outside()
        return await self._run_states()

    @property
    def _finalizers(self) -> tuple[str, ...]:
        return (self._machine.finalizer, *self._machine.retired_finalizers)

    async def _look_outside(self) -> None:
        """After a restart nothing is known: what is there is looked for before conditions say that it is not."""
        cause = (self._machine.kind.gvk(), self._obj.key, "object", "appeared")
        appeared = any((each.kind, each.key, each.what, each.event) == cause for each in self._ctx.causes)
        # an object that was never reported on has no condition that could be wrong for a moment
        conditions = getattr(getattr(self._obj, "status", None), "conditions", None) or ()
        reported = self._graph.reports and any(each.type == self._graph.ready for each in conditions)
        await look_outside(self._machine.externals, self._obj, wait=reported, appeared=appeared)

    # the states

    async def _run_states(self) -> Outcome:
        draft = self._draft()
        await draft.begin()
        present = draft.present.keys()
        try:
            await self._visit_states()
            await self._prune()
        except Exception as error:
            if _is_race(error):
                raise
            stopped = Stopped("Error", _words(error), wrong=True)
            if ending := _namespace_ends(error):
                stopped = Stopped("NamespaceTerminating", "its namespace is being deleted")
            observations = observe_pass(self._graph, self._stopped_by(stopped), present)
            await self._report_failure(draft, observations, wrong=not ending)
            if ending:
                return Done()  # nothing can be made here any more, and soon the object is gone too
            raise
        observations = observe_pass(self._graph, self._visits, present)
        last = self._visits[-1].verdict
        wrong = isinstance(last, Stopped) and last.wrong
        try:
            await self._report(draft, observations, complete=is_complete(self._visits), wrong=wrong)
        except (Invalid, msgspec.ValidationError, UnicodeError) as error:
            # what a state set in the status is not allowed there: said without it
            stopped = Stopped("Error", _words(error), wrong=True)
            observations = observe_pass(self._graph, self._stopped_by(stopped), present)
            await self._report_failure(draft, observations, after=draft.before)
            raise
        later = [each for each in (self._again, last.after) if each is not None]
        return RequeueAfter(min(later)) if later else Done()

    async def _visit_states(self) -> None:
        name: str | None = self._graph.first.name
        while name is not None:
            node = self._graph.node(name)
            verdict = await self._visit(node)
            self._visits.append(Visit(node, verdict))
            name = verdict.follows if isinstance(verdict, Complete) else None

    async def _visit(self, node: StateNode) -> Verdict:
        began = asyncio.get_running_loop().time()
        try:
            returned, result = await self._call(node.name, self._machine.functions[node.name])
            return judge(self._graph, node, returned, result)
        finally:
            if self._tally is not None:
                self._tally.ran(node.name, began)

    async def _call(self, name: str, function: StateFunction) -> tuple[object, PhaseResult]:
        """Run a state, then apply what it declared."""
        outputs = Outputs(self._obj, self._machine.children, phase=name, ctx=self._ctx, taken=self._declared)
        metadata, told = self._obj.metadata, _identity(self._obj.metadata)
        returned: object = await function(self._obj, outputs)
        if self._obj.metadata is not metadata or _identity(metadata) != told:
            # all that follows is about the object that was read, also the words that say what is wrong
            self._obj.metadata = metadata
            for field, value in zip(_IDENTITY, told, strict=True):
                setattr(metadata, field, value)
            raise _changed(self._obj, name)
        if any(each.child.metadata is metadata for each in outputs.declared):
            raise _shared(self._obj, name)
        result = await apply_outputs(self._ctx, self._obj, outputs, labels=self._machine.labels_phases)
        self._applied.update(each.uid for each in result.children)
        tell_changes(self._ctx, self._obj, result)
        return returned, result

    async def _prune(self) -> None:
        visits, key, uid = self._visits, self._ctx.request.key, self._obj.uid
        visited = {visit.node.name for visit in visits}
        complete = is_complete(visits)
        seen = self._declarations.seen(key, uid)
        pruned = await prune(
            self._ctx,
            self._obj,
            self._machine.children,
            self._declared,
            applied=self._applied,
            phases=None if complete else {visit.node.name for visit in visits if isinstance(visit.verdict, Complete)},
            spared=[name for name in self._graph.names if name not in visited],
            seen=None if complete else seen,
        )
        self._declarations.note(key, uid, self._declared, complete=complete, pruned=[each.identity for each in pruned])
        tell_pruned(self._ctx, self._obj, pruned)

    def _stopped_by(self, stopped: Stopped) -> list[Visit]:
        """The states of this pass, the one that raised among them: the first without a verdict."""
        visits = self._visits
        if visits and isinstance(visits[-1].verdict, Complete) and visits[-1].verdict.follows is not None:
            return [*visits, Visit(self._graph.node(visits[-1].verdict.follows), stopped)]
        if not visits:
            return [Visit(self._graph.first, stopped)]
        # pruning failed, after all states were judged
        return [*visits[:-1], Visit(visits[-1].node, stopped)]

    # deletion

    async def _delete(self) -> Outcome:
        machine, draft = self._machine, self._draft()
        try:
            if machine.clean_up is not None:
                returned, result = await self._call(self._graph.finalizer or "", machine.clean_up)
                verdict = judge_clean_up(self._graph, returned, result)
                if isinstance(verdict, Stopped):
                    return await self._still_there(draft, verdict)
            if machine.deletes_children:
                order = (*self._graph.names, *((self._graph.finalizer,) if self._graph.finalizer else ()))
                left = await delete_in_order(self._ctx, self._obj, machine.children, order)
                if left:
                    return await self._still_there(draft, Stopped("Deleting", _listed(left)))
            # a finalizer that nothing else explains is there for the sake of children that only a label holds
            unexplained = not machine.needs_finalizer
            left = await delete_unseen(self._ctx, self._obj, machine.children, unexplained=unexplained)
            if left:
                return await self._still_there(draft, Stopped("Deleting", _listed(left), after=LOOK_AGAIN))
        except Exception as error:
            if not _is_race(error):
                await self._report_failure(draft, observe_deletion(self._graph, "Error", _words(error)))
            raise
        await remove_finalizer(self._ctx.client, self._obj, *self._finalizers)
        if self._tally is not None and set(self._obj.metadata.finalizers or ()) <= set(self._finalizers):
            self._tally.gone(self._ctx.request)
        return Done()

    async def _still_there(self, draft: StatusDraft, stopped: Stopped) -> Outcome:
        reason = stopped.reason if stopped.wrong else "Deleting"
        await self._report(draft, observe_deletion(self._graph, reason, stopped.message), wrong=stopped.wrong)
        return RequeueAfter(stopped.after) if stopped.after is not None else Done()

    # reporting

    def _draft(self) -> StatusDraft:
        graph = self._graph
        draft = StatusDraft(self._ctx, self._obj, (*graph.conditions, graph.suspended), silent=not graph.reports)
        if self._tally is not None:
            before = draft.present.get(self._graph.ready, {})
            ready = before.get("status") == "True" and before.get("observedGeneration", -1) == self._obj.generation
            self._tally.seen(self._ctx.request, self._obj, ready=ready)
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
        ready, tally = observations.get(self._graph.ready), self._tally
        known = tally.last(self._ctx.request) if tally is not None else None
        if tally is not None:
            tally.reported(self._ctx.request, ready)
        held = await write_unless_contested(
            self._ctx, self._obj, self._machine.children.contests, draft, observations, complete=complete, after=after
        )
        if held is not None:
            self._again = held
            return
        if draft.speaks:
            before = draft.present
            name = self._graph.suspended
            resumed = name in draft.taken_away
            tell_suspension(self._ctx, self._obj, observations.get(name), known=name in before, resumed=resumed)
            known = last_told(before.get(self._graph.ready))
        elif known is None:
            known = ready  # nobody remembers whether it was told before the program started
        tell_readiness(self._ctx, self._obj, ready, known, wrong=wrong)

    async def _report_failure(
        self, draft: StatusDraft, observations: Observations, *, wrong: bool = True, after: Tree | None = None
    ) -> None:
        """Report an error that is about to be raised: it must not be hidden by a failure to report it."""
        try:
            await self._report(draft, observations, wrong=wrong, after=after)
        except Exception as failure:  # noqa: BLE001 - as above
            self._ctx.logger.warning("%s: its status could not be written: %s", self._ctx.request, failure)


#: What tells an object from others, and how far it is.
_IDENTITY = ("name", "namespace", "uid", "resource_version", "generation", "deletion_timestamp")
_identity = attrgetter(*_IDENTITY)


def _changed(obj: Object, state: str) -> TypeError:
    return TypeError(
        f"{state} changed the metadata of {obj.kind} {obj.key}, which it only got to read; build a new ObjectMeta(name=...)"
        " for a child"
    )


def _shared(obj: Object, state: str) -> TypeError:
    return TypeError(
        f"{state} gave a child the metadata of {obj.kind} {obj.key} itself; build a new one: ObjectMeta(name=...)"
    )


def _is_race(error: Exception) -> bool:
    """Whether somebody else was quicker: nothing is wrong, and the next pass sees what happened."""
    return (isinstance(error, Conflict) and not error.field_conflicts) or isinstance(error, AlreadyExists)


def _namespace_ends(error: Exception) -> bool:
    return isinstance(error, Forbidden) and any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def _words(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - user code: what it raises need not even be able to say so
        text = ""
    if not text or not isinstance(error, TerminalError):
        return f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text


def _listed(words: tuple[str, ...], limit: int = 3) -> str:
    shown = ", ".join(words[:limit])
    return f"{shown} and {len(words) - limit} more" if len(words) > limit else shown
