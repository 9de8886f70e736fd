"""Apply the children that a state declared.

Guarantees
- A child that already matches its declaration costs no request, only a comparison with the cache.
- Children with ``after=`` are applied once the children that they name are ready, layer by layer. Children of one layer are
  applied concurrently.
- One request that cannot overwrite creates a child. An existing object that does not belong to the owner is rejected with
  `NotOurs`. ``adopt=True`` takes over an object without a controller, in the version that was read.
- An object that another program created for the same owner is changed as declared, but not marked, and so never pruned.
- A child that another writer keeps changing back is written with growing pauses (see `conflicts`).
- Steersman waits for an object that is being deleted, and never revives it.
- It also waits for another namespace than the owner's that is being deleted or missing, and creates the child when it is back.
- Any other rejection by the server is raised after the remaining children of the layer were tried.
"""

from __future__ import annotations

import asyncio
from functools import cached_property
from hashlib import blake2b
from types import EllipsisType

import msgspec

from steersman.aio import Supervisor
from steersman.cache import StoredView
from steersman.client import kind_not_served
from steersman.controller import Context, internal_client
from steersman.errors import ApiStatus, Conflict, Forbidden, NotFound
from steersman.objects import Object, Unstructured, encode_any, resource_version_of, uid_of
from steersman.patterns.children.change_log import log_change
from steersman.patterns.children.conflicts import find_other_writer
from steersman.patterns.children.intent_annotation import has_intent_annotation
from steersman.patterns.children.kept_children import client_of, with_mark_of
from steersman.patterns.children.kinds import ChildIdentity
from steersman.patterns.children.membership import (
    CLAIMED,
    CLAIMED_ANNOTATION,
    KEPT,
    LABEL_MARKS,
    OWNER_UID_LABEL,
    Marks,
    kept_by,
    standing_of,
    state_label,
    was_made,
    was_marked,
)
from steersman.patterns.children.memory import ChildMemory, taken_over
from steersman.patterns.children.outputs import Output, Outputs
from steersman.patterns.children.problems import Problem, contested, namespace_problem, not_ours, outside_cache
from steersman.patterns.children.shared_children import Share
from steersman.patterns.children.writers import ChildWrite, writer_for
from steersman.patterns.readiness import Readiness, readiness_of

__all__ = ["Applied", "Problem", "StateResult", "apply_outputs"]

#: The limit of concurrent requests for one layer.
_AT_ONCE = 8
_CLAIMED = CLAIMED_ANNOTATION.encode()
#: Options with which the intent alone does not decide whether there is something to write.
_LOOKED_AT_ANEW = frozenset({"how", "status", "remove"})
#: Of a child that nothing should wait for: it can no longer be created.
_SKIPPED = Readiness(ready=True, reason="NamespaceTerminating", message="skipped: its namespace is being deleted")


class Applied:
    """A child after it was applied."""

    __slots__ = ("_object", "change", "output", "problem", "readiness")

    def __init__(
        self,
        output: Output,
        object: Object | Unstructured | StoredView | None,  # noqa: A002 - as it is read
        readiness: Readiness,
        problem: Problem | None = None,
        change: str = "",
    ) -> None:
        self.output = output
        self._object = object
        self.readiness = readiness
        self.problem = problem
        #: The change in one word, for an event: "created", "adopted", "recreated"; empty otherwise.
        self.change = change

    def __repr__(self) -> str:
        return f"<Applied {self.output.identity}: {self.problem or self.readiness}>"

    @property
    def object(self) -> Object | Unstructured | None:
        """The live object, decoded on first access; None if the child was held back, rejected, or is being deleted."""
        return self._object.object if isinstance(self._object, StoredView) else self._object

    @property
    def uid(self) -> str:
        """The uid of the live object; empty without one."""
        if self._object is None:
            return ""
        return self._object.uid if isinstance(self._object, StoredView) else uid_of(self._object) or ""


class StateResult(msgspec.Struct, frozen=True):
    """The children of one state after they were applied, in the order of their declaration."""

    children: tuple[Applied, ...]
    #: The owner's namespace: messages name children there without their namespace.
    namespace: str = ""

    @property
    def ready(self) -> bool:
        """Whether every child exists and is ready, except those with ``wait=False``."""
        return self.first_unready is None

    @property
    def first_unready(self) -> tuple[str, str] | None:
        """Reason and message of the first child with a problem, or else of the first child that is not ready."""
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
        """The problems that waiting does not solve."""
        return tuple(each.problem for each in self.children if each.problem is not None)

    @property
    def skipped(self) -> bool:
        """Whether a child can no longer be created, because the namespace of its owner is being deleted."""
        return any(each.readiness is _SKIPPED for each in self.children)

    @property
    def again(self) -> float | None:
        """Seconds until the next attempt because of a problem; None if an event triggers it."""
        return min((each.after for each in self.problems if each.after is not None), default=None)

    @property
    def changes(self) -> tuple[str, ...]:
        """The changes to children, as text for events: "created Deployment default/web"."""
        return tuple(f"{each.change} {each.output.identity}" for each in self.children if each.change)


