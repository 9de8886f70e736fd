"""garbage-collector-controller: objects go when their owners have gone.

Guarantees
- An object is deleted when none of its owners is there, and only then. Whether they are is asked of the server for each
  of them, by uid; what is deleted is the object that was looked at, in the version that was looked at, or one with the
  same owners.
- Background, foreground and orphan are what the finalizers of the owner say. A cycle of objects that wait for each other
  is opened.
- A reference to an owner that is gone is removed from an object that has another one.
- A cluster-scoped object with a namespaced owner is never deleted. An owner of another namespace is none, and an Event
  says so.
- An owner whose kind is not served holds its dependents; they are looked at again when kinds come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

from steersman.controller import Cause, Context, Done, Outcome, Reconciler, Request, Requeue
from steersman.controlplane.graph import FOREGROUND, ORPHAN, Findings, Graph, Node
from steersman.controlplane.live import LiveObjects, NotServed, Propagation
from steersman.controlplane.misplaced import report_misplaced
from steersman.controlplane.namespaced import Add
from steersman.controlplane.sightings import Owner, Sighting, Sightings
from steersman.objects import Key, OwnerReference, PartialObjectMetadata

#: Objects that are nobody's dependents and nobody's owners.
_IGNORED = frozenset({"core/events/"})
#: What an owner is called: apiVersion, kind, name and uid, and the namespace in which it would be.
_Called: TypeAlias = tuple[str, str, str, str, str]
#: How many owners that are known to be gone are remembered.
_ABSENT_KEPT = 500


class _OwnerWithNamespace(Exception):
    """An object without a namespace names an owner that has one: that is wrong, and stays so."""


class GarbageCollector(Reconciler[object]):
    """Looks at objects whose owners changed; a request names an object by its uid."""

    def __init__(self, sightings: Sightings) -> None:
        self._sightings = sightings
        self._graph = Graph()
        self._add: Add | None = None
        #: Objects that wait for a kind to be served.
        self._unserved: dict[str, None] = {}
        #: Owners in other namespaces that are to be reported, by the dependent's uid.
        self._misplaced: dict[str, list[Owner]] = {}
        #: Owners that are gone.
        self._absent: dict[_Called, None] = {}

    # what happens

    def feeds(self, add: Add) -> None:
        """Say where requests go."""
        self._add = add

    def seen_all(self, sightings: Sequence[Sighting]) -> None:
        """See `Watcher`."""
        counted = [each for each in sightings if each.definition.prefix not in _IGNORED]
        self._look(self._graph.replace(counted), "it is there")

    def seen(self, sighting: Sighting) -> None:
        """See `Watcher`."""
        if sighting.definition.prefix in _IGNORED:
            return
        if sighting.gone:
            self._forget(sighting)
        findings = self._graph.see(sighting)
        if findings.look:
            what = "went" if sighting.gone else "changed"
            self._look(findings, f"{sighting.definition.gvk.kind} {sighting.metadata.name} {what}")

    def _forget(self, sighting: Sighting) -> None:
        gvk, metadata = sighting.definition.gvk, sighting.metadata
        self._unserved.pop(metadata.uid, None)
        self._misplaced.pop(metadata.uid, None)
        if self._graph.dependents(metadata.uid):
            # They can be judged even if the kind of their owner goes with it.
            self._remember_absent((gvk.api_version, gvk.kind, metadata.name, metadata.uid, metadata.namespace))

    def kinds_changed(self) -> None:
        """Look again at what could not be judged."""
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
            # Without its namespace: what belongs together is looked at together, not in turns with other namespaces.
            self._add(Request(Key("", uid)), Cause(what="external", note=note))

    # what is done about it

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Delete or mend one object, if that is due."""
        uid = request.key.name
        misplaced = self._misplaced.pop(uid, ())
        node = self._graph.get(uid)
        if node is None:
            return Done()
        for owner in misplaced:
            await report_misplaced(ctx.client, node, owner)
        live = LiveObjects(ctx.client, self._sightings)
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
        """Remove an owner from its dependents, then let it go."""
        uid = node.metadata.uid
        removals = [live.remove_owners(each, [uid]) for each in self._graph.dependents(uid)]
        results = await asyncio.gather(*removals, return_exceptions=True)
        for failure in results:
            if isinstance(failure, BaseException) and not isinstance(failure, NotServed):
                raise failure
        await live.remove_finalizer(node, ORPHAN)

    async def _finish(self, live: LiveObjects, node: Node) -> None:
        """Let an object go if no dependent holds it; otherwise look at those that do."""
        if await live.of(node) is None:
            return
        blocking = [each for each in self._graph.dependents(node.metadata.uid) if each.blocks(node.metadata.uid)]
        if not blocking:
            await live.remove_finalizer(node, FOREGROUND)
        for each in blocking:
            if not each.waits_for_dependents:
                self._look_at(each.metadata.uid, f"its owner {node.gvk.kind} {node.metadata.name} waits for it")

    async def _judge(self, live: LiveObjects, node: Node) -> Outcome:
        """Delete an object without owners; forget those of its owners that go or are gone, if it keeps one."""
        now = await live.of(node)
        references = now.metadata.owner_references if now is not None else None
        if now is None or not references:
            return Done()
        solid = False
        gone: list[str] = []
        waiting: list[str] = []
        # All at once, so that what is done about one of them meanwhile shows in none or in all.
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
                # Those that wait would wait for ever.
                await live.remove_owners(node, [*gone, *waiting])
            return Done()
        if waiting and (dependents := self._graph.dependents(node.metadata.uid)):
            if any(each.waits_for_dependents for each in dependents) and _blocks(now):
                # An owner and a dependent of one object that both wait may be a circle: from now on nobody waits for this
                # one. It is looked at again when that has had its effect.
                await live.unblock(node, now)
                return Requeue()
            await live.delete(node, now, "Foreground")
            return Done()
        await live.delete(node, now, _policy(now))
        return Done()

    async def _owner(self, live: LiveObjects, node: Node, reference: OwnerReference) -> PartialObjectMetadata | None:
        """An owner as it is now; None if it is gone."""
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
        """An owner is gone, and its uid does not come back."""
        if len(self._absent) >= _ABSENT_KEPT:
            del self._absent[next(iter(self._absent))]
        self._absent[owner] = None


def _blocks(obj: PartialObjectMetadata) -> bool:
    """Whether an owner may wait for an object."""
    return any(each.block_owner_deletion for each in obj.metadata.owner_references or ())


def _policy(obj: PartialObjectMetadata) -> Propagation:
    """What becomes of the dependents of an object without owners: what its finalizers say already."""
    finalizers = obj.metadata.finalizers or ()
    return "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
