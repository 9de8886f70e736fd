"""Which state declared which child, as this run of the program observed it.

A reconcile that stops early does not run the later states. If a completed state no longer declares a child, either the child is
obsolete, or a new version of the program has moved it to a later state. The cluster cannot tell the two apart, but this history
can: within one run of the program, children do not move.

Guarantees
- A child that this run did not see declared is pruned only by a reconcile that reached its end.
- A deleted object is forgotten, and a new object of the same name starts without history.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from steersman.objects import Key
from steersman.patterns.children.kinds import ChildIdentity


class DeclarationHistory:
    """The declarations that one reconciler observed."""

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[str, dict[ChildIdentity, str]]] = {}

    def seen(self, key: Key, uid: str) -> Mapping[ChildIdentity, str]:
        """The children of an object that were seen declared, each with the state that declared it last."""
        known, declared = self._seen.get(key, ("", {}))
        return declared if known == uid else {}

    def note(
        self,
        key: Key,
        uid: str,
        declared: Mapping[ChildIdentity, str],
        *,
        complete: bool,
        pruned: Iterable[ChildIdentity] = (),
    ) -> None:
        """Record what a reconcile declared. A complete reconcile replaces the earlier record."""
        held = dict(declared) if complete else {**self.seen(key, uid), **declared}
        for identity in pruned:
            held.pop(identity, None)
        self._seen[key] = (uid, held)

    def forget(self, key: Key) -> None:
        """Drop a deleted object."""
        self._seen.pop(key, None)
