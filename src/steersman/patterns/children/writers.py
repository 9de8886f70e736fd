"""The five writers of a child: apply, merge, update, replace, create.

Guarantees
- Each decides first, from the cache alone, whether there is anything to write.
- Each creates by a request that cannot overwrite an existing object.
- ``recreate=True`` deletes exactly the object and version that was read, and only after a dry run shows that the server accepts
  the new object.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, cast

import msgspec
from msgspec import UNSET

from steersman.cache import StoredView
from steersman.client import NO_VERSION, MergePatch, PreparedApply
from steersman.controller import InternalClient, merge_schema
from steersman.errors import AlreadyExists, Conflict, Invalid
from steersman.objects import (
    Object,
    ObjectMeta,
    Unstructured,
    decode,
    has_status_subresource,
    raw_bytes,
    replace,
    tree_of,
    uid_of,
)
from steersman.patches import apply_merge_patch
from steersman.patterns.children.differences import Tree, content_of, merge_patch_toward, overwrite_of, parse_path
from steersman.patterns.children.field_removal import Removal, removal_of
from steersman.patterns.children.intent_annotation import has_intent_annotation, with_intent_annotation
from steersman.patterns.children.membership import (
    CLAIMED_ANNOTATION,
    PRUNE_ANNOTATION,
    STATE_LABEL,
    is_mark,
    marked_by,
    standing,
    was_made,
)
from steersman.patterns.children.memory import ChildMemory
from steersman.patterns.children.outputs import ChildOptions, Output
from steersman.patterns.children.problems import (
    Problem,
    cannot_recreate,
    field_conflict,
    immutable,
    immutable_words,
    not_ours,
    recreating,
)

AnyObject: TypeAlias = Object | Unstructured
#: The live object and the change in one word, or the problem that prevented the write.
Done: TypeAlias = tuple[AnyObject, str] | Problem


class ChildWrite:
    """One child to compare with the cache and write if it differs."""

    __slots__ = (
        "adopting",
        "child",
        "memory",
        "output",
        "owner_uid",
        "part",
        "prepared",
        "removal",
        "removed",
        "sent",
        "token",
        "view",
    )

    def __init__(
        self,
        output: Output,
        child: AnyObject,
        view: StoredView | None,
        *,
        adopting: bool,
        memory: ChildMemory,
        owner_uid: str,
        token: bytes = b"",
        part: str = "",
        outdated: tuple[str, ...] = (),
    ) -> None:
        self.output = output
        #: The part of the program that writes a child which is never pruned; empty for any other child.
        self.part = part
        self.owner_uid = owner_uid
        #: The child with the marks of its owner.
        self.child = child
        self.view = view
        self.adopting = adopting
        self.memory = memory
        #: The hash of the intent; empty if the intent alone does not decide.
        self.token = token
        self.prepared: PreparedApply[Any] | None = None
        #: The fields that the child must not have; ``outdated`` ones are marks of an earlier owner.
        self.removed = (*output.options.get("remove", ()), *outdated)
        self.removal: Removal | None = None
        #: Whether the server answered, not the cache.
        self.sent = False

    @property
    def seen_version(self) -> str:
        """The resourceVersion that the write requires; empty for any."""
        if self.view is None:
            return NO_VERSION
        return self.view.resource_version if self.adopting or self.output.options.get("lock") else ""

    @property
    def is_normalized(self) -> bool:
        """Whether the server normalizes this kind, so that children carry the hash of their intent."""
        return self.memory.normalized_kinds.is_normalized(self.output.identity.kind)


def _prepared(work: ChildWrite) -> PreparedApply[Any]:
    assert work.prepared is not None
    return work.prepared


class Writer(Protocol):
    """A way to write a child."""

    async def unchanged(self, client: InternalClient, work: ChildWrite) -> AnyObject | StoredView | None:
        """The live object if there is nothing to write, else None. Sends no request."""
        ...

    async def write(self, client: InternalClient, work: ChildWrite, owner: Object) -> Done:
        """Write the child."""
        ...


def writer_for(options: ChildOptions) -> Writer:
    """The writer for these options."""
    match options.get("how", "apply"):
        case "apply":
            return _APPLY
        case "create":
            return _CREATE
        case "merge":
            return _MERGE
        case "update":
            return _UPDATE
        case "replace":
            return _REPLACE


class _Apply:
    """Server-side apply."""

    async def unchanged(self, client: InternalClient, work: ChildWrite) -> AnyObject | StoredView | None:
        view, child = work.view, work.child
        if "status" in work.output.options:
            child = _without_status(child)
        if has_intent_annotation(view.stored.raw) if view is not None else work.is_normalized:
            child = with_intent_annotation(child)
        prepared = await self._prepare(client, work, child)
        options = work.output.options
        if view is None or work.adopting:
            return None
        if work.token and work.removal is None:
            # The object itself is not needed, so do not decode it: most children of a converged cluster end here.
            return view if client.is_known_apply(prepared) else None
        found = client.known_apply(prepared)
        if found is None or (work.removal is not None and work.removal.left_in(found)):
            return None
        if options.get("status"):
            status = _status_alone(work.child)
            force = work.output.bond != "none"
            return client.known_apply(await client.prepare_apply(status, force=force, subresource="status"))
        return found

    async def write(self, client: InternalClient, work: ChildWrite, owner: Object) -> Done:
        if work.is_normalized:
            await self._note(client, work)
        done = await self._tried(client, work, owner)
        if isinstance(done, Problem):
            return done
        obj, change = done
        kind, kinds = work.output.identity.kind, work.memory.normalized_kinds
        if work.sent and not work.is_normalized and client.writes_otherwise(_prepared(work), obj):
            kinds.learn(kind)
        # also after the write of another child, sent at the same time, has shown it
        if work.sent and kinds.is_normalized(kind) and await self._note(client, work):
            obj = await client.send_apply(_prepared(work))
        if work.removal is not None:
            obj = await work.removal.carry_out(client, work.output, obj)
        if work.output.options.get("status"):
            force = work.output.bond != "none"
            obj = await client.apply(cast("Object", _status_alone(work.child)), force=force, subresource="status")
        return obj, change

    async def _tried(self, client: InternalClient, work: ChildWrite, owner: Object) -> Done:
        try:
            return await self._applied(client, work, owner)
        except Conflict as conflict:
            # A shared child is applied without force.
            if work.output.bond != "none" or not conflict.field_conflicts:
                raise
            return field_conflict(work.output.identity, conflict)
        except Invalid as error:
            done = await refused(client, work, error)
            if done is None:
                # It is gone already, so recreate it now.
                return await client.send_apply(_prepared(work), resource_version=NO_VERSION), "recreated"
            return done

    async def _prepare(self, client: InternalClient, work: ChildWrite, child: AnyObject) -> PreparedApply[Any]:
        force = work.output.bond != "none"
        prepared = work.prepared = await client.prepare_apply(cast("Object", child), force=force, token=work.token)
        named = work.removed
        if named or b":null" in prepared.intent.body:
            work.removal = removal_of(prepared, named, work.memory.server_defaults)
            if work.removal is not None:
                work.token = b""
                prepared.intent = msgspec.structs.replace(prepared.intent, token=b"")
        return prepared

    async def _note(self, client: InternalClient, work: ChildWrite) -> bool:
        """Add the hash of the intent to the apply; False if it is there already."""
        prepared = _prepared(work)
        if has_intent_annotation(prepared.intent.body):
            return False
        await self._prepare(client, work, with_intent_annotation(prepared.obj))
        return True

    async def _applied(self, client: InternalClient, work: ChildWrite, owner: Object) -> Done:
        prepared = _prepared(work)
        if work.view is not None:
            if not work.adopting and (found := client.known_apply(prepared)) is not None:
                return found, ""
            work.sent = True
            # Require the uid: an object of the same name that was created since is not ours.
            uid = work.view.uid if work.output.bond != "none" else ""
            obj = await client.send_apply(prepared, resource_version=work.seen_version, uid=uid)
            return obj, "adopted" if work.adopting else ""
        work.sent = True
        try:
            obj = await client.send_apply(prepared, resource_version=work.seen_version)
        except Conflict as conflict:
            version = await _met(client, work, owner, conflict)
            if isinstance(version, Problem):
                return version
            obj = await client.send_apply(prepared, resource_version=version)
            return obj, "adopted" if version else ""
        return obj, "created"


class _Create:
    """Create once, then change only the marks for the owner's version, the state and pruning."""

    async def unchanged(self, client: InternalClient, work: ChildWrite) -> AnyObject | None:
        del client
        return None if work.view is None or _marks_differing(work, work.view) else work.view.object

    async def write(self, client: InternalClient, work: ChildWrite, owner: Object) -> Done:
        view = work.view
        if view is None:
            return await _created(client, work, owner)
        patch = MergePatch({"metadata": {**_marks_differing(work, view), "resourceVersion": view.resource_version}})
        return await client.patch(cast("Any", work.output.known.kind), view.key, patch), ""


