"""What an operator would change, object by object, while nothing is changed.

Guarantees
- There is one `PlannedObject` per object: from the server's state when the operator first touched it to the state after
  all its writes.
- Planned objects have resource versions above all real ones, so that readers of a cache see the planned state instead
  of the current one; `real_version` leads back.
- Each records the reconciles that cause it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from typing import NamedTuple

import msgspec

from steersman.objects import GroupVersionKind, Key
from steersman.plan.stand_ins import generated_name
from steersman.plan.trees import Tree, merged, part
from steersman.wire import ResourcePath

#: Above every real version: etcd counts its writes, and 10**15 of them take longer than the life of a cluster.
PLANNED_VERSIONS = 10**15
_TIMES = frozenset({"resourceVersion", "creationTimestamp", "managedFields"})


class Reconcile(NamedTuple):
    """The origin of a write: a controller, for an object."""

    controller: str
    kind: GroupVersionKind
    key: Key

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.key}"


#: The current reconcile; None outside of reconciles.
CURRENT: ContextVar[Reconcile | None] = ContextVar("reconcile", default=None)


class Location(NamedTuple):
    """The place of an object, independent of the version of its kind."""

    group: str
    resource: str
    namespace: str
    name: str

    @classmethod
    def of(cls, path: ResourcePath, name: str | None = None) -> Location:
        """The object of a path, or the one with this name in its collection."""
        return cls(path.group, path.resource, path.namespace or "", name or path.name or "")


class PlannedObject(msgspec.Struct):
    """The planned change of one object."""

    place: Location
    #: The server's state; None if it does not exist.
    before: Tree | None
    #: The planned state; None if it would be gone.
    after: Tree | None
    #: Whether it would be deleted; with finalizers it would still exist.
    deleted: bool = False
    #: Whether it would be deleted and created again.
    replaced: bool = False
    #: The body sent to create it, without the server's additions.
    sent: Tree | None = None
    real_version: str = ""
    by: dict[Reconcile, None] = msgspec.field(default_factory=dict[Reconcile, None])
    notes: dict[str, None] = msgspec.field(default_factory=dict[str, None])

    @property
    def tree(self) -> Tree:
        """The planned state, or the current one."""
        return self.after or self.before or {}

    @property
    def kind(self) -> str:
        """Its kind."""
        return str(self.tree.get("kind") or self.place.resource)

    @property
    def name(self) -> str:
        """``default/web``; for a generated name, its prefix."""
        made_up = part(self.tree, "metadata").get("generateName") if self.before is None else None
        name = f"{made_up}(generated)" if made_up else self.place.name
        return f"{self.place.namespace}/{name}" if self.place.namespace else name


class Rejection(msgspec.Struct, frozen=True):
    """A write that the server would reject, or that has no dry run."""

    what: str
    words: str
    by: Reconcile | None = None


class PlannedObjects:
    """All planned changes."""

    def __init__(self) -> None:
        self._found: dict[Location, PlannedObject] = {}
        self._places: dict[tuple[str, str, Key], Location] = {}
        self._rejections: dict[Rejection, None] = {}
        self._version = PLANNED_VERSIONS
        self._changes: dict[Reconcile | None, int] = {}
        #: How many names of a prefix each reconcile has got.
        self._generated: dict[tuple[Reconcile | None, Location, str], int] = {}

    def __iter__(self) -> Iterator[PlannedObject]:
        """The objects that exist before or after; not those that the plan creates and deletes again."""
        return (each for each in self._found.values() if each.before is not None or each.after is not None)

    def get(self, place: Location) -> PlannedObject | None:
        """The planned change of an object; one that was created and deleted again has neither state."""
        return self._found.get(place)

    def find(self, kind: GroupVersionKind, key: Key) -> PlannedObject | None:
        """The planned change of an object of a kind."""
        place = self._places.get((kind.group, kind.kind, key))
        return self._found.get(place) if place is not None else None

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """The rejections, each once."""
        return tuple(self._rejections)

    def changes_of(self, who: Reconcile) -> int:
        """How often a reconcile has changed the plan."""
        return self._changes.get(who, 0)

    @property
    def version(self) -> str:
        """The version of the latest planned write."""
        return str(self._version)

    def plans_namespace(self, name: str | None) -> bool:
        """Whether a namespace does not exist yet and would be created."""
        found = self._found.get(Location("", "namespaces", "", name or ""))
        return found is not None and found.before is None and found.after is not None

    def generated_name(self, place: Location, sent: Tree) -> str:
        """The name of the next object that the current reconcile creates with ``generateName``."""
        prefix = str(part(sent, "metadata").get("generateName") or "")
        counted = (CURRENT.get(), place, prefix)
        number = self._generated[counted] = self._generated.get(counted, 0) + 1
        return generated_name(prefix, counted[0], *place, number)

    # recording

    def made(self, place: Location, tree: Tree, *, sent: Tree, note: str = "") -> Tree:
        """Record a creation, also after a planned deletion; returns the object to show to readers."""
        planned = self._take(place, None)
        again = planned.after is not None and not planned.deleted and _content(planned.after) == _content(tree)
        planned.replaced = planned.replaced or planned.deleted
        planned.sent, planned.deleted = sent, False
        return self._becomes(planned, tree, note, same=again)

    def changed(self, place: Location, before: Tree, result: Tree, note: str = "") -> Tree:
        """Record that the server would turn ``before`` into ``result``; returns the object to show to readers."""
        planned = self._take(place, before)
        base = planned.before if planned.before is not None else before
        last = _bare(planned.after if planned.after is not None else base)
        tree = merged(_bare(before), last, _bare(result))
        return self._becomes(planned, tree, note, same=tree == last)

    def deleted(self, place: Location, before: Tree, after: Tree | None) -> Tree | None:
        """Record a deletion; ``after`` is given if the object would only be marked."""
        planned = self._take(place, before)
        self._next_version()
        if planned.before is None:
            planned.after = planned.sent = None  # it never existed
            self._count()
            return None
        if not planned.deleted:
            self._count()
        planned.deleted, planned.after = True, None
        if after is None:
            return None
        planned.after = {**after, "metadata": {**part(after, "metadata"), "resourceVersion": self.version}}
        return planned.after

    def rejected(self, what: str, words: str) -> None:
        """Record a rejected write."""
        self._rejections[Rejection(what, words, CURRENT.get())] = None

    def _take(self, place: Location, before: Tree | None) -> PlannedObject:
        found = self._found.get(place)
        if found is None:
            version = str(part(before, "metadata").get("resourceVersion") or "")
            found = self._found[place] = PlannedObject(place, before, None, real_version=version)
        if before is not None:
            self._name(found)
        if (who := CURRENT.get()) is not None:
            found.by[who] = None
        return found

    def _name(self, planned: PlannedObject) -> None:
        at = planned.place
        self._places[at.group, planned.kind, Key(at.namespace, at.name)] = at

    def _becomes(self, planned: PlannedObject, tree: Tree, note: str, *, same: bool) -> Tree:
        if note:
            planned.notes[note] = None
        if not same:
            self._count()
            version = self._next_version()
        else:  # a write that changes nothing leaves the version as it is
            version = part(planned.after, "metadata").get("resourceVersion") or planned.real_version
        planned.after = {**tree, "metadata": {**part(tree, "metadata"), "resourceVersion": version}}
        self._name(planned)
        return planned.after

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)

    def _count(self) -> None:
        who = CURRENT.get()
        self._changes[who] = self._changes.get(who, 0) + 1


def _bare(tree: Tree) -> Tree:
    """An object without its resource version."""
    metadata = {name: value for name, value in part(tree, "metadata").items() if name != "resourceVersion"}
    return {**tree, "metadata": metadata}


def _content(tree: Tree) -> Tree:
    """An object without what differs between two dry runs of its creation."""
    metadata = {name: value for name, value in part(tree, "metadata").items() if name not in _TIMES}
    return {**tree, "metadata": metadata}
