"""Write conflicts: when to slow down because another writer keeps changing an object back.

Guarantees
- The same intent written more than `FREE` times within `WINDOW` seconds is a conflict. From then on it is written with growing
  pauses, at most `MOST` seconds apart. A new intent is written immediately.
- After `WINDOW` seconds without a write by the other side the conflict is over.
- Bounded: entries expire after a minute without a write, and the oldest are evicted first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, TypeAlias, cast

from steersman.controller import InternalClient, KindLike
from steersman.objects import GroupKind, Key, is_manager_of
from steersman.patterns.children.kinds import ChildIdentity

#: Writes without a pause.
FREE = 5
#: Seconds in which they are counted.
WINDOW = 10.0
#: Seconds before the first delayed write, and the longest delay.
FIRST, MOST = 1.0, 30.0

_FORGOTTEN_AFTER = MOST + 3 * WINDOW
_REMEMBERED_MAX = 10_000

#: The kind of a child, and its namespace and name.
Child: TypeAlias = tuple[GroupKind, Key]
_Place: TypeAlias = tuple[Key, Child]


class _WriteHistory:
    __slots__ = ("intent", "last", "level", "other_writer", "times", "until")

    def __init__(self, intent: bytes, now: float) -> None:
        self.intent = intent
        self.last = now
        self.times: list[float] = []
        self.level = 0
        self.until = 0.0
        self.other_writer: str | None = None


class WriteConflicts:
    """The recent writes of all owners of one controller."""

    def __init__(self) -> None:
        self._known: OrderedDict[_Place, _WriteHistory] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def held(self, owner: Key, child: Child, intent: bytes, now: float) -> float:
        """The seconds to wait before this intent may be written again; 0 if it may be written now."""
        known = self._known.get((owner, child))
        return max(0.0, known.until - now) if known is not None and known.intent == intent else 0.0

    def is_hot(self, owner: Key, child: Child, intent: bytes, now: float) -> bool:
        """Whether one more write of this intent is a conflict."""
        known = self._known.get((owner, child))
        if known is None or known.intent != intent:
            return False
        if known.level:
            return now - known.until <= WINDOW
        return sum(now - each < WINDOW for each in known.times) >= FREE

    def knows(self, owner: Key, child: Child) -> bool:
        """Whether the child was written recently."""
        return (owner, child) in self._known

    def other_writer(self, owner: Key, child: Child) -> str | None:
        """The field manager on the other side of the conflict; None until it was looked up."""
        known = self._known.get((owner, child))
        return None if known is None else known.other_writer

    def note_other_writer(self, owner: Key, child: Child, other_writer: str) -> None:
        """Remember the field manager on the other side of the conflict."""
        known = self._known.get((owner, child))
        if known is not None:
            known.other_writer = other_writer

    def wrote(self, owner: Key, child: Child, intent: bytes, now: float) -> bool:
        """Count a write of this intent; returns whether there is a conflict now."""
        place = (owner, child)
        known = self._known.get(place)
        if known is None or known.intent != intent:
            self._known[place] = _WriteHistory(intent, now)
            self._known.move_to_end(place)
            self._forget(now)
            return False
        self._known.move_to_end(place)
        if known.level and now - known.until > WINDOW:
            known.level, known.times, known.other_writer = 0, [], None
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


async def find_other_writer(
    client: InternalClient,
    conflicts: WriteConflicts,
    owner: Key,
    kind: KindLike,
    identity: ChildIdentity,
    *,
    subresource: str = "",
) -> None:
    """Look up, once, which field manager changes the object back."""
    if conflicts.other_writer(owner, identity) is None:
        conflicts.note_other_writer(owner, identity, await _other_writer_of(client, kind, identity, subresource))


async def _other_writer_of(client: InternalClient, kind: KindLike, identity: ChildIdentity, subresource: str) -> str:
    """The field manager, other than ours, that last wrote the object; "another writer" if ``managedFields`` names none."""
    found = await client.live.metadata.find(cast("Any", kind), identity.key)
    entries = (found.metadata.managed_fields or ()) if found is not None else ()
    own = client.field_manager
    others = [
        each
        for each in entries
        if each.manager and not is_manager_of(own, each.manager)
        if (each.subresource or "") == subresource
    ]
    if not others:
        # A delete leaves no field manager, an admission webhook has none, and this program may be in conflict with itself.
        return "another writer"
    last = max(others, key=lambda each: each.time.timestamp() if each.time else 0.0)
    return f'"{last.manager}"'
