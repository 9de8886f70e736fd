"""The ownership graph: all objects by uid, and the dependents of each.

Guarantees
- Pure: it takes changes and returns which objects to check because of them.
- It receives all kinds in one order, so an owner that is missing here did not exist when its dependent was seen.
- Owners are identified by uid alone. A reference whose kind or name differs from its owner's makes the dependent
  suspicious; a reference into another namespace is wrong and is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steersman.controlplane.object_changes import Metadata, ObjectChange, Owner
from steersman.objects import GroupVersionKind

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class Node:
    """An object."""

    __slots__ = ("gvk", "metadata", "prefix")

    def __init__(self, change: ObjectChange) -> None:
        self.prefix = change.definition.prefix
        self.gvk: GroupVersionKind = change.definition.gvk
        self.metadata: Metadata = change.metadata

    @property
    def going(self) -> bool:
        """Whether it is marked for deletion."""
        return self.metadata.deletion_timestamp is not None

    @property
    def waits_for_dependents(self) -> bool:
        """Whether it waits until its dependents are gone (foreground deletion)."""
        return self.going and FOREGROUND in self.metadata.finalizers

    @property
    def gives_up_dependents(self) -> bool:
        """Whether it waits until its dependents no longer refer to it (orphaning)."""
        return self.going and ORPHAN in self.metadata.finalizers

    def blocks(self, owner: str) -> bool:
        """Whether an owner under foreground deletion waits for this object."""
        return any(each.uid == owner and each.block_owner_deletion for each in self.metadata.owner_references)

    def is_called(self, reference: Owner) -> bool:
        """Whether a reference has this object's apiVersion, kind and name."""
        named = (reference.api_version, reference.kind, reference.name)
        return named == (self.gvk.api_version, self.gvk.kind, self.metadata.name)


class Findings:
    """The consequences of a change."""

    def __init__(self) -> None:
        #: Uids of objects to check, each once, in order.
        self.look: dict[str, None] = {}
        #: References to owners in other namespaces, each with the uid of the dependent.
        self.misplaced: list[tuple[str, Owner]] = []


class Graph:
    """All objects and their dependents."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, uid: str) -> Node | None:
        """The object with a uid."""
        return self._nodes.get(uid)

    def dependents(self, uid: str) -> list[Node]:
        """The objects that refer to a uid as an owner."""
        return [self._nodes[each] for each in self._dependents.get(uid, ())]

    def replace(self, changes: Sequence[ObjectChange]) -> Findings:
        """Replace the content: these are all existing objects."""
        findings = Findings()
        there = dict.fromkeys(each.metadata.uid for each in changes)
        for node in [node for uid, node in self._nodes.items() if uid not in there]:
            self._remove(node, findings)
        # Add all objects before checking any: the order of a list means nothing.
        known = {uid: node.metadata for uid, node in self._nodes.items()}
        for change in changes:
            self._put(change)
        for uid in there:
            self._compare(self._nodes[uid], known.get(uid), findings)
        return findings

    def see(self, change: ObjectChange) -> Findings:
        """Record that one object was created, changed or deleted."""
        findings = Findings()
        before = self._nodes.get(change.metadata.uid)
        if not change.gone:
            metadata = before.metadata if before is not None else None
            self._compare(self._put(change), metadata, findings)
        elif before is not None:
            self._remove(before, findings)
        return findings

    def _put(self, change: ObjectChange) -> Node:
        uid = change.metadata.uid
        before = self._nodes.get(uid)
        node = self._nodes[uid] = Node(change)
        mine = dict.fromkeys(each.uid for each in node.metadata.owner_references)
        if before is not None:
            self._unlink(uid, (each for each in before.metadata.owner_references if each.uid not in mine))
        for owner in mine:
            self._dependents.setdefault(owner, {})[uid] = None
        return node

    def _unlink(self, uid: str, owners: Iterable[Owner]) -> None:
        for owner in owners:
            dependents = self._dependents.get(owner.uid)
            if dependents is not None:
                dependents.pop(uid, None)
                if not dependents:
                    del self._dependents[owner.uid]

    def _remove(self, node: Node, findings: Findings) -> None:
        uid = node.metadata.uid
        del self._nodes[uid]
        self._unlink(uid, node.metadata.owner_references)
        findings.look |= self._dependents.get(uid, {})
        for reference in node.metadata.owner_references:
            owner = self._nodes.get(reference.uid)
            if owner is not None and owner.waits_for_dependents:
                findings.look[reference.uid] = None

    def _compare(self, node: Node, before: Metadata | None, findings: Findings) -> None:
        """Find the consequences of an object's old and new state."""
        uid, metadata = node.metadata.uid, node.metadata
        old = {each.uid: each for each in before.owner_references} if before is not None else {}
        new = {each.uid: each for each in metadata.owner_references}
        if old != new:
            for reference in old.values():
                now = new.get(reference.uid)
                if reference.block_owner_deletion and (now is None or not now.block_owner_deletion):
                    # An owner may have waited for this object.
                    findings.look[reference.uid] = None
            self._judge(node, [each for each in metadata.owner_references if each.uid not in old], findings)
        if _starts(ORPHAN, before, metadata):
            findings.look[uid] = None
        elif _starts(FOREGROUND, before, metadata):
            findings.look |= self._dependents.get(uid, {})
            findings.look[uid] = None

    def _judge(self, node: Node, references: Iterable[Owner], findings: Findings) -> None:
        """Check a dependent whose new references may be invalid."""
        namespace, doubtful = node.metadata.namespace, False
        for reference in references:
            owner = self._nodes.get(reference.uid)
            if owner is None:
                findings.look[node.metadata.uid] = None
            elif doubtful:
                continue
            elif owner.metadata.namespace and owner.metadata.namespace != namespace:
                findings.misplaced.append((node.metadata.uid, reference))
                doubtful = True
            elif not owner.is_called(reference):
                doubtful = True
        if doubtful:
            findings.look[node.metadata.uid] = None


def _starts(finalizer: str, before: Metadata | None, now: Metadata) -> bool:
    """Whether a deletion held by this finalizer begins."""
    if now.deletion_timestamp is None or finalizer not in now.finalizers:
        return False
    return before is None or before.deletion_timestamp is None or finalizer not in before.finalizers
