"""Requests for objects that are no longer tracked, but may still take effect."""

from __future__ import annotations

from steersman.patterns.external.entries import NEVER

#: InFlight looks for expired objects only when it holds twice as many as were left by the last look, and this many more.
_EXPIRED = 64


class InFlight:
    """Until when requests for dropped objects may still take effect, by uid. Memory is bounded by those that may."""

    __slots__ = ("_limit", "_until")

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._limit = _EXPIRED

    def __len__(self) -> int:
        return len(self._until)

    def add(self, uid: str, until: float, now: float) -> None:
        """Remember an object; forget those whose time has passed, if there may be many."""
        if len(self._until) >= self._limit:
            # Seldom: a look at all of them for each would be quadratic when many objects are deleted at once.
            self._until = {each: when for each, when in self._until.items() if when > now}
            self._limit = 2 * len(self._until) + _EXPIRED
        self._until[uid] = until

    def take(self, uid: str) -> float:
        """Forget an object; returns until when a request for it may take effect."""
        return self._until.pop(uid, NEVER)
