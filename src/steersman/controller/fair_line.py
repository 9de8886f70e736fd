"""Requests that may run now, in the order in which they will.

Guarantees
- Between tenants (cluster and namespace) of one priority: turns, one request each. A tenant's single request waits for
  at most one request of every other tenant, whatever number they have waiting.
- Within a tenant: first come, first served.
- Higher priority first; but a request that has waited for ``patience`` seconds belongs to those of which one is taken
  at least every ``share`` turns. So nothing starves, and a flood of old requests does not hold up new ones either.
- Every operation costs the same whatever the number of requests; only different priorities cost.

Pure: time is passed in and must not run backwards.
"""

from __future__ import annotations

from collections import OrderedDict

from steersman.controller.causes import Request


class _Band:
    """The waiting requests of one priority."""

    __slots__ = ("entered", "lines")

    def __init__(self) -> None:
        # OrderedDict, not dict: taking from the front of a dict again and again is quadratic.
        #: When each request came into this band; the oldest first.
        self.entered: OrderedDict[Request, float] = OrderedDict()
        #: The tenants in the order of their turns, each with its own line.
        self.lines: OrderedDict[tuple[str, str], OrderedDict[Request, None]] = OrderedDict()

    def push(self, request: Request, now: float) -> None:
        self.entered[request] = now
        self.lines.setdefault(request.tenant, OrderedDict())[request] = None

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


class FairLine:
    """A line with priorities, turns between tenants, and patience that ends."""

    __slots__ = ("_bands", "_patience", "_places", "_share", "_turns")

    def __init__(self, *, patience: float, share: int) -> None:
        if not patience >= 0:
            raise ValueError(f"patience is a number of seconds, 0 or more; got {patience}")
        if share < 2:
            raise ValueError(f"share is every how many turns an old request goes first, 2 or more; got {share}")
        self._patience = patience
        self._share = share
        self._bands: dict[int, _Band] = {}
        self._places: dict[Request, int] = {}
        self._turns = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, request: Request) -> bool:
        return request in self._places

    def push(self, request: Request, priority: int, now: float) -> None:
        """Put a request at the end of its tenant's line; one that waits already moves up if this is more urgent."""
        present = self._places.get(request)
        if present is not None:
            if priority <= present:
                return
            self._drop(request, present)
        self._places[request] = priority
        band = self._bands.get(priority)
        if band is None:
            band = self._bands[priority] = _Band()
        band.push(request, now)

    def pop(self, now: float) -> Request | None:
        """Take the next request, or None."""
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
        """How many wait at each priority, the highest first."""
        return {priority: len(self._bands[priority].entered) for priority in sorted(self._bands, reverse=True)}

    def waiting(self) -> dict[Request, float]:
        """When each waiting request came to its place."""
        return {request: at for band in self._bands.values() for request, at in band.entered.items()}

    def _next_band(self, now: float) -> int:
        top = max(self._bands)
        self._turns += 1
        if self._turns >= self._share and len(self._bands) > 1:
            since, old = min((band.oldest(), priority) for priority, band in self._bands.items() if priority != top)
            if now - since >= self._patience:
                self._turns = 0
                return old
        return top

    def _drop(self, request: Request, priority: int) -> None:
        band = self._bands[priority]
        band.remove(request)
        if not band.entered:
            del self._bands[priority]
        del self._places[request]
