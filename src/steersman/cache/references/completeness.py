"""From which version on each name of a wide scope is complete. Pure.

A wide scope begins at a version, without a list. Each of its names then joins by a read of its own.

Guarantees
- An answer at version R and the events of the watch together are every state of the name from R on, whichever comes first.
- An answer that was requested before its scope began again, or before its name was placed, is not used.
- A name of which an event came after the request and is newer than the answer keeps the state of the event.
"""

from __future__ import annotations

from collections.abc import Iterable

from steersman.objects import Key, version_number


class JoinedNames:
    """The names of all wide scopes of a kind."""

    def __init__(self) -> None:
        self._joined: set[Key] = set()
        #: Events of these names up to these versions are older than the answer that the store has.
        self._floors: dict[Key, int] = {}
        #: The versions of the last events of names that have not joined.
        self._seen: dict[Key, int] = {}
        #: How often each name had to join again.
        self._turns: dict[Key, int] = {}
        self._turn = 0

    def __contains__(self, key: object) -> bool:
        return key in self._joined

    def begin(self, keys: Iterable[Key]) -> None:
        """These names have to join: their scope begins, or they were placed in it."""
        self._turn += 1
        for key in keys:
            self.forget(key)
            self._turns[key] = self._turn

    def forget(self, key: Key) -> None:
        """This name is in no wide scope, or its scope has not begun."""
        self._joined.discard(key)
        for known in (self._floors, self._seen, self._turns):
            known.pop(key, None)

    def turn(self, key: Key) -> int | None:
        """What to pass to `admits` with an answer that is requested now; None if the name need not join."""
        return None if key in self._joined else self._turns.get(key)

    def overtakes(self, key: Key, resource_version: str) -> bool:
        """Note an event of the watch. Return whether the store has a newer state."""
        number = version_number(resource_version) or 0
        floor = self._floors.get(key)
        if floor is not None:
            if number <= floor:
                return True
            del self._floors[key]
        if key in self._turns and key not in self._joined:
            self._seen[key] = number
        return False

    def admits(self, key: Key, turn: int) -> bool:
        """Whether an answer may be used: the name still has to join, as at the request."""
        return self.turn(key) == turn

    def join(self, key: Key, resource_version: str) -> bool:
        """Note an answer at a version. Return whether it is newer than the last event."""
        number = version_number(resource_version) or 0
        self._joined.add(key)
        if self._seen.pop(key, 0) > number:
            return False
        if number:
            self._floors[key] = number
        return True
