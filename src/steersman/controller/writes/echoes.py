"""Tell the echo of a reconcile's own write from news. Pure: time is passed in.

Guarantees
- A cause is an echo only if it is its own frame on an unbroken watch and shows exactly the resource version that a
  reconcile of the *same request* wrote. Everything else is news: initial lists, relists, coalesced and resync
  deliveries, deletions, writes by others, and writes whose outcome is unknown.
- A write counts only if it is certain (see `Write`): its answer holds nothing but what the reconcile could read before
  plus what it sent. The answer to a write that changed nothing shows another writer's work.
- A write to the reconciled object itself, other than to its status, is news: reconcilers return after adding a
  finalizer and expect to run again.
- The event of a write often arrives before its answer. So a cause that arrives while its request runs is *held* until
  the run ends, and judged by the run's writes.
- No held cause is lost: the end of a run returns every cause that was not an echo. Held causes and remembered writes
  are bounded; beyond that, a cause counts as news.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal, NamedTuple, TypeAlias

from steersman.controller.causes import Cause, Request
from steersman.controller.writes.write_log import Write, WriteLog
from steersman.objects import GroupVersionKind

Verdict: TypeAlias = Literal["news", "echo", "held"]

#: Causes held for one running request.
HELD_LIMIT = 64
#: Writes remembered after their reconciles, for echoes that have not arrived yet ...
MEMORY_LIMIT = 50_000
#: ... and for how many seconds.
MEMORY_SECONDS = 120.0


class Held(NamedTuple):
    """A cause that waits for the end of its reconcile."""

    cause: Cause
    priority: int


class _Run:
    __slots__ = ("held", "log")

    def __init__(self, log: WriteLog) -> None:
        self.log = log
        self.held: list[Held] = []


_Remembered: TypeAlias = tuple[Request, Write]


class Echoes:
    """Detects echoes for one controller."""

    def __init__(self, primary: GroupVersionKind | None, watched: frozenset[GroupVersionKind] | None = None) -> None:
        self._primary = primary
        #: Other kinds cannot echo, so writes to them are not remembered. None: unknown.
        self._watched = watched
        self._runs: dict[Request, _Run] = {}
        self._memory: OrderedDict[_Remembered, float] = OrderedDict()
        self.suppressed = 0

    def begin(self, request: Request, log: WriteLog) -> None:
        """Start a reconcile of the request, which writes to ``log``."""
        self._runs[request] = _Run(log)

    def judge(self, request: Request, cause: Cause, priority: int, now: float) -> Verdict:
        """Classify a cause. A held cause comes back from `end` if it was news."""
        if not self._can_be_echo(cause):
            return "news"
        if self._memory and self._recall(request, cause, now):
            self.suppressed += 1
            return "echo"
        run = self._runs.get(request)
        if run is None:
            return "news"
        if self._is_echo(request, cause, run.log):
            self.suppressed += 1
            return "echo"
        if len(run.held) >= HELD_LIMIT:
            return "news"
        run.held.append(Held(cause, priority))
        return "held"

    def end(self, request: Request, now: float) -> list[Held]:
        """End the reconcile: judge the held causes, remember writes without an echo yet, and return the news."""
        run = self._runs.pop(request)
        news: list[Held] = []
        seen: set[tuple[GroupVersionKind | None, object, str]] = set()
        for held in run.held:
            if self._is_echo(request, held.cause, run.log):
                self.suppressed += 1
                seen.add((held.cause.kind, held.cause.key, held.cause.resource_version))
            else:
                news.append(held)
        for write in run.log.writes:
            identity = (write.kind, write.key, write.resource_version)
            watched = self._watched is None or write.kind in self._watched
            if watched and identity not in seen and self._suppressible(request, write):
                seen.add(identity)
                self._memory[request, _plain(write)] = now + MEMORY_SECONDS
        self._prune(now)
        return news

    def _recall(self, request: Request, cause: Cause, now: float) -> bool:
        assert cause.kind is not None
        assert cause.key is not None
        until = self._memory.get((request, Write(cause.kind, cause.key, cause.resource_version)))
        return until is not None and until >= now

    def _is_echo(self, request: Request, cause: Cause, log: WriteLog) -> bool:
        assert cause.kind is not None
        assert cause.key is not None
        write = log.find(cause.kind, cause.key, cause.resource_version)
        return write is not None and self._suppressible(request, write)

    def _suppressible(self, request: Request, write: Write) -> bool:
        own = write.kind == self._primary and write.key == request.key
        return write.certain and (not own or write.subresource == "status")

    @staticmethod
    def _can_be_echo(cause: Cause) -> bool:
        return (
            cause.what == "object"
            and cause.unbroken
            and cause.type in {"appeared", "changed"}
            and bool(cause.resource_version)
            and cause.kind is not None
            and cause.key is not None
        )

    def _prune(self, now: float) -> None:
        """Forget old and excess entries; they are ordered by time."""
        while self._memory and (len(self._memory) > MEMORY_LIMIT or next(iter(self._memory.values())) < now):
            self._memory.popitem(last=False)


def _plain(write: Write) -> Write:
    """The write without its subresource, which causes do not name."""
    return Write(write.kind, write.key, write.resource_version)