def _marks_differing(work: ChildWrite, view: StoredView) -> Tree:
    """The marks that need a change; empty for an object that we did not create."""
    owner, bond = work.owner_uid, work.output.bond
    if bond == "none" or not was_made(view, owner):
        return {}
    metadata: Tree = tree_of(work.child).get("metadata") or {}
    differing: Tree = {}
    present = {"labels": view.labels, "annotations": view.metadata.annotations or {}}
    for place, name in (("labels", STATE_LABEL), ("annotations", PRUNE_ANNOTATION)):
        marks: dict[str, str] = metadata.get(place) or {}
        wanted = marks.get(name)
        if wanted != present[place].get(name):
            differing[place] = {name: wanted}
    declared = next((each for each in metadata.get("ownerReferences") or () if each["uid"] == owner), None)
    references = view.metadata.owner_references or ()
    if declared and any(each.uid == owner and each.api_version != declared["apiVersion"] for each in references):
        # The garbage collector does not find an owner by a version that is no longer served.
        differing["ownerReferences"] = [
            declared if each["uid"] == owner else each for each in _live(view)["metadata"]["ownerReferences"]
        ]
    return differing


class _Merge:
    """A merge patch of the differences."""

    async def unchanged(self, client: InternalClient, work: ChildWrite) -> AnyObject | None:
        del client
        return work.view.object if work.view is not None and not _difference(work) else None

    async def write(self, client: InternalClient, work: ChildWrite, owner: Object) -> Done:
        if work.view is None:
            return await _created(client, work, owner)
        try:
            return await self._changed(client, work, work.view), "adopted" if work.adopting else ""
        except Invalid as error:
            done = await refused(client, work, error)
            return await _created(client, work, owner, word="recreated") if done is None else done

    async def _changed(self, client: InternalClient, work: ChildWrite, view: StoredView) -> AnyObject:
        patch = _difference(work)
        if work.seen_version:
            patch.setdefault("metadata", {})["resourceVersion"] = work.seen_version
        return await client.patch(cast("Any", work.output.known.kind), view.key, MergePatch(patch))


