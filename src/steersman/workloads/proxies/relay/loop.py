"""The event loop of the relay: sockets, timers, and how many connections fit."""

from __future__ import annotations

import heapq
import resource
import select
import socket
import time  # noqa: TID251 - a program without an asyncio loop
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

#: Descriptors that are kept for listening sockets and pipes.
_RESERVED = 256
#: Seconds that an endpoint has to take a connection, and that accepting pauses if the kernel has no descriptors.
_CONNECT_TIMEOUT, _PAUSE = 5.0, 0.1


class Attempt(Protocol):
    """Waits for the answer of an endpoint."""

    def timed_out(self) -> None:
        """Give up on the endpoint."""
        ...


class Loop:
    """Waits for events and calls what watches them."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._watchers: dict[int, Callable[[int], None]] = {}
        self._connections = 0
        self._limit = max((_raise_limit() - _RESERVED) // 2, 16)
        #: What has more to do after its turn.
        self._again: deque[tuple[Callable[[Any], None], Any]] = deque()
        #: Attempts to connect, oldest first, and until when each waits.
        self._attempts: dict[Attempt, float] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._timer_count = 0
        self._paused = False
        #: Called when there is room for connections again, and when there is no more.
        self.on_room: Callable[[], None] = _ignore
        #: Called with a watcher that raised OSError: a peer has vanished between two system calls.
        self.on_failure: Callable[[Callable[[int], None]], None] = _ignore
        #: Ends `run`.
        self.stopped = False

    @staticmethod
    def now() -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def watch(self, watched: socket.socket, events: int, watcher: Callable[[int], None]) -> None:
        """Call a function with the events of a socket. An edge that is already there is reported again."""
        descriptor = watched.fileno()
        if descriptor in self._watchers:
            self._poll.modify(descriptor, events)
        else:
            self._poll.register(descriptor, events)
        self._watchers[descriptor] = watcher

    def forget(self, watched: socket.socket) -> None:
        """Stop watching a socket."""
        if self._watchers.pop(watched.fileno(), None) is not None:
            self._poll.unregister(watched)

    def again(self, function: Callable[[Any], None], argument: object) -> None:
        """Call a function after the others had their turn."""
        self._again.append((function, argument))

    def connecting(self, attempt: Attempt, *, done: bool = False) -> None:
        """Start or end the deadline of an attempt to connect."""
        if done:
            self._attempts.pop(attempt, None)
        else:
            self._attempts[attempt] = time.monotonic() + _CONNECT_TIMEOUT

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Call a function after a time."""
        self._timer_count += 1
        heapq.heappush(self._timers, (time.monotonic() + seconds, self._timer_count, action))

    # room for connections

    def has_room(self) -> bool:
        """Whether another connection can be accepted."""
        return self._connections < self._limit and not self._paused

    def count(self, change: int) -> None:
        """Count an accepted or a closed connection."""
        had_room = self.has_room()
        self._connections += change
        if had_room != self.has_room():
            self.on_room()

    def pause(self) -> None:
        """Accept nothing for a moment: the kernel has no descriptors left."""
        if not self._paused:
            self._paused = True
            self.later(_PAUSE, self._resume)
            self.on_room()

    def _resume(self) -> None:
        self._paused = False
        self.on_room()

    # running

    def run(self) -> None:
        """Call watchers and timers until `stopped`."""
        poll, watchers = self._poll, self._watchers
        while not self.stopped:
            for descriptor, events in poll.poll(self._patience(), 256):
                if (watcher := watchers.get(descriptor)) is not None:
                    try:
                        watcher(events)
                    except OSError:
                        self.on_failure(watcher)
            for _ in range(len(self._again)):
                function, argument = self._again.popleft()
                function(argument)
            if self._timers or self._attempts:
                self._run_timers()

    def _patience(self) -> float:
        if self._again:
            return 0
        due = self._timers[0][0] if self._timers else None
        if self._attempts:
            first = next(iter(self._attempts.values()))
            due = first if due is None else min(due, first)
        return -1 if due is None else max(due - time.monotonic(), 0) + 0.001

    def _run_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[2]()
        while self._attempts:
            attempt, due = next(iter(self._attempts.items()))
            if due > now:
                break
            attempt.timed_out()


def _ignore(*_: object) -> None:
    """Do nothing."""


def _raise_limit() -> int:
    """Allow as many descriptors as the user may have. Returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return soft
    return hard if hard > 0 else 1 << 20
