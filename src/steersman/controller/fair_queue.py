"""The requests that are ready to run, in their order.

Guarantees
- Tenants (cluster and namespace) of one priority take turns, one request each. A tenant's single request waits for at
  most one request of every other tenant, however many they have.
- Within a tenant: first come, first served.
- Higher priority goes first, but at least one of every ``share`` turns goes to a request that has waited for
  ``patience`` seconds. So nothing starves, and a flood of old requests does not delay new ones either.
- The cost of an operation does not depend on the number of requests, only on the number of different priorities.

Pure: time is passed in and must not run backwards.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice

from steersman.controller.causes import Request


class _Band:
    """The waiting requests of one priority."""

    __slots__ = ("entered", "lines")

    def __init__(self) -> None:
        # An OrderedDict, because repeatedly taking from the front of a dict is quadratic.
        #: When each request entered this band, oldest first.
        self.entered: OrderedDict[Request, float] = OrderedDict()
        #: The tenants in the order of their turns, each with its own line.
        self.lines: OrderedDict[tuple[str, str], OrderedDict[Request, None]] = OrderedDict()

    def push(self, request: Request, now: float) -> None:
        # The steps that can fail come first, so that a request is in both places or in neither.
        line = self.lines.setdefault(request.tenant, OrderedDict())
        line[request] = None
        self.entered[request] = now

    def pop(self) -> Request:
        tenant, line = self.lines.popitem(last=False)
        request, _ = line.popitem(last=False)
        if line:
            self.lines[tenant] = line
        del self.entered[request]
        return request

    def remove(self, request: Request) -> None:
        del self.entered[request]
        line = self.lines[request.tenant]
        del line[request]
        if not line:
            del self.lines[request.tenant]

    def oldest(self) -> float:
        return next(iter(self.entered.values()))


class FairQueue:
    """A queue with priorities, turns between tenants, and a limit on starvation."""

    __slots__ = ("_bands", "_patience", "_places", "_share", "_turns")

    def __init__(self, *, patience: float, share: int) -> None:
        if not patience >= 0:
            raise ValueError(f"patience must be a non-negative number of seconds (got {patience})")
        if share < 2:
            raise ValueError(f"share must be at least 2: one of every share turns goes to an old request (got {share})")
        self._patience = patience
        self._share = share
        self._bands: dict[int, _Band] = {}
        #: The priority of each waiting request, in order of arrival; a promoted request keeps its place here.
        self._places: OrderedDict[Request, int] = OrderedDict()
        self._turns = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, request: Request) -> bool:
        return request in self._places

    def push(self, request: Request, priority: int, now: float) -> None:
        """Append a request to its tenant's line. A waiting request is promoted if this priority is higher."""
        present = self._places.get(request)
        if present is not None:
            if priority <= present:
                return
            self._leave(request, present)
        band = self._bands.get(priority)
        if band is None:
            band = _Band()
        band.push(request, now)
        self._bands[priority] = band
        self._places[request] = priority

    def pop(self, now: float) -> Request | None:
        """Take the next request; None if none is ready."""
        if not self._bands:
            return None
        priority = self._next_band(now)
        band = self._bands[priority]
        request = band.pop()
        if not band.entered:
            del self._bands[priority]
        del self._places[request]
        return request

    def depths(self) -> dict[int, int]:
        """The number of requests at each priority, highest first."""
        return {priority: len(self._bands[priority].entered) for priority in sorted(self._bands, reverse=True)}

    def longest(self, number: int) -> list[Request]:
        """The first ``number`` requests by arrival; the cost is proportional to the result."""
        return list(islice(self._places, number))

    def _next_band(self, now: float) -> int:
        top = max(self._bands)
        self._turns += 1
        if self._turns >= self._share and len(self._bands) > 1:
            since, old = min((band.oldest(), priority) for priority, band in self._bands.items() if priority != top)
            if now - since >= self._patience:
                self._turns = 0
                return old
        return top

    def _leave(self, request: Request, priority: int) -> None:
        band = self._bands[priority]
        band.remove(request)
        if not band.entered:
            del self._bands[priority]