class _Update(_Merge):
    """Read, change, put."""

    async def _changed(self, client: InternalClient, work: ChildWrite, view: StoredView) -> AnyObject:
        return await _put(client, work, view, apply_merge_patch(_live(view), _difference(work)))


class _Replace(_Merge):
    """Put the child as it is declared. Whatever else the object has goes."""

    async def unchanged(self, client: InternalClient, work: ChildWrite) -> AnyObject | None:
        del client
        view = work.view
        if view is None:
            return None
        live = _live(view)
        wanted, stored = content_of(_overwrite(work, live)), content_of(live)
        same = wanted == stored or work.memory.server_defaults.stored_before(view.uid, wanted, stored)
        return view.object if same else None

    async def write(self, client: InternalClient, work: ChildWrite, owner: Object) -> Done:
        done = await super().write(client, work, owner)
        if not isinstance(done, Problem) and (raw := raw_bytes(done[0])) is not None:
            stored = msgspec.json.decode(raw)
            wanted = content_of(_overwrite(work, stored))
            work.memory.server_defaults.remember_overwrite(uid_of(done[0]) or "", wanted, content_of(stored))
        return done

    async def _changed(self, client: InternalClient, work: ChildWrite, view: StoredView) -> AnyObject:
        return await _put(client, work, view, _overwrite(work, _live(view)))


_APPLY, _CREATE, _MERGE, _UPDATE, _REPLACE = _Apply(), _Create(), _Merge(), _Update(), _Replace()


def _live(view: StoredView) -> Tree:
    return msgspec.json.decode(view.stored.raw)


def _overwrite(work: ChildWrite, live: Tree) -> Tree:
    """The child in place of a live object, with the marks of another program, or of an adoption by labels."""
    made = work.view is None or was_made(work.view, work.owner_uid)
    metadata: Tree = live["metadata"]
    left = {parse_path(field)[-1] for field in work.removed}
    marks = {
        place: {
            name: metadata[place][name]
            for name in metadata.get(place) or ()
            if name not in left and _stays(name, made=made)
        }
        for place in ("labels", "annotations")
    }
    return overwrite_of(tree_of(work.child), live, marks)


def _stays(name: str, *, made: bool) -> bool:
    return name == CLAIMED_ANNOTATION if made else is_mark(name)


async def _put(client: InternalClient, work: ChildWrite, view: StoredView, tree: Tree) -> AnyObject:
    raw, child, partial = msgspec.json.encode(tree), work.child, view.stored.partial
    if isinstance(child, Unstructured):
        return await client.update(Unstructured.decode(raw, partial=partial))
    return await client.update(decode(type(child), raw, partial=partial))


