"""What is reconciled, and why.

Guarantees
- A `Request` is hashable and names its cluster, so several clusters need no other type.
- A `Cause` is plain data: it can be logged, counted, compared and linked.
- `Causes` is bounded: the first causes are kept, all are counted, and the number of omitted ones is reported.
- A retry keeps the causes of the first attempt, however often it happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from steersman.cache import EventType
from steersman.objects import GroupVersionKind, Key

What: TypeAlias = Literal["object", "initial", "resync", "requeue", "retry", "external"]

#: How many different causes one reconcile carries. All are counted.
CAUSE_LIMIT = 16
#: How many of them carry over to a retry: there must be room for new ones.
CARRIED_LIMIT = 8
#: Length of one cause on a single line.
_SHORT = 60


class Request(NamedTuple):
    """One object to reconcile; ``cluster`` is empty if there is only one cluster."""

    key: Key
    cluster: str = ""

    def __str__(self) -> str:
        return f"{self.cluster}:{self.key}" if self.cluster else str(self.key)

    @property
    def tenant(self) -> tuple[str, str]:
        """Cluster and namespace: the unit of fairness in a queue."""
        return (self.cluster, self.key.namespace)


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One reason to reconcile.

    - ``object``: a watched change
    - ``initial``: an object that was present at the start
    - ``resync``: a periodic reconcile without a change
    - ``requeue``: the reconciler asked for it
    - ``retry``: follows a failure
    - ``external``: an event from outside the cluster
    """

    what: What
    #: The object that changed: its kind, key and what happened to it.
    kind: GroupVersionKind | None = None
    type: EventType | None = None
    key: Key | None = None
    generation: int | None = None
    resource_version: str = ""
    #: Text for people: what the external event said, or what failed.
    note: str = ""
    #: Delivered as its own frame on a watch without a gap, so its resource version proves which write it shows.
    unbroken: bool = False
    #: The uid of the object, if it was created since the controller started: no earlier process has seen it.
    created: str = ""
    #: The span that produced it, as a W3C traceparent; empty if unknown.
    trace: str = ""

    def __str__(self) -> str:
        if self.kind is not None:
            subject = f"{self.kind.kind} {self.key}" if self.key else self.kind.kind
            happened = {"initial": "is there", "resync": "is looked at again"}.get(self.what, self.type or self.what)
            generation = f" (generation {self.generation})" if self.generation else ""
            return f"{subject} {happened}{generation}"
        return f"{self.what}: {self.note}" if self.note else self.what


class Causes(msgspec.Struct, frozen=True):
    """Why one reconcile happens: the different causes in order of arrival, and their total number."""

    kept: tuple[Cause, ...] = ()
    #: All causes, including repetitions and those beyond the limit.
    total: int = 0
    #: Different causes that were not kept.
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
        """These causes and one more."""
        if cause in self.kept:
            return Causes(self.kept, self.total + 1, self.omitted)
        if len(self.kept) >= limit:
            return Causes(self.kept, self.total + 1, self.omitted + 1)
        return Causes((*self.kept, cause), self.total + 1, self.omitted)

    def carried(self) -> Causes:
        """The causes that a retry keeps: the first of these, without the notes of earlier attempts."""
        began = [cause for cause in self.kept if cause.what not in _NOTES]
        kept = tuple(began[:CARRIED_LIMIT])
        total = self.total - (len(self.kept) - len(began))
        return Causes(kept, total, self.omitted + len(began) - len(kept))

    def joined(self, later: Causes, *, limit: int = CAUSE_LIMIT) -> Causes:
        """These causes and later ones."""
        joined = self
        for cause in later.kept:
            joined = joined.plus(cause, limit=limit)
        unseen = later.total - len(later.kept)
        return Causes(joined.kept, joined.total + unseen, joined.omitted + later.omitted)

    def in_short(self) -> str:
        """The first cause and the number of others, for one line on a terminal."""
        if not self.kept:
            return ""
        first, others = str(self.kept[0]), len(self.kept) - 1 + self.omitted
        first = first if len(first) <= _SHORT else f"{first[: _SHORT - 1]}…"
        return f"{first} +{others}" if others else first


#: Causes that only say that there was an earlier attempt.
_NOTES = frozenset({"retry", "requeue"})

NO_CAUSES = Causes()
