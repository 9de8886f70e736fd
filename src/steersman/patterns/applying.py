"""Making children what a state declared them to be.

Guarantees
- A child that already is what it was declared to be costs no request, and no more than looking.
- Children that wait for others (``after=``) are applied when those are ready, layer by layer; those of one layer at once.
- A child is created only where nothing is, by one request that cannot overwrite: what another created meanwhile is refused
  with `NotOurs`, as is everything that is there and does not belong to the owner. ``adopt=True`` takes what nobody controls,
  in the version that was seen.
- What another program made for the same owner is changed as declared, but stays its: it is not marked, and so never pruned.
- A child that somebody changes back as often as it is written is written only now and then (see `contests`).
- An object that is being deleted is waited for, never revived.
- What the server refuses for other reasons is raised, after all other children of the layer were tried.
"""

from __future__ import annotations

import asyncio
from hashlib import blake2b

import msgspec

from steersman.aio import Supervisor
from steersman.cache import View
from steersman.client.bindings import encode_any, uid_of
from steersman.client.missing import kind_not_served
from steersman.controller import Context
from steersman.objects import Object, Unstructured
from steersman.objects.errors import Conflict
from steersman.objects.status import Status
from steersman.patterns.membership import Marks, phase_label, standing_of, was_marked
from steersman.patterns.outputs import Output, Outputs
from steersman.patterns.problems import Problem, contested, not_ours
from steersman.patterns.readiness import Readiness, readiness
from steersman.patterns.rivals import meet_rival
from steersman.patterns.writing import Written, writer_for

__all__ = ["Applied", "PhaseResult", "Problem", "apply_outputs"]

#: Requests of one layer that are under way at once.
_AT_ONCE = 8
#: Options with which more than the apply itself decides whether there is something to write.
_LOOKED_AT_ANEW = frozenset({"how", "status", "remove"})


class Applied:
    """A child after its turn."""

    __slots__ = ("_object", "change", "output", "problem", "readiness")

    def __init__(
        self,
        output: Output,
        object: Object | Unstructured | View | None,  # noqa: A002 - as it is read
        readiness: Readiness,
        problem: Problem | None = None,
        change: str = "",
    ) -> None:
        self.output = output
        self._object = object
        self.readiness = readiness
        self.problem = problem
        #: What became of it, in one word for an event: "created", "adopted", "recreated"; empty for all else.
        self.change = change

    def __repr__(self) -> str:
        return f"<Applied {self.output.identity}: {self.problem or self.readiness}>"

    @property
    def object(self) -> Object | Unstructured | None:
        """As the cluster holds it, decoded when asked for; None if it was held back, refused, or is being deleted."""
        return self._object.object if isinstance(self._object, View) else self._object

    @property
    def uid(self) -> str:
        """The uid of that object; empty if there is none."""
        if self._object is None:
            return ""
        return self._object.uid if isinstance(self._object, View) else uid_of(self._object) or ""