async def _created(client: InternalClient, work: ChildWrite, owner: Object, *, word: str = "created") -> Done:
    try:
        return await client.create(cast("Object", work.child)), word
    except AlreadyExists as conflict:
        met = await _met(client, work, owner, conflict)
        if isinstance(met, Problem):
            return met
    # It is ours, or may be: compare it when the cache shows it.
    return _waiting(work)


def _waiting(work: ChildWrite) -> Problem:
    return Problem(
        "Waiting",
        f"{work.output.identity} was just created by another writer; Steersman compares it when the watch delivers it",
    )


async def _met(
    client: InternalClient, work: ChildWrite, owner: Object, conflict: Conflict | AlreadyExists
) -> str | Problem:
    """Decide about an object that the cache does not show: the version to apply on ("" for any), or a problem."""
    output = work.output
    found = await client.live.metadata.find(cast("Any", output.known.kind), output.identity.key)
    if found is None:
        raise conflict  # gone again: the next reconcile reads the current state
    metadata: ObjectMeta = found.metadata
    if metadata.deletion_timestamp is not None:
        return Problem("Deleting", f"{output.identity} is being deleted; Steersman recreates it when it is gone")
    uid, bond = owner.metadata.uid or "", output.bond
    whose = standing(metadata, uid, bond, client.field_managers)
    if bond == "none" and whose != "other":
        return ""
    if whose == "ours":
        if marked_by(metadata, uid, bond, client.field_managers):
            return ""
        return _waiting(work)  # another program has just created it for the same owner
    if whose == "free" and output.options.get("adopt"):
        return metadata.resource_version or ""
    return not_ours(output.identity, metadata, owner, bond)


async def refused(client: InternalClient, work: ChildWrite, error: Invalid) -> Problem | None:
    """Handle a change that the server rejects as impossible; None: the object is gone, so create it again."""
    output, view = work.output, work.view
    words = immutable_words(error)
    if words is None or view is None:
        raise error
    made_by_us = output.bond != "none" and was_made(view, work.owner_uid)
    if not output.options.get("recreate") or not made_by_us:
        return immutable(output.identity, words)
    problems = await _refused_anew(client, work)
    if problems:
        return cannot_recreate(output.identity, problems)
    exists = await client.delete_seen(output.known.kind, view)
    return recreating(output.identity, words) if exists else None


async def _refused_anew(client: InternalClient, work: ChildWrite) -> list[str]:
    """Why the server would reject the new object, from a dry run of its creation under another name."""
    name, child = f"{work.output.identity.key.name[:40]}-", work.child
    if isinstance(child, Unstructured):
        metadata = {key: value for key, value in child.metadata.items() if key != "name"} | {"generateName": name}
        trial: AnyObject = Unstructured({**child.tree, "metadata": metadata})
    else:
        trial = replace(child, metadata=replace(child.metadata, name=None, generate_name=name))
    try:
        await client.create(cast("Object", trial), dry_run=True)
    except Invalid as error:
        # Some kinds require a certain name, which this dry run cannot use.
        return [f"{each.field}: {each.message}" for each in error.causes if not each.field.startswith("metadata.")]
    return []


def _difference(work: ChildWrite) -> Tree:
    view, child = work.view, work.child
    assert view is not None
    intent = tree_of(child)
    for text in work.removed:
        _set_null(intent, text)
    declared = None if isinstance(child, Unstructured) else type(child)
    return merge_patch_toward(intent, _live(view), merge_schema(work.output.known.gvk, declared))


def _set_null(tree: Tree, text: str) -> None:
    *way, last = parse_path(text)
    for step in way:
        tree[step] = {**(tree.get(step) or {})}
        tree = tree[step]
    tree[last] = None


def _without_status(child: AnyObject) -> AnyObject:
    if isinstance(child, Unstructured):
        return Unstructured({name: value for name, value in child.tree.items() if name != "status"})
    if not has_status_subresource(type(child)):
        return child
    return replace(child, status=UNSET)


def _status_alone(child: AnyObject) -> AnyObject:
    """The part of a child that the status subresource accepts."""
    if isinstance(child, Unstructured):
        metadata = {name: child.metadata[name] for name in ("name", "namespace") if name in child.metadata}
        return Unstructured(
            {
                "apiVersion": child.api_version,
                "kind": child.kind,
                "metadata": metadata,
                "status": child.tree.get("status") or {},
            }
        )
    metadata = ObjectMeta(name=child.metadata.name, namespace=child.metadata.namespace)
    return cast("Any", type(child)).only(metadata=metadata, status=cast("Any", child).status)
