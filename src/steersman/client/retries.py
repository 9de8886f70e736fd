"""Retries: which requests may be repeated, how often, and after how long.

Guarantees
- Retries are bounded in number, jittered and cancellable.
- A request that the server reports as not processed (429, or 503 with Retry-After) may be retried, whatever its verb.
- A read may be retried after a lost connection. A write whose bytes may have arrived raises `OutcomeUnknown` instead:
  the caller reads the object and decides.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from steersman import aio
from steersman.errors import ApiError, Conflict, ConnectionFailed, ServiceUnavailable, TooManyRequests

T = TypeVar("T")


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often a request is retried. ``attempts=1`` means never."""

    attempts: int = 5
    initial_delay: float = 0.1
    maximum_delay: float = 10.0
    #: A longer Retry-After is raised instead of waited for.
    maximum_retry_after: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or not 0 < self.initial_delay <= self.maximum_delay < math.inf:
            raise ValueError(
                "a retry policy needs attempts >= 1 and 0 < initial_delay <= maximum_delay"
                f" (got {self.attempts}, {self.initial_delay} and {self.maximum_delay})"
            )

    def delay_before_retry(self, error: ApiError, attempt: int, *, read: bool) -> float | None:
        """Seconds to wait before attempt number ``attempt + 1``; None if the request must not be retried."""
        if attempt >= self.attempts:
            return None
        doubled = self.initial_delay * 2.0 ** min(attempt - 1, 60)
        backoff = aio.Backoff(
            initial=min(doubled, self.maximum_delay), factor=2.0, maximum=self.maximum_delay, jitter=0.5
        ).next_delay(aio.randomness())
        if isinstance(error, (TooManyRequests, ServiceUnavailable)):
            retry_after = error.retry_after
            if retry_after is None:
                return backoff if isinstance(error, TooManyRequests) or read else None
            return None if retry_after > self.maximum_retry_after else max(retry_after, backoff)
        if isinstance(error, ConnectionFailed):
            return backoff if read else None
        return None


async def retry_on_conflict(attempt: Callable[[], Awaitable[T]], *, attempts: int = 5) -> T:
    """Retry ``attempt`` (read, change, write) while it raises `Conflict`.

    ```python
    async def one_more() -> Site:
        site = await client.get(Site, "home")
        site.spec.replicas += 1
        return await client.update(site)

    site = await retry_on_conflict(one_more)
    ```

    The whole cycle is repeated, so ``attempt`` must read the object anew each time. Repeating only the write would undo
    another writer's change.
    """
    backoff = aio.Backoff(initial=0.01, factor=3.0, maximum=1.0, jitter=0.5)
    for remaining in range(attempts - 1, -1, -1):
        try:
            return await attempt()
        except Conflict:
            if not remaining:
                raise
            await asyncio.sleep(backoff.next_delay(aio.randomness()))
    raise AssertionError("unreachable: the last attempt returns or raises")


class RateLimit:
    """A client-side token bucket; off by default, because the server does priority and fairness."""

    def __init__(self, *, per_second: float, burst: int) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError(f"a rate limit needs per_second > 0 and burst >= 1 (got {per_second} and {burst})")
        self._interval = 1.0 / per_second
        self._burst = burst
        self._full_at = 0.0

    async def acquire(self) -> None:
        """Wait for a token; waiters are served in order."""
        now = asyncio.get_running_loop().time()
        self._full_at = max(self._full_at, now) + self._interval
        wait = self._full_at - now - self._burst * self._interval
        if wait > 0:
            try:
                await asyncio.sleep(wait)
            except asyncio.CancelledError:
                self._full_at -= self._interval
                raise
