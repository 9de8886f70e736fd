"""What is reconciled, and why.

Guarantees
- A `Request` is hashable and names its cluster, so that many clusters need no other type.
- A `Cause` is plain data that can be logged, counted, compared and linked to.
- `Causes` has a bound: the first ones are kept, every one is counted, and what is not kept is said.
- A run that is tried again keeps the causes that it began with, however often that happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from steersman.objects import GroupVersionKind, Key

What: TypeAlias = Literal["object", "initial", "resync", "requeue", "retry", "external"]
Event: TypeAlias = Literal["appeared", "changed", "vanished"]

#: How many different causes one run carries; all are counted.
CAUSE_LIMIT = 16
#: How many of them go on to the next try: there must be room for what comes meanwhile.
CARRIED_LIMIT = 8
#: Characters of one cause, where a line has to do.
_SHORT = 60


class Request(NamedTuple):
    """One object to reconcile; ``cluster`` is empty where there is only one."""

    key: Key
    cluster: str = ""

    def __str__(self) -> str:
        return f"{self.cluster}:{self.key}" if self.cluster else str(self.key)

    @property
    def tenant(self) -> tuple[str, str]:
        """Cluster and namespace: those that share a queue fairly."""
        return (self.cluster, self.key.namespace)


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One reason to reconcile.

    ``object`` is a change that was watched, ``initial`` an object that was there at the start, ``resync`` a look that
    is due though nothing changed, ``requeue`` what the reconciler asked for, ``retry`` what follows a failure,
    ``external`` an event of the world outside.
    """

    what: What
    #: The object that changed: its kind, key and what happened to it.
    kind: GroupVersionKind | None = None
    event: Event | None = None
    key: Key | None = None
    generation: int | None = None
    resource_version: str = ""
    #: Words for people: what the outside said, or what failed.
    note: str = ""
    #: Delivered as a frame of its own on a watch without a gap, so its resource version proves which write it shows.
    unbroken: bool = False
    #: The span in which it came about, in W3C's form (traceparent); empty if that is not known.
    trace: str = ""

    def __str__(self) -> str:
        if self.kind is not None:
            subject = f"{self.kind.kind} {self.key}" if self.key else self.kind.kind
            happened = {"initial": "is there", "resync": "is looked at again"}.get(self.what, self.event or self.what)
            generation = f" (generation {self.generation})" if self.generation else ""
            return f"{subject} {happened}{generation}"
        return f"{self.what}: {self.note}" if self.note else self.what


class Causes(msgspec.Struct, frozen=True):
    """Why one run happens: the different causes in the order in which they came, and how many there were in all."""

    kept: tuple[Cause, ...] = ()
    #: All causes, also those equal to a kept one and those beyond the limit.
    total: int = 0
    #: Causes that differ from the kept ones and were not kept.
    omitted: int = 0

    def __iter__(self) -> Iterator[Cause]:
        return iter(self.kept)

    def __len__(self) -> int:
        return self.total

    def __contains__(self, cause: object) -> bool:
        return cause in self.kept

    def __str__(self) -> str:
        text = "; ".join(str(cause) for cause in self.kept)
        return f"{text}; and {self.omitted} more" if self.omitted else text

    def plus(self, cause: Cause, *, limit: int = CAUSE_LIMIT) -> Causes:
        """These and one more."""
        if cause in self.kept:
            return Causes(self.kept, self.total + 1, self.omitted)
        if len(self.kept) >= limit:
            return Causes(self.kept, self.total + 1, self.omitted + 1)
        return Causes((*self.kept, cause), self.total + 1, self.omitted)

    def carried(self) -> Causes:
        """What goes on to the next try: the first of these, without the notes of earlier tries."""
        began = [cause for cause in self.kept if cause.what not in _NOTES]
        kept = tuple(began[:CARRIED_LIMIT])
        total = self.total - (len(self.kept) - len(began))
        return Causes(kept, total, self.omitted + len(began) - len(kept))

    def joined(self, later: Causes, *, limit: int = CAUSE_LIMIT) -> Causes:
        """These and those that came later."""
        joined = self
        for cause in later.kept:
            joined = joined.plus(cause, limit=limit)
        unseen = later.total - len(later.kept)
        return Causes(joined.kept, joined.total + unseen, joined.omitted + later.omitted)

    def in_short(self) -> str:
        """The first cause and the number of others, for a line on a terminal."""
        if not self.kept:
            return ""
        first, others = str(self.kept[0]), len(self.kept) - 1 + self.omitted
        first = first if len(first) <= _SHORT else f"{first[: _SHORT - 1]}…"
        return f"{first} +{others}" if others else first


#: Causes that say no more than that there was a run before.
_NOTES = frozenset({"retry", "requeue"})

NO_CAUSES = Causes()
