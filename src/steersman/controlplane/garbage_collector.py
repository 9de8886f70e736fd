"""garbage-collector-controller: deletes objects whose owners are gone.

Guarantees
- An object is deleted only when none of its owners exists. The server is asked about each owner, by uid. The deletion
  applies only to the object as it was read, or to a newer version with the same owners.
- The owner's finalizers decide between background, foreground and orphan. A cycle of objects that wait for each other
  is broken.
- A reference to a missing owner is removed from an object that has another one.
- A cluster-scoped object with a namespaced owner is never deleted. An owner in another namespace does not count, and an
  Event reports it.
- An owner of an unserved kind keeps its dependents; they are checked again when the served kinds change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

from steersman.controller import Cause, Context, Done, Outcome, Reconciler, Request, Requeue
from steersman.controlplane.graph import FOREGROUND, ORPHAN, Findings, Graph, Node
from steersman.controlplane.live_objects import LiveObjects, NotServed, Propagation
from steersman.controlplane.misplaced_owners import report_misplaced
from steersman.controlplane.object_changes import ObjectChange, ObjectChanges, Owner, Watcher
from steersman.objects import Key, OwnerReference, PartialObjectMetadata

#: Objects that neither have owners nor own others.
_IGNORED = frozenset({"core/events/"})
#: The identity of an owner: apiVersion, kind, name and uid, and its presumed namespace.
_Called: TypeAlias = tuple[str, str, str, str, str]
#: How many missing owners to remember.
_ABSENT_KEPT = 500


class _OwnerWithNamespace(Exception):
    """A cluster-scoped object names a namespaced owner: an error that does not go away by itself."""


class GarbageCollector(Watcher, Reconciler[object]):
    """Checks objects whose owners changed; a request identifies an object by uid."""

    def __init__(self, changes: ObjectChanges) -> None:
        self._changes = changes
        self._graph = Graph()
        #: Objects that wait for a kind to be served.
        self._unserved: dict[str, None] = {}
        #: Owners in other namespaces still to report, by the dependent's uid.
        self._misplaced: dict[str, list[Owner]] = {}
        #: Owners known to be gone.
        self._absent: dict[_Called, None] = {}

    # events

    def seen_all(self, changes: Sequence[ObjectChange]) -> None:
        counted = [each for each in changes if each.definition.prefix not in _IGNORED]
        self._look(self._graph.replace(counted), "it exists")

    def seen(self, change: ObjectChange) -> None:
        if change.definition.prefix in _IGNORED:
            return
        if change.gone:
            self._forget(change)
        findings = self._graph.see(change)
        if findings.look:
            what = "was deleted" if change.gone else "changed"
            self._look(findings, f"{change.definition.gvk.kind} {change.metadata.name} {what}")

    def _forget(self, change: ObjectChange) -> None:
        gvk, metadata = change.definition.gvk, change.metadata
        self._unserved.pop(metadata.uid, None)
        self._misplaced.pop(metadata.uid, None)
        if self._graph.dependents(metadata.uid):
            # Their owner is gone, even if its kind is no longer served.
            self._remember_absent((gvk.api_version, gvk.kind, metadata.name, metadata.uid, metadata.namespace))

    def kinds_changed(self) -> None:
        """Check objects again that waited for a kind."""
        waiting, self._unserved = self._unserved, {}
        for uid in waiting:
            self._look_at(uid, "the served kinds changed")

    def _look(self, findings: Findings, note: str) -> None:
        for uid, owner in findings.misplaced:
            self._misplaced.setdefault(uid, []).append(owner)
        for uid in findings.look:
            self._look_at(uid, note)

    def _look_at(self, uid: str, note: str) -> None:
        node = self._graph.get(uid)
        if node is not None and self._add is not None:
            # Without its namespace: related objects are checked together, not in turns with other namespaces.
            self._add(Request(Key("", uid)), Cause(what="external", note=note))

    # actions

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Delete or repair one object, if necessary."""
        uid = request.key.name
        misplaced = self._misplaced.pop(uid, ())
        node = self._graph.get(uid)
        if node is None:
            return Done()
        for owner in misplaced:
            await report_misplaced(ctx.client, node, owner)
        live = LiveObjects(ctx.client, self._changes)
        try:
            if node.gives_up_dependents:
                await self._orphan(live, node)
            elif node.waits_for_dependents:
                await self._finish(live, node)
            elif not node.going:
                return await self._judge(live, node)
        except NotServed:
            self._unserved[uid] = None
        except _OwnerWithNamespace:
            pass
        return Done()

    async def _orphan(self, live: LiveObjects, node: Node) -> None:
        """Remove an owner from its dependents, then release it."""
        uid = node.metadata.uid
        removals = [live.remove_owners(each, [uid]) for each in self._graph.dependents(uid)]
        results = await asyncio.gather(*removals, return_exceptions=True)
        for failure in results:
            if isinstance(failure, BaseException) and not isinstance(failure, NotServed):
                raise failure
        await live.remove_finalizer(node, ORPHAN)

    async def _finish(self, live: LiveObjects, node: Node) -> None:
        """Release an object if no dependent blocks it; otherwise check those that do."""
        if await live.of(node) is None:
            return
        blocking = [each for each in self._graph.dependents(node.metadata.uid) if each.blocks(node.metadata.uid)]
        if not blocking:
            await live.remove_finalizer(node, FOREGROUND)
        for each in blocking:
            if not each.waits_for_dependents:
                self._look_at(each.metadata.uid, f"its owner {node.gvk.kind} {node.metadata.name} waits for it")

    async def _judge(self, live: LiveObjects, node: Node) -> Outcome:
        """Delete an object without owners; if it keeps one, remove its missing and terminating owners."""
        now = await live.of(node)
        references = now.metadata.owner_references if now is not None else None
        if now is None or not references:
            return Done()
        solid = False
        gone: list[str] = []
        waiting: list[str] = []
        # Concurrently, so that a change to one of them meanwhile shows in none or in all.
        owners = [self._owner(live, node, each) for each in references]
        for reference, owner in zip(references, await asyncio.gather(*owners, return_exceptions=True), strict=True):
            if isinstance(owner, BaseException):
                raise owner
            if owner is None:
                gone.append(reference.uid)
            elif owner.metadata.deletion_timestamp is not None and FOREGROUND in (owner.metadata.finalizers or ()):
                waiting.append(reference.uid)
            else:
                solid = True
        if solid:
            if gone or waiting:
                # Otherwise those owners would wait forever.
                await live.remove_owners(node, [*gone, *waiting])
            return Done()
        if waiting and (dependents := self._graph.dependents(node.metadata.uid)):
            if any(each.waits_for_dependents for each in dependents) and _blocks(now):
                # If an owner and a dependent of an object both wait, they may form a cycle: stop owners from waiting
                # for this object, and check it again afterwards.
                await live.unblock(node, now)
                return Requeue()
            await live.delete(node, now, "Foreground")
            return Done()
        await live.delete(node, now, _policy(now))
        return Done()

    async def _owner(self, live: LiveObjects, node: Node, reference: OwnerReference) -> PartialObjectMetadata | None:
        """The current state of an owner; None if it is gone."""
        namespace = node.metadata.namespace
        called = (reference.api_version, reference.kind, reference.name, reference.uid)
        if (*called, "") in self._absent or (*called, namespace) in self._absent:
            return None
        if not live.kind(reference).namespaced:
            namespace = ""
        elif not namespace:
            raise _OwnerWithNamespace
        owner = await live.owner(reference, namespace)
        if owner is None:
            self._remember_absent((*called, namespace))
        return owner

    def _remember_absent(self, owner: _Called) -> None:
        """Remember a missing owner; its uid is never reused."""
        if len(self._absent) >= _ABSENT_KEPT:
            del self._absent[next(iter(self._absent))]
        self._absent[owner] = None


def _blocks(obj: PartialObjectMetadata) -> bool:
    """Whether an owner may wait for this object."""
    return any(each.block_owner_deletion for each in obj.metadata.owner_references or ())


def _policy(obj: PartialObjectMetadata) -> Propagation:
    """The propagation for the dependents of an ownerless object: as its finalizers already say."""
    finalizers = obj.metadata.finalizers or ()
    return "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
