"""The requests that are ready to run, in their order.

Guarantees
- Tenants (cluster and namespace) of one priority take turns, one request each. A tenant's single request waits for at
  most one request of every other tenant, however many they have.
- Within a tenant: first come, first served.
- Higher priority goes first, but at least one of every ``share`` turns goes to a request that has waited for
  ``patience`` seconds. So nothing starves, and a flood of old requests does not delay new ones either.
- The cost of an operation does not depend on the number of requests, only on the number of different priorities.
- Only one container grows with the number of requests, because growing it blocks the event loop for some milliseconds.

Pure: time is passed in and must not run backwards.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain, islice

import msgspec

from steersman.controller.causes import Request

#: The largest number of requests in one container of an `_Order`.
_CHUNK = 1024


class _Order:
    """Requests in order of arrival, in chunks: an OrderedDict of 175,000 requests takes 30 ms to grow."""

    __slots__ = ("_chunks", "_last", "size")

    def __init__(self) -> None:
        #: Chunks by number, oldest first; only the last may be empty.
        self._chunks: dict[int, dict[Request, None]] = {0: {}}
        self._last = 0
        self.size = 0

    def __iter__(self) -> Iterator[Request]:
        return chain.from_iterable(self._chunks.values())

    def append(self, request: Request) -> int:
        """Append a request; return the number of its chunk, for `remove`."""
        chunk = self._chunks[self._last]
        if len(chunk) >= _CHUNK:
            self._last += 1
            chunk = self._chunks[self._last] = {}
        chunk[request] = None
        self.size += 1
        return self._last

    def remove(self, request: Request, number: int) -> None:
        chunk = self._chunks[number]
        del chunk[request]
        self.size -= 1
        if not chunk and number != self._last:
            del self._chunks[number]


class _Place(msgspec.Struct, frozen=True, gc=False):
    """Where a waiting request is: its priority, when it got it, and its chunks."""

    priority: int
    entered: float
    arrived: int
    band: int
    line: int


class _Band:
    """The waiting requests of one priority."""

    __slots__ = ("entered", "lines")

    def __init__(self) -> None:
        #: The requests in the order in which they entered this band.
        self.entered = _Order()
        #: The tenants in the order of their turns, each with its own line. An OrderedDict, because repeatedly taking
        #: from the front of a large dict is quadratic.
        self.lines: OrderedDict[tuple[str, str], _Order] = OrderedDict()

    def push(self, request: Request) -> tuple[int, int]:
        # The step that can fail comes first, so that a request is in both places or in neither.
        tenant = request.tenant
        line = self.lines.get(tenant)
        if line is None:
            line = self.lines[tenant] = _Order()
        return self.entered.append(request), line.append(request)

    def next(self) -> Request:
        """The next request of the tenant whose turn it is; the tenant goes to the end."""
        tenant, line = next(iter(self.lines.items()))
        self.lines.move_to_end(tenant)
        return next(iter(line))

    def remove(self, request: Request, place: _Place) -> None:
        self.entered.remove(request, place.band)
        line = self.lines[request.tenant]
        line.remove(request, place.line)
        if not line.size:
            del self.lines[request.tenant]


class FairQueue:
    """A queue with priorities, turns between tenants, and a limit on starvation."""

    __slots__ = ("_arrived", "_bands", "_patience", "_places", "_share", "_turns")

    def __init__(self, *, patience: float, share: int) -> None:
        if not patience >= 0:
            raise ValueError(f"patience must be a non-negative number of seconds (got {patience})")
        if share < 2:
            raise ValueError(f"share must be at least 2: one of every share turns goes to an old request (got {share})")
        self._patience = patience
        self._share = share
        self._bands: dict[int, _Band] = {}
        self._places: dict[Request, _Place] = {}
        #: The waiting requests in order of arrival; a promoted request keeps its place here.
        self._arrived = _Order()
        self._turns = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, request: Request) -> bool:
        return request in self._places

    def push(self, request: Request, priority: int, now: float) -> None:
        """Append a request to its tenant's line. A waiting request is promoted if this priority is higher."""
        present = self._places.get(request)
        if present is not None:
            if priority <= present.priority:
                return
            self._leave(request, present)
        band = self._bands.get(priority)
        if band is None:
            band = _Band()
        entered, line = band.push(request)
        self._bands[priority] = band
        arrived = self._arrived.append(request) if present is None else present.arrived
        self._places[request] = _Place(priority, now, arrived, entered, line)

    def pop(self, now: float) -> Request | None:
        """Take the next request; None if none is ready."""
        if not self._bands:
            return None
        request = self._bands[self._next_band(now)].next()
        place = self._places.pop(request)
        self._leave(request, place)
        self._arrived.remove(request, place.arrived)
        return request

    def remove(self, request: Request) -> None:
        """Remove a request, if it waits."""
        place = self._places.pop(request, None)
        if place is not None:
            self._leave(request, place)
            self._arrived.remove(request, place.arrived)

    def depths(self) -> dict[int, int]:
        """The number of requests at each priority, highest first."""
        return {priority: self._bands[priority].entered.size for priority in sorted(self._bands, reverse=True)}

    def longest(self, number: int) -> list[Request]:
        """The first ``number`` requests by arrival; the cost is proportional to the result."""
        return list(islice(self._arrived, number))

    def _next_band(self, now: float) -> int:
        top = max(self._bands)
        self._turns += 1
        if self._turns >= self._share and len(self._bands) > 1:
            since, old = min(
                (self._places[next(iter(band.entered))].entered, priority)
                for priority, band in self._bands.items()
                if priority != top
            )
            if now - since >= self._patience:
                self._turns = 0
                return old
        return top

    def _leave(self, request: Request, place: _Place) -> None:
        band = self._bands[place.priority]
        band.remove(request, place)
        if not band.entered.size:
            del self._bands[place.priority]