class PhaseResult(msgspec.Struct, frozen=True):
    """The children of one state after they were applied, in the order of their declaration."""

    children: tuple[Applied, ...]
    #: The owner's namespace: children there are spoken of by their name alone.
    namespace: str = ""

    @property
    def ready(self) -> bool:
        """Whether every child that counts is there and ready."""
        return self.first_unready is None

    @property
    def first_unready(self) -> tuple[str, str] | None:
        """Reason and message of the first child with a problem, or else of the first that counts and is not ready."""
        for each in self.children:
            if each.problem is not None:
                return each.problem.reason, each.problem.message
        for each in self.children:
            if not each.readiness.ready and each.output.options.get("wait", True):
                return each.readiness.reason, f"{self._shown(each)}: {each.readiness.message}"
        return None

    def _shown(self, child: Applied) -> str:
        identity = child.output.identity
        near = identity.key.namespace == self.namespace
        return f"{identity.kind.kind} {identity.key.name}" if near else str(identity)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What stands in the way and does not pass by waiting for children."""
        return tuple(each.problem for each in self.children if each.problem is not None)

    @property
    def again(self) -> float | None:
        """After how many seconds to look again because of a problem; None if events tell."""
        return min((each.after for each in self.problems if each.after is not None), default=None)

    @property
    def changes(self) -> tuple[str, ...]:
        """What became of children, in words for events: "created Deployment default/web"."""
        return tuple(f"{each.change} {each.output.identity}" for each in self.children if each.change)


async def apply_outputs(ctx: Context, owner: Object, outputs: Outputs, *, labels: bool) -> PhaseResult:
    """Apply what was declared; ``labels``: children say which state declared them, as machines with several states need."""
    declared = outputs.declared
    if not declared:
        return PhaseResult(())
    if not outputs.children.scopes_known:
        await _check_scopes(ctx, outputs)
    phase = _Phase(ctx, owner, outputs, labels=labels)
    for depth in range(1, 1 + max(output.depth for output in declared)):
        await phase.layer([(place, output) for place, output in enumerate(declared) if output.depth == depth])
    return PhaseResult(tuple(phase.results[place] for place in range(len(declared))), owner.key.namespace)


async def _check_scopes(ctx: Context, outputs: Outputs) -> None:
    """Refuse to write a child of which nobody knew whether it lives in a namespace."""
    for output in outputs.declared:
        if output.known.namespaced is None:
            if not await outputs.children.learn_scopes(ctx.client, again=True):
                raise kind_not_served(output.known.gvk, "", verb="apply")
            message = "the server serves its kind since a moment"
            raise Conflict(Status(message=message, reason="Conflict", code=409), tried=f"apply {output.identity}")


class _Phase:
    """The children of one state while they are applied."""

    def __init__(self, ctx: Context, owner: Object, outputs: Outputs, *, labels: bool) -> None:
        self._client = ctx.client
        self._children = outputs.children
        self._owner = owner
        self._marks = Marks(owner)
        self._state = outputs.phase
        self._labels = labels
        #: What children of this phase have in common, as it goes into tokens.
        self._rest: dict[tuple[str, int, bool], bytes] = {}
        self.results: dict[int, Applied] = {}

    async def layer(self, outputs: list[tuple[int, Output]]) -> None:
        """Look at all, then write those that differ."""
        differing: list[tuple[int, Written]] = []
        for place, output in outputs:
            applied = self._held_back(output) if output.after else None
            if applied is None:
                token = self._token(output)
                applied = self._recalled(output, token) or await self._compared(output, token)
            if isinstance(applied, Applied):
                self.results[place] = applied
            else:
                differing.append((place, applied))
        if len(differing) == 1:
            place, work = differing[0]
            self.results[place] = await self._written(work)
        elif differing:
            await self._write_all(differing)

    def _held_back(self, output: Output) -> Applied | None:
        for place in output.after:
            first = self.results[place]
            if first.problem is not None or not first.readiness.ready:
                words = f"waits for {first.output.identity}"
                return Applied(output, None, Readiness(ready=False, reason="HeldBack", message=words))
        return None

    def _recalled(self, output: Output, token: bytes) -> Applied | None:
        """A child that was made of the same before, and has not changed since; most of all calls end here."""
        if not token:
            return None
        identity = output.identity
        same = self._client.recall_apply(output.known.gvk, identity.key, token)
        return None if same is None else Applied(output, same, self._children.readiness_of(identity, same))

    def _token(self, output: Output) -> bytes:
        """What a child is made of, in short: itself, its owner, its phase and whether it is pruned; empty if more decides."""
        options, prune = output.options, True
        if options:
            if not options.keys().isdisjoint(_LOOKED_AT_ANEW):
                return b""
            prune = options.get("prune", True)
        made_of = blake2b(encode_any(output.child), digest_size=16)
        marks = (output.bond, output.depth, prune)
        rest = self._rest.get(marks)
        if rest is None:
            rest = self._rest[marks] = f"{self._marks.uid} {output.bond} {self._phase_of(output)} {prune}".encode()
        made_of.update(rest)
        return made_of.digest()

    def _phase_of(self, output: Output) -> str:
        return phase_label(self._state, output.depth, labels=self._labels) if output.bond != "none" else ""

    async def _compared(self, output: Output, token: bytes) -> Applied | Written:
        identity, options, bond = output.identity, output.options, output.bond
        looked = self._client.look(output.known.gvk, identity.key)
        view = await self._client.view(output.known.kind, identity.key) if looked is ... else looked
        mark, adopting = bond, False
        if view is None:
            pass
        elif view.deleting:
            return self._deleting(output, view)
        elif (standing := standing_of(view, self._marks.uid, bond)) != "ours":
            if not _may_write(standing, output):
                self._children.watch_for(identity, self._owner.key)
                problem = not_ours(identity, view.metadata, self._owner, bond)
                return Applied(output, None, _not_there(problem), problem)
            adopting = bond != "none"
        elif bond == "reference" and not was_marked(view, self._marks.uid, bond):
            # another program made it for the same owner: it is not ours to delete, unless we are to take it over
            adopting = bool(options.get("adopt"))
            mark = bond if adopting else "none"
        if bond == "none":
            self._children.watch_for(identity, self._owner.key)
        child = self._marks.marked(
            output.child,
            identity.key.namespace,
            bond=mark,
            phase=self._phase_of(output),
            prune=options.get("prune", True),
        )
        work = Written(
            output, child, view, adopting=adopting, children=self._children, owner_uid=self._marks.uid, token=token
        )
        found = await writer_for(options).unchanged(self._client, work)
        if isinstance(found, View):
            return Applied(output, found, self._children.readiness_of(identity, found))
        return work if found is None else Applied(output, found, readiness(found))

    def _deleting(self, output: Output, view: View) -> Applied:
        if standing_of(view, self._marks.uid, output.bond) != "ours":
            self._children.watch_for(output.identity, self._owner.key)
        held = ", ".join(view.metadata.finalizers or ())
        words = f"is being deleted{f', held by {held}' if held else ''}; it is made again when it is gone"
        return Applied(output, None, Readiness(ready=False, reason="Deleting", message=words))

    async def _written(self, work: Written) -> Applied:
        output, contests, owner = work.output, self._children.contests, self._owner.key
        intent = work.token or _intent(work)
        if contests.held(owner, output.identity, intent, _now()):
            return self._contested(output, intent)
        if contests.is_hot(owner, output.identity, intent, _now()):
            # before it is written: what we take from others by force, they are no longer said to own
            await meet_rival(self._client, contests, owner, output.known.kind, output.identity)
        done = await writer_for(output.options).write(self._client, work, self._owner)
        if isinstance(done, Problem):
            if done.reason == "NotOurs":
                self._children.watch_for(output.identity, self._owner.key)
            return Applied(output, None, _not_there(done), done)
        if output.bond != "none":
            self._children.watched_enough(output.identity, self._owner.key)
        obj, change = done
        if contests.wrote(owner, output.identity, intent, _now()):
            # whether it lasts is seen when it is looked at again
            return self._contested(output, intent, obj)
        return Applied(output, obj, readiness(obj), None, change)

    def _contested(self, output: Output, intent: bytes, obj: Object | Unstructured | None = None) -> Applied:
        contests, owner, identity = self._children.contests, self._owner.key, output.identity
        rival = contests.rival(owner, identity) or "somebody"
        problem = contested(identity, rival, contests.held(owner, identity, intent, _now()))
        return Applied(output, obj, _not_there(problem), problem)

    async def _write_all(self, differing: list[tuple[int, Written]]) -> None:
        """Write several at once; the first failure, in the order of declaration, is raised when all have ended."""
        waiting = iter(differing)
        failures: dict[int, Exception] = {}

        async def work_off() -> None:
            for place, work in waiting:
                try:
                    self.results[place] = await self._written(work)
                except Exception as error:  # noqa: BLE001 - raised below, when the others have had their turn
                    failures[place] = error

        async with Supervisor() as tasks:
            for number in range(min(_AT_ONCE, len(differing))):
                tasks.start(work_off(), name=f"apply children of {self._owner.kind} {self._owner.key} ({number})")
        if failures:
            raise failures[min(failures)]


def _may_write(standing: str, output: Output) -> bool:
    """Whether an object that is not ours may be written all the same."""
    options = output.options
    if output.bond == "none":
        return standing != "other" or options.get("how") == "create"
    return standing == "free" and bool(options.get("adopt"))


def _intent(work: Written) -> bytes:
    """What is written, in short."""
    made_of = blake2b(encode_any(work.child), digest_size=16)
    made_of.update(repr(work.output.options.get("remove", ())).encode())
    return made_of.digest()


def _now() -> float:
    return asyncio.get_running_loop().time()


def _not_there(problem: Problem) -> Readiness:
    return Readiness(ready=False, reason=problem.reason, message=problem.message, failed=problem.terminal)