async def apply_outputs(
    ctx: Context, owner: Object, outputs: Outputs, memory: ChildMemory, *, labels: bool
) -> StateResult:
    """Apply the declared children; ``labels``: label each child with its state, as machines with several states need."""
    declared = outputs.declared
    if not declared:
        memory.subscriptions.replace(owner.key, outputs.state, frozenset())
        return StateResult(())
    if not outputs.children.scopes_known:
        await _check_scopes(ctx, outputs, memory)
    work = _StateApply(ctx, owner, outputs, memory, labels=labels)
    for depth in range(1, 1 + max(output.depth for output in declared)):
        await work.layer([(place, output) for place, output in enumerate(declared) if output.depth == depth])
    memory.subscriptions.replace(owner.key, outputs.state, work.waiting)
    return StateResult(tuple(work.results[place] for place in range(len(declared))), owner.key.namespace)


async def _check_scopes(ctx: Context, outputs: Outputs, memory: ChildMemory) -> None:
    """Raise if the server has not yet reported whether the kind of a child is namespaced."""
    for output in outputs.declared:
        if output.known.namespaced is None:
            if not await memory.learn_scopes(ctx.client, again=True):
                raise kind_not_served(output.known.gvk, "", verb="apply")
            message = "the server has just started serving this kind; retrying"
            raise Conflict(ApiStatus(message=message, reason="Conflict", code=409), tried=f"apply {output.identity}")


