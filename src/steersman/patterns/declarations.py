"""Which children the states of this very program were seen to declare.

A pass that stops early may not ask the states behind. So whether a child that a completed state declares no longer is
superfluous, or is declared by a later state now, as when a new version of the program moved it there, cannot be told from the
cluster. It can be told by having seen the state declare it: the same program does not move children.

Guarantees
- What this program did not see declared is pruned only by a pass that reached its end.
- An object that is gone is forgotten, and one that came again under its name begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from steersman.objects import Key
from steersman.patterns.children import Identity


class Declarations:
    """The memory of one reconciler."""

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[str, dict[Identity, str]]] = {}

    def seen(self, key: Key, uid: str) -> Mapping[Identity, str]:
        """The children of an object that were seen declared, each with the state that last did."""
        known, declared = self._seen.get(key, ("", {}))
        return declared if known == uid else {}

    def note(
        self, key: Key, uid: str, declared: Mapping[Identity, str], *, complete: bool, pruned: Iterable[Identity] = ()
    ) -> None:
        """Take down what a pass declared; after one that reached its end that is all there is."""
        held = dict(declared) if complete else {**self.seen(key, uid), **declared}
        for identity in pruned:
            held.pop(identity, None)
        self._seen[key] = (uid, held)

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._seen.pop(key, None)
