"""What an operator would change, object by object, while nothing is changed.

Guarantees
- Of each object there is one intention: from the state that the server held when the operator first touched it to the
  state that all its writes together would make.
- What is planned has versions of its own, higher than any that a server gives, so that readers of a cache see the planned
  state and not the present one; `real_version` leads back.
- Who intends what is known: writes are told apart by the reconcile that makes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from typing import NamedTuple

import msgspec

from steersman.cli.diffs import Tree, merged, part
from steersman.objects import GroupVersionKind, Key
from steersman.wire.paths import ResourcePath

#: Above every version that a server gives: etcd counts its writes, and 10**15 of them take longer than a cluster lives.
PLANNED_VERSIONS = 10**15


class Reconcile(NamedTuple):
    """Who writes: a controller, on behalf of an object."""

    controller: str
    kind: GroupVersionKind
    key: Key

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.key}"


#: The reconcile that runs now; None outside of all.
CURRENT: ContextVar[Reconcile | None] = ContextVar("reconcile", default=None)


class Place(NamedTuple):
    """Where an object is, whatever version of its kind is spoken of."""

    group: str
    resource: str
    namespace: str
    name: str

    @classmethod
    def of(cls, path: ResourcePath, name: str | None = None) -> Place:
        """The object that a path leads to, or one of this name in its collection."""
        return cls(path.group, path.resource, path.namespace or "", name or path.name or "")


class Intention(msgspec.Struct):
    """What is to become of one object."""

    place: Place
    #: As the server held it; None if it did not.
    before: Tree | None
    #: As it would be; None if it would be gone.
    after: Tree | None
    #: Whether it would be deleted; an object with finalizers is still there then.
    deleted: bool = False
    #: What was sent to create it, without what the server adds.
    sent: Tree | None = None
    real_version: str = ""
    by: dict[Reconcile, None] = msgspec.field(default_factory=dict[Reconcile, None])
    notes: dict[str, None] = msgspec.field(default_factory=dict[str, None])

    @property
    def tree(self) -> Tree:
        """The object as it would be, or as it was."""
        return self.after or self.before or {}

    @property
    def kind(self) -> str:
        """Its kind."""
        return str(self.tree.get("kind") or self.place.resource)

    @property
    def name(self) -> str:
        """``default/web``, or what is known of a name that the server makes."""
        made_up = part(self.tree, "metadata").get("generateName") if self.before is None else None
        name = f"{made_up}(generated)" if made_up else self.place.name
        return f"{self.place.namespace}/{name}" if self.place.namespace else name


class Refusal(msgspec.Struct, frozen=True):
    """A write that the server would not take, or that cannot be tried."""

    what: str
    words: str
    by: Reconcile | None = None


class Intentions:
    """All that is planned."""

    def __init__(self) -> None:
        self._found: dict[Place, Intention] = {}
        self._places: dict[tuple[str, str, Key], Place] = {}
        self._refusals: dict[Refusal, None] = {}
        self._version = PLANNED_VERSIONS
        self._changes: dict[Reconcile | None, int] = {}

    def __iter__(self) -> Iterator[Intention]:
        return iter(self._found.values())

    def get(self, place: Place) -> Intention | None:
        """What is planned for an object."""
        return self._found.get(place)

    def find(self, kind: GroupVersionKind, key: Key) -> Intention | None:
        """What is planned for an object of a kind."""
        place = self._places.get((kind.group, kind.kind, key))
        return self._found.get(place) if place is not None else None

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """What was refused, each once."""
        return tuple(self._refusals)

    def changes_of(self, who: Reconcile) -> int:
        """How often a reconcile has changed what is planned."""
        return self._changes.get(who, 0)

    def plans_namespace(self, name: str | None) -> bool:
        """Whether a namespace is not there yet and would be."""
        found = self._found.get(Place("", "namespaces", "", name or ""))
        return found is not None and found.before is None and found.after is not None

    # what is told

    def made(self, place: Place, tree: Tree, *, sent: Tree, note: str = "") -> Tree:
        """An object would be created, again if it was to be deleted; gives it back as it is to be seen."""
        intention = self._take(place, None)
        again = intention.sent == sent and not intention.deleted
        intention.sent, intention.deleted = sent, False
        return self._becomes(intention, tree, note, same=again)

    def changed(self, place: Place, before: Tree, result: Tree, note: str = "") -> Tree:
        """The server would make ``result`` of ``before``; gives back the object as it is to be seen."""
        intention = self._take(place, before)
        base = intention.before if intention.before is not None else before
        planned = intention.after if intention.after is not None else base
        tree = merged(_bare(before), _bare(planned), _bare(result))
        return self._becomes(intention, tree, note, same=tree == _bare(planned))

    def deleted(self, place: Place, before: Tree, after: Tree | None) -> Tree | None:
        """An object would be deleted; ``after`` if it would be marked and wait."""
        intention = self._take(place, before)
        if intention.before is None:
            del self._found[place]  # it was never there
            self._count()
            return None
        if not intention.deleted:
            self._count()
        intention.deleted, intention.after = True, None
        return None if after is None else self._becomes(intention, after, "", same=True)

    def refused(self, what: str, words: str) -> None:
        """A write would not be taken."""
        self._refusals[Refusal(what, words, CURRENT.get())] = None

    def _take(self, place: Place, before: Tree | None) -> Intention:
        found = self._found.get(place)
        if found is None:
            version = str(part(before, "metadata").get("resourceVersion") or "")
            found = self._found[place] = Intention(place, before, None, real_version=version)
        if before is not None:
            self._name(found)
        if (who := CURRENT.get()) is not None:
            found.by[who] = None
        return found

    def _name(self, intention: Intention) -> None:
        at = intention.place
        self._places[at.group, intention.kind, Key(at.namespace, at.name)] = at

    def _becomes(self, intention: Intention, tree: Tree, note: str, *, same: bool) -> Tree:
        if note:
            intention.notes[note] = None
        if not same:
            self._count()
        self._version += 1
        metadata = {**part(tree, "metadata"), "resourceVersion": str(self._version)}
        intention.after = {**tree, "metadata": metadata}
        self._name(intention)
        return intention.after

    def _count(self) -> None:
        who = CURRENT.get()
        self._changes[who] = self._changes.get(who, 0) + 1


def _bare(tree: Tree) -> Tree:
    """An object without its version, which says nothing about it."""
    metadata = {name: value for name, value in part(tree, "metadata").items() if name != "resourceVersion"}
    return {**tree, "metadata": metadata}
