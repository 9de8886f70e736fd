"""A limit for the calls to one external system.

Guarantees
- Calls start at even distances, in the order in which they were requested, at most ``per_second`` of them in any second.
- While the system asks for a pause, no call starts. After it, calls start at even distances again, not all at once.
"""

from __future__ import annotations

import asyncio
import math

#: How much longer than necessary the distance between two calls is: their ways to the system are not equally long.
_SLACK = 0.05


class CallLimit:
    """At most so many calls a second to one external system: ``External(api, limit=CallLimit(5))``.

    Several `External` objects that call the same system, or use the same account, share one limit.
    """

    def __init__(self, per_second: float) -> None:
        if not per_second > 0:
            raise ValueError(f"CallLimit needs a number of calls per second above 0, such as 5 (got {per_second})")
        self.per_second = per_second
        self._distance = (1 + _SLACK) / per_second
        #: The number of externals that share it.
        self.users = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        #: When the next call may start, and when a pause ends.
        self._next = self._resumes = -math.inf

    def __repr__(self) -> str:
        return f"CallLimit({self.per_second:g})"

    @property
    def turn(self) -> float:
        """The seconds between two calls of one external, if all that share the limit have calls to make."""
        return self._distance * self.users

    @property
    def is_open(self) -> bool:
        """Whether calls need not wait, neither for each other nor for a pause."""
        return not self._distance and self._bound().time() >= self._resumes

    @property
    def wait(self) -> float:
        """The seconds until the next call may start."""
        return max(0.0, self._next - self._bound().time(), self._resumes - self._bound().time())

    def pause(self, seconds: float) -> None:
        """Let no call start for so long."""
        loop = self._bound()
        self._resumes = max(self._resumes, loop.time() + seconds)
        self._next = max(self._next, self._resumes)

    async def slot(self) -> None:
        """Wait until the caller may start one call."""
        loop = self._bound()
        at = self._reserved(loop)
        while True:
            if (wait := at - loop.time()) > 0:
                await asyncio.sleep(wait)
            if at >= self._resumes:
                return
            # The system asked for a pause meanwhile.
            at = self._reserved(loop)

    def _reserved(self, loop: asyncio.AbstractEventLoop) -> float:
        at = max(loop.time(), self._next)
        self._next = at + self._distance
        return at

    def _bound(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # The times of two loops are not comparable: a test may skip time.
            self._loop, self._next, self._resumes = loop, -math.inf, -math.inf
        return loop
