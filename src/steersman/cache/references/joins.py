"""Reads the names of wide scopes, one by one.

Guarantees
- At most `_TOGETHER` names are read at once: each read takes a connection. Names that readers wait for come first.
- A name is read once at a time, however many readers wait for it.
- A read that fails is repeated with growing delays, while the name has to join. Other names go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from steersman.aio import Backoff, randomness
from steersman.cache.references.completeness import JoinedNames
from steersman.errors import ApiError
from steersman.objects import Key

_log = logging.getLogger("steersman.cache")

#: How many names are read at once.
_TOGETHER = 4


class Joining:
    """The names of a kind that have to join."""

    def __init__(
        self,
        joined: JoinedNames,
        read: Callable[[Key, int], Awaitable[None]],
        start: Callable[[Coroutine[Any, Any, Any], str], asyncio.Task[Any]],
    ) -> None:
        self._joined = joined
        #: Reads a name and uses the answer, if the turn is still the same.
        self._read = read
        self._start = start
        #: The names to read, and those of them that readers wait for.
        self._waiting: dict[Key, None] = {}
        self._urgent: dict[Key, None] = {}
        #: What readers wait for: the end of the next read of a name.
        self._ends: dict[Key, asyncio.Future[None]] = {}
        self._workers = 0
        #: The delays of the names whose reads failed, and their timers.
        self._delays: dict[Key, Backoff] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}

    def want(self, keys: Iterable[Key]) -> None:
        """Read these names in the background."""
        self._waiting.update(dict.fromkeys(keys))
        while self._workers < min(_TOGETHER, len(self._waiting)):
            self._workers += 1
            self._start(self._work(), "join names")

    async def now(self, key: Key) -> None:
        """Wait for a read of a name, before those that nothing waits for. A failure is logged."""
        if key in self._timers:
            return  # its last read has failed
        end = self._ends.get(key)
        if end is None:
            end = self._ends[key] = asyncio.get_running_loop().create_future()
            self._urgent[key] = None
            self.want((key,))
        await asyncio.shield(end)

    def forget(self, key: Key) -> None:
        """The name need not join any more."""
        self._waiting.pop(key, None)
        self._urgent.pop(key, None)
        self._delays.pop(key, None)
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        self._end(key)

    def close(self) -> None:
        """Start no more reads; readers wait no longer."""
        for key in [*self._waiting, *self._timers, *self._ends]:
            self.forget(key)

    async def _work(self) -> None:
        try:
            while self._waiting:
                key = next(iter(self._urgent or self._waiting))
                self._urgent.pop(key, None)
                self._waiting.pop(key, None)
                try:
                    await self._attempt(key)
                finally:
                    self._end(key)
        finally:
            self._workers -= 1

    async def _attempt(self, key: Key) -> None:
        turn = self._joined.turn(key)
        if turn is None:
            return
        try:
            await self._read(key, turn)
        except ApiError as error:
            self._retry(key, error)
            return
        self._delays.pop(key, None)
        if (after := self._joined.turn(key)) is not None and after != turn:
            self._waiting[key] = None

    def _end(self, key: Key) -> None:
        end = self._ends.pop(key, None)
        if end is not None and not end.done():
            end.set_result(None)

    def _retry(self, key: Key, error: ApiError) -> None:
        delays = self._delays.setdefault(key, Backoff(initial=1.0, maximum=30.0))
        level = logging.WARNING if delays.attempts == 1 else logging.DEBUG  # a first failure is common
        delay = delays.next_delay(randomness())
        _log.log(level, "cannot read %s to cache it; retrying in %.1f s: %s", key, delay, error)
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        self._timers[key] = asyncio.get_running_loop().call_later(delay, self._due, key)

    def _due(self, key: Key) -> None:
        del self._timers[key]
        if self._joined.turn(key) is not None:
            self.want((key,))
