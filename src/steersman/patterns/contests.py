"""Children that somebody else changes back, again and again: when to stop answering at once. Pure.

Guarantees
- What is written for the same reason more than `FREE` times within `WINDOW` seconds is contested: from then on it is written
  once in a while, later and later, up to `MOST` seconds apart. A change of what is wanted is written at once.
- When nobody has answered for `WINDOW` seconds it is peace again.
- Bounded: what was not written for a minute is forgotten, and so is the oldest of very many.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeAlias

from steersman.objects import GroupKind, Key

#: Answers at once.
FREE = 5
#: Seconds in which they are counted.
WINDOW = 10.0
#: Seconds until the first answer after those, and at most.
FIRST, MOST = 1.0, 30.0

_FORGOTTEN_AFTER = MOST + 3 * WINDOW
_REMEMBERED_MAX = 10_000

#: Its kind, and its namespace and name.
Child: TypeAlias = tuple[GroupKind, Key]
_Place: TypeAlias = tuple[Key, Child]


class _Contest:
    __slots__ = ("intent", "last", "level", "rival", "times", "until")

    def __init__(self, intent: bytes, now: float) -> None:
        self.intent = intent
        self.last = now
        self.times: list[float] = []
        self.level = 0
        self.until = 0.0
        self.rival: str | None = None


class Contests:
    """What was written lately, of all owners of one controller."""

    def __init__(self) -> None:
        self._known: OrderedDict[_Place, _Contest] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def held(self, owner: Key, child: Child, intent: bytes, now: float) -> float:
        """For how many seconds a child is not to be written so; 0 if it may be."""
        known = self._known.get((owner, child))
        return max(0.0, known.until - now) if known is not None and known.intent == intent else 0.0

    def is_hot(self, owner: Key, child: Child, intent: bytes, now: float) -> bool:
        """Whether writing it so once more makes it contested."""
        known = self._known.get((owner, child))
        if known is None or known.intent != intent:
            return False
        if known.level:
            return now - known.until <= WINDOW
        return sum(now - each < WINDOW for each in known.times) >= FREE

    def knows(self, owner: Key, child: Child) -> bool:
        """Whether something of it was written lately."""
        return (owner, child) in self._known

    def rival(self, owner: Key, child: Child) -> str | None:
        """Who writes it too, as far as that was found out; None if nobody has looked yet."""
        known = self._known.get((owner, child))
        return None if known is None else known.rival

    def met(self, owner: Key, child: Child, rival: str) -> None:
        """It was found out who writes it too."""
        known = self._known.get((owner, child))
        if known is not None:
            known.rival = rival

    def wrote(self, owner: Key, child: Child, intent: bytes, now: float) -> bool:
        """A child was written so; whether it is contested now."""
        place = (owner, child)
        known = self._known.get(place)
        if known is None or known.intent != intent:
            self._known[place] = _Contest(intent, now)
            self._known.move_to_end(place)
            self._forget(now)
            return False
        self._known.move_to_end(place)
        if known.level and now - known.until > WINDOW:
            known.level, known.times, known.rival = 0, [], None
        known.last = now
        known.times = [*(each for each in known.times if now - each < WINDOW), now]
        if known.level or len(known.times) > FREE:
            known.level += 1
            known.until = now + min(FIRST * 2 ** min(known.level - 1, 10), MOST)
        return known.level > 0

    def _forget(self, now: float) -> None:
        while self._known:
            place, oldest = next(iter(self._known.items()))
            if len(self._known) <= _REMEMBERED_MAX and now - oldest.last < _FORGOTTEN_AFTER:
                return
            del self._known[place]
