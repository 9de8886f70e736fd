"""Which owners to trigger for objects that do not name them: shared children, and objects in the way of a child. Pure.

A label on the object cannot express this. Several owners may share one child, an object in the way belongs to another program,
and a child that does not exist yet has no labels.

Guarantees
- Complete: every object that the last reconcile of a state subscribed to triggers its owner.
- Bounded by what live owners declare: each reconcile of a state replaces its subscriptions, and they end with the owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Set as AbstractSet

from steersman.objects import Key
from steersman.patterns.children.kinds import ChildIdentity


class Subscriptions:
    """The subscriptions of one controller's owners."""

    def __init__(self) -> None:
        #: The objects that each state of an owner subscribes to.
        self._states: dict[Key, dict[str, set[ChildIdentity]]] = {}
        #: The subscribed owners of an object, each with the number of its states that subscribe.
        self._owners: dict[ChildIdentity, dict[Key, int]] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def owners(self, identity: ChildIdentity) -> Iterable[Key]:
        """The owners that subscribe to this object."""
        return tuple(self._owners.get(identity, ()))

    def add(self, owner: Key, state: str, identity: ChildIdentity) -> None:
        """Subscribe to one more object."""
        waiting = self._states.setdefault(owner, {}).setdefault(state, set())
        if identity not in waiting:
            waiting.add(identity)
            owners = self._owners.setdefault(identity, {})
            owners[owner] = owners.get(owner, 0) + 1

    def replace(self, owner: Key, state: str, waiting: AbstractSet[ChildIdentity]) -> None:
        """Replace the subscriptions of a state."""
        before = self._states.get(owner, {}).get(state, _NOTHING)
        for identity in waiting - before:
            self.add(owner, state, identity)
        for identity in before - waiting:
            self._drop(identity, owner, state)

    def forget(self, owner: Key) -> None:
        """Drop a deleted owner."""
        for state in tuple(self._states.get(owner, ())):
            self.replace(owner, state, _NOTHING)

    def _drop(self, identity: ChildIdentity, owner: Key, state: str) -> None:
        states = self._states[owner]
        states[state].discard(identity)
        if not states[state]:
            del states[state]
        if not states:
            del self._states[owner]
        owners = self._owners[identity]
        owners[owner] -= 1
        if not owners[owner]:
            del owners[owner]
        if not owners:
            del self._owners[identity]


_NOTHING: AbstractSet[ChildIdentity] = frozenset()
