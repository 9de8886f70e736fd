"""The ranges of one term as its controllers and writes see them: which keys are ours now.

Guarantees
- A request belongs to the range of its namespace, and that of a cluster-scoped object to the range of its name. So all
  incarnations of an object, and all requests for it, have one owner at a time.
- A request is queued only while its range has begun, so no reconcile reads a range that is not complete.
- A write of a reconcile passes only while the range of its *request* is held or drains, wherever the written object is.
  A task that outlives its reconcile cannot write for a range that was given away.
- A range is quiet when none of its writes is in flight, and none that ended without an answer can take effect any more.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

from steersman import aio
from steersman.controller import Request, current_context
from steersman.errors import NotLeading
from steersman.manager.shards.state import Ranges
from steersman.wire import HashRange, HttpRequest, describe_request, namespace_hash

#: How often a range that must get quiet is looked at.
_LOOK = 0.05


def request_hash(request: Request) -> int:
    """The hash that decides which replica has a request."""
    return namespace_hash(request.key.namespace or request.key.name)


def is_in(ranges: Iterable[HashRange], request: Request) -> bool:
    """Whether a request belongs to one of the ranges."""
    found = request_hash(request)
    return any(each.contains(found) for each in ranges)


class Holding:
    """Ranges that were taken together; `ranges` are those that are left."""

    def __init__(self, name: str, ranges: Ranges) -> None:
        self.name = name
        self.ranges = ranges
        #: Whether the caches follow them.
        self.followed = False
        #: Whether the caches have everything, so that reconciles may begin.
        self.begun = False


class Holdings:
    """The ranges of one term. ``lease`` is how long the effect of a write without an answer may be delayed."""

    def __init__(self, lease: float) -> None:
        self._lease = lease
        self._holdings: list[Holding] = []
        self._draining: list[HashRange] = []
        self._taken = 0
        #: The writes in flight, and when one last ended without an answer, by hash.
        self._writing: Counter[int] = Counter()
        self._doubts: dict[int, float] = {}

    @property
    def ranges(self) -> Ranges:
        """The ranges that are held, begun or not."""
        return tuple(sorted(each for holding in self._holdings for each in holding.ranges))

    @property
    def begun(self) -> Ranges:
        """The ranges in which reconciles may begin."""
        return tuple(sorted(each for holding in self._holdings if holding.begun for each in holding.ranges))

    @property
    def followed(self) -> tuple[Holding, ...]:
        """What the caches follow, begun or not. Each has ranges left."""
        return tuple(holding for holding in self._holdings if holding.followed)

    @property
    def draining(self) -> Ranges:
        """The ranges in which reconciles still end."""
        return tuple(self._draining)

    def admits(self, request: Request) -> bool:
        """Whether a request may be queued."""
        return any(holding.begun and is_in(holding.ranges, request) for holding in self._holdings)

    def take(self, ranges: Ranges) -> Holding:
        """Hold more ranges."""
        self._taken += 1
        holding = Holding(f"shard {self._taken}", ranges)
        self._holdings.append(holding)
        return holding

    def drain(self, ranges: Ranges) -> None:
        """Hold these ranges no more; what runs in them may still write until `drained`."""
        for holding in self._holdings:
            holding.ranges = tuple(part for each in holding.ranges for part in each.without(ranges))
        self._holdings = [holding for holding in self._holdings if holding.ranges]
        self._draining += ranges

    def drained(self, ranges: Ranges) -> None:
        """Nothing runs in these ranges any more."""
        for each in ranges:
            self._draining.remove(each)

    def claim(self) -> RangeClaim | None:
        """What a write of the current reconcile needs; None outside a reconcile."""
        context = current_context()
        return None if context is None else RangeClaim(self, context.request)

    def may_write(self, request: Request) -> bool:
        """Whether a reconcile of a request may write."""
        held = (each for holding in self._holdings for each in holding.ranges)
        return is_in((*held, *self._draining), request)

    def begin_write(self, hash_: int) -> None:
        """Count a write that is about to be sent."""
        self._writing[hash_] += 1

    def end_write(self, hash_: int, *, answered: bool) -> None:
        """Count a write that was answered, or never will be."""
        self._writing[hash_] -= 1
        if not self._writing[hash_]:
            del self._writing[hash_]
        if not answered:
            self._doubts[hash_] = aio.boottime()

    async def quiet(self, ranges: Ranges) -> None:
        """Wait until no write of these ranges is in flight or can take effect later."""
        while True:
            now = aio.boottime()
            self._doubts = {hash_: at for hash_, at in self._doubts.items() if now - at < self._lease}
            if not any(each.contains(hash_) for each in ranges for hash_ in (*self._writing, *self._doubts)):
                return
            await asyncio.sleep(_LOOK)


class RangeClaim:
    """What a write of one reconcile needs."""

    def __init__(self, holdings: Holdings, request: Request) -> None:
        self._holdings = holdings
        self._request = request
        self._hash = request_hash(request)

    def check(self, request: HttpRequest) -> None:
        """Raise `NotLeading` if the range of the reconcile's request is not ours any more."""
        if not self._holdings.may_write(self._request):
            raise NotLeading(
                f"{describe_request(request)}: not sent: {self._request} belongs to a range that this replica has given"
                " away, and another replica may reconcile it; stop"
            )

    def begin_write(self) -> None:
        """Count a write that is about to be sent."""
        self._holdings.begin_write(self._hash)

    def end_write(self, *, answered: bool) -> None:
        """Count a write that was answered, or never will be."""
        self._holdings.end_write(self._hash, answered=answered)