class _StateApply:
    """The apply of one state's children."""

    def __init__(self, ctx: Context, owner: Object, outputs: Outputs, memory: ChildMemory, *, labels: bool) -> None:
        self._ctx = ctx
        self._client = internal_client(ctx)
        self._memory = memory
        self._owner = owner
        self._key = owner.key
        self._marks = Marks(owner)
        self._state = outputs.state
        self._skips_new = outputs.namespace_ends or outputs.owner_is_gone
        self._labels = labels
        self._former_names = len(ctx.client.field_managers) > 1
        #: The token suffixes that children of this state share.
        self._rest: dict[tuple[str, int, bool], bytes] = {}
        self.results: dict[int, Applied] = {}
        #: The objects that trigger the owner although they do not name it.
        self.waiting: set[ChildIdentity] = set()

    @cached_property
    def _share(self) -> Share:
        return Share(self._ctx, self._owner, self._memory)

    async def layer(self, outputs: list[tuple[int, Output]]) -> None:
        """Compare all children of a layer with the cache, then write those that differ."""
        differing: list[tuple[int, ChildWrite]] = []
        for place, output in outputs:
            if output.bond == "none":
                self._wait_for(output.identity)
            applied = self._held_back(output) if output.after else None
            if applied is None:
                applied = self._matching(output)
            if isinstance(applied, tuple):
                applied = await self._compared(output, *applied)
            if isinstance(applied, Applied):
                self.results[place] = applied
            else:
                differing.append((place, applied))
        if len(differing) == 1:
            place, work = differing[0]
            self.results[place] = await self._written(work)
        elif differing:
            await self._write_all(differing)

    def _wait_for(self, identity: ChildIdentity) -> None:
        """Trigger the owner when this object changes, although the object does not name it; in effect immediately."""
        self.waiting.add(identity)
        self._memory.subscriptions.add(self._key, self._state, identity)

    def _held_back(self, output: Output) -> Applied | None:
        for place in output.after:
            first = self.results[place]
            if first.problem is not None or not first.readiness.ready:
                words = f"waits for {first.output.identity}"
                return Applied(output, None, Readiness(ready=False, reason="HeldBack", message=words))
        return None

    def _matching(self, output: Output) -> Applied | tuple[bytes, StoredView | EllipsisType | None]:
        """The cached child, if its intent would change nothing; otherwise the token of the intent, and what `look` returned.

        Most children of a converged cluster end here: either the same intent was applied before and the child has not changed
        since, or, after a start, the bytes of the child are compared with the cache.
        """
        identity, gvk, client = output.identity, output.known.gvk, self._client
        if output.options and not output.options.keys().isdisjoint(_LOOKED_AT_ANEW):
            return b"", client.look(gvk, identity.key)
        encoded = encode_any(output.child)
        token = self._token(output, encoded)
        view = client.recall_apply(gvk, identity.key, token)
        if view is None:
            looked = client.look(gvk, identity.key)
            if not isinstance(looked, StoredView) or not self._holds(output, encoded, looked, token):
                return token, looked
            view = looked
        return Applied(output, view, self._memory.readiness_of(identity, view))

    def _token(self, output: Output, encoded: bytes) -> bytes:
        """A hash of the intent: the child, its owner, its state and its prune option."""
        made_of = blake2b(encoded, digest_size=16)
        prune = output.options.get("prune", True)
        marks = (output.bond, output.depth, prune)
        rest = self._rest.get(marks)
        if rest is None:
            rest = self._rest[marks] = (
                f"{self._marks.uid} {output.bond} {self._state_label_of(output)} {prune}".encode()
            )
        made_of.update(rest)
        return made_of.digest()

    def _holds(self, output: Output, encoded: bytes, view: StoredView, token: bytes) -> bool:
        """Whether a child that we made needs no write. False in doubt: `_compared` knows every case."""
        child, uid = output.child, self._marks.uid
        if (
            output.bond != "reference"
            or view.deleting
            or view.controller_uid != uid
            or OWNER_UID_LABEL in view.labels
            or not was_marked(view, uid, "reference")
            or isinstance(child, Unstructured)
            or not output.options.get("prune", True)
            or self._former_names
            or b":null" in encoded
            or has_intent_annotation(view.stored.raw)
            or _CLAIMED in view.stored.raw
        ):
            return False
        body = self._marks.marked_bytes(child, encoded, state_label=self._state_label_of(output))
        return body is not None and self._client.confirm_apply(view, type(child), body, token)

    def _state_label_of(self, output: Output) -> str:
        return state_label(self._state, output.depth, labels=self._labels) if output.bond != "none" else ""

    async def _compared(
        self, output: Output, token: bytes, looked: StoredView | EllipsisType | None
    ) -> Applied | ChildWrite:
        identity, options, bond = output.identity, output.options, output.bond
        view = await self._client.view(output.known.kind, identity.key) if looked is ... else looked
        if view is not None and not view.deleting and standing_of(view, self._marks.uid, bond) == "ours":
            view = await taken_over(self._client, self._memory, output.known.kind, view)
        view, part = await self._parted(output, view)
        mark, adopting, outdated = bond, False, ()
        if view is None:
            if self._skips_new and identity.key.namespace == self._key.namespace:
                return Applied(output, None, _SKIPPED)
        elif view.deleting:
            return self._deleting(output, view)
        elif (standing := standing_of(view, self._marks.uid, bond)) != "ours":
            inherits = self._inherits(output, view)
            if not _may_write(standing, output) and not inherits:
                self._wait_for(identity)
                problem = not_ours(identity, view.metadata, self._owner, bond)
                return Applied(output, None, _not_there(problem), problem)
            adopting = bond != "none"
            outdated = LABEL_MARKS if inherits and bond == "reference" else ()
        elif bond in ("reference", "label_alone") and not was_made(view, self._marks.uid):
            # Another program created it for the same owner: not ours to delete, unless the program adopts it.
            adopting = bool(options.get("adopt"))
            mark = bond if adopting else "none"
        child = self._marks.marked(
            output.child,
            identity.key.namespace,
            bond=mark,
            state_label=self._state_label_of(output),
            prune=options.get("prune", True),
        )
        if view is None and (selector := self._client.leaves_out(output.known.kind, _labels(child))):
            problem = outside_cache(identity, selector)
            return Applied(output, None, _not_there(problem), problem)
        work = ChildWrite(
            output,
            child,
            view,
            adopting=adopting,
            memory=self._memory,
            owner_uid=self._marks.uid,
            token=token,
            part=part,
            outdated=outdated,
        )
        found = await writer_for(options).unchanged(client_of(self._client, part), work)
        if isinstance(found, StoredView):
            return Applied(output, found, self._memory.readiness_of(identity, found))
        return work if found is None else Applied(output, found, readiness_of(found))

    async def _parted(self, output: Output, view: StoredView | None) -> tuple[StoredView | None, str]:
        """The child and the part of the program that writes it, after what other parts hold was moved there."""
        uid, bond, kind = self._marks.uid, output.bond, output.known.kind
        part = self._share.part if bond == "none" else "" if output.options.get("prune", True) else KEPT
        if view is None or view.deleting:
            return view, part
        if bond == "none":
            if standing_of(view, uid, bond) != "other":
                view = await self._share.taken(kind, view)
        elif was_made(view, uid):
            part = CLAIMED if kept_by(view, uid) == CLAIMED else part
            view = await with_mark_of(self._client, self._memory, kind, view, uid, part)
            view = view and await self._share.given_up(kind, view, part)
        elif self._inherits(output, view):
            view = await with_mark_of(self._client, self._memory, kind, view, view.labels[OWNER_UID_LABEL], part)
        return view, part

    def _inherits(self, output: Output, view: StoredView) -> bool:
        """Whether to take over an object that outlived an earlier owner of the same name."""
        return (
            output.bond in ("label_alone", "reference")
            and bool(output.options.get("adopt"))
            and self._marks.inherits(view)
        )

    def _deleting(self, output: Output, view: StoredView) -> Applied:
        if standing_of(view, self._marks.uid, output.bond) != "ours":
            self._wait_for(output.identity)
        held = ", ".join(view.metadata.finalizers or ())
        words = f"is being deleted{f', held by {held}' if held else ''}; Steersman recreates it when it is gone"
        return Applied(output, None, Readiness(ready=False, reason="Deleting", message=words))

    async def _written(self, work: ChildWrite) -> Applied:
        output, conflicts, owner = work.output, self._memory.conflicts, self._key
        intent = work.token or _intent(work)
        if conflicts.knows(owner, output.identity):
            if conflicts.held(owner, output.identity, intent, _now()):
                return self._contested(output, intent)
            if conflicts.is_hot(owner, output.identity, intent, _now()):
                # Look it up before the write: a forced apply removes the other writer's entry from managedFields.
                await find_other_writer(self._client, conflicts, owner, output.known.kind, output.identity)
        try:
            done = await writer_for(output.options).write(client_of(self._client, work.part), work, self._owner)
        except (Forbidden, NotFound) as error:
            problem = namespace_problem(output.identity, error)
            if problem is None or output.identity.key.namespace == owner.namespace:
                raise  # the end of the owner's own namespace is the end of the owner
            done = problem
        if isinstance(done, Problem):
            if done.reason == "NotOurs":
                self._wait_for(output.identity)
            return Applied(output, None, _not_there(done), done)
        obj, change = done
        if word := change or _updated(work, obj):
            log_change(self._ctx, word, output.identity)
        if conflicts.wrote(owner, output.identity, intent, _now()):
            # The next reconcile shows whether this write lasts.
            return self._contested(output, intent, obj)
        return Applied(output, obj, readiness_of(obj), None, change)

    def _contested(self, output: Output, intent: bytes, obj: Object | Unstructured | None = None) -> Applied:
        conflicts, owner, identity = self._memory.conflicts, self._key, output.identity
        other_writer = conflicts.other_writer(owner, identity) or "another writer"
        problem = contested(identity, other_writer, conflicts.held(owner, identity, intent, _now()))
        return Applied(output, obj, _not_there(problem), problem)

    async def _write_all(self, differing: list[tuple[int, ChildWrite]]) -> None:
        """Write several children concurrently. Raises the first failure, in the order of declaration, after all have ended."""
        waiting = iter(differing)
        failures: dict[int, Exception] = {}

        async def work_off() -> None:
            for place, work in waiting:
                try:
                    self.results[place] = await self._written(work)
                except Exception as error:  # noqa: BLE001 - raised below, after the others were tried
                    failures[place] = error

        name = f"apply children of {self._owner.kind} {self._key}"
        async with Supervisor() as tasks:
            for number in range(min(_AT_ONCE, len(differing))):
                tasks.start(work_off(), name=f"{name} ({number})")
        if failures:
            raise failures[min(failures)]


def _may_write(standing: str, output: Output) -> bool:
    """Whether an object that is not ours may be written nevertheless."""
    options = output.options
    if output.bond == "none":
        return standing != "other" or options.get("how") == "create"
    return standing == "free" and bool(options.get("adopt"))


def _labels(child: Object | Unstructured) -> dict[str, str]:
    metadata = child.metadata
    found: dict[str, str] | None = metadata.get("labels") if isinstance(metadata, dict) else metadata.labels
    return found or {}


def _intent(work: ChildWrite) -> bytes:
    """A hash of the intent."""
    made_of = blake2b(encode_any(work.child), digest_size=16)
    made_of.update(repr(work.output.options.get("remove", ())).encode())
    return made_of.digest()


def _updated(work: ChildWrite, obj: Object | Unstructured) -> str:
    """The log word "updated"; empty if the object already matched the intent."""
    same = work.view is not None and work.view.resource_version == resource_version_of(obj)
    return "" if same else "updated"


def _now() -> float:
    return asyncio.get_running_loop().time()


def _not_there(problem: Problem) -> Readiness:
    return Readiness(ready=False, reason=problem.reason, message=problem.message, failed=problem.terminal)
