"""Detect keys that never converge: every reconcile succeeds, writes, and so triggers itself or another controller.

Pure.

Guarantees
- A key whose reconciles write `OWN_RUNS` times in a row, each triggered by the previous write, waits before the next
  reconcile: longer each time, up to `OWN_DELAY` seconds. So a loop costs a few requests a minute, a negligible load.
- A key whose reconciles write `ANY_RUNS` times in a row for other reasons, such as another controller that reverts the
  change, waits up to `ANY_DELAY` seconds: it may be following a world that changes quickly.
- Such a key waits at most `NEW_DELAY` seconds while new objects trigger it, such as children that end and are replaced:
  its work moves on, at a bounded rate. Objects count as the same if their names are.
- A reconcile that only its own `RequeueAfter` scheduled does not count: the reconciler chose that pace. A pace below
  `SHORT` seconds is none: after `ANY_RUNS` such reconciles in a row, with or without writes, the key waits up to
  `ANY_DELAY` seconds.
- A key that its own writes trigger, and that returns `RequeueAfter`, waits at most that long, or `ANY_DELAY` seconds if
  that is longer.
- Reconciles count as in a row while less than `GAP` seconds pass between them, not counting the delay itself.
- A reconcile that writes nothing, or fails, ends a loop in which the key triggers itself. A loop with another
  controller ends when no reconcile wrote for that time: between two writes of the other controller, a reconcile may
  find nothing to do.
- The report of a loop names the number of reconciles, the object, and the fields that keep changing.
- Memory is bounded: a key is forgotten when its reconciles are no longer in a row, and at most the last `KEYS` keys
  that wrote are remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from random import Random  # noqa: TID251 - the type alone; chance is passed in
from typing import Any, TypeAlias, cast

import msgspec

from steersman.aio import Backoff
from steersman.controller.causes import Causes, Request
from steersman.controller.writes.write_log import WriteLog
from steersman.objects import GroupVersionKind, Key

OWN_RUNS, OWN_DELAY = 10, 60.0
ANY_RUNS, ANY_DELAY = 100, 5.0
NEW_DELAY = 0.1
SHORT = 0.05
GAP = 1.0
KEYS = 4096
#: How many of the latest objects that triggered a key are remembered.
_SEEN = 256
#: A key moves on if at least one of this many reconciles in a row was triggered by a new object.
_NEWS = 10

#: Fields that every write changes.
_NOISE = frozenset(
    {"metadata.resourceVersion", "metadata.generation", "metadata.managedFields", "metadata.creationTimestamp"}
)
#: How many fields a report names.
_FIELDS = 3

_Name: TypeAlias = tuple[GroupVersionKind, Key]
_Version: TypeAlias = tuple[GroupVersionKind, Key, str]
Answers: TypeAlias = dict[tuple[GroupVersionKind, Key], bytes]


class Loop(msgspec.Struct, frozen=True):
    """A hot key: how long it waits now, and why."""

    delay: float
    words: str
    #: Whether this is the first reconcile that waits.
    first: bool = False


class _Key:
    __slots__ = (
        "answers", "any_runs", "delay", "delays", "ended", "news", "own_runs", "seen", "short_runs", "versions", "words",
    )  # fmt: skip

    def __init__(self) -> None:
        self.any_runs = self.own_runs = self.short_runs = 0
        #: The objects that triggered it, and its latest run that a new one triggered.
        self.seen: dict[_Name, None] = {}
        self.news = 0
        self.ended = self.delay = 0.0
        self.delays: Backoff | None = None
        self.versions: set[_Version] = set()
        self.answers: Answers = {}
        self.words = ""


class HotLoops:
    """The keys of one controller that write again and again."""

    def __init__(self) -> None:
        self._keys: OrderedDict[Request, _Key] = OrderedDict()
        self._hot: dict[Request, None] = {}

    def count(self, now: float) -> int:
        """The number of hot keys."""
        self._forget(now)
        for request in [hot for hot in self._hot if self._is_over(self._keys[hot], now)]:
            self._hot.pop(request)
        return len(self._hot)

    def log(self, request: Request) -> WriteLog:
        """The log for a new reconcile. For a suspect key, it also keeps answers, to find the fields that change."""
        key = self._keys.get(request)
        if key is None or (key.own_runs < OWN_RUNS - 2 and key.any_runs < ANY_RUNS - 2):
            return WriteLog()
        log = WriteLog(keep=True)
        log.befores = {(kind, name): b"" for kind, name, _ in key.versions} or dict.fromkeys(key.answers, b"")
        return log

    def words(self, request: Request, now: float) -> str:
        """Why a key is hot; empty if it is not."""
        if request not in self._hot or self._is_over(self._keys[request], now):
            return ""
        return self._keys[request].words

    def ended(self, request: Request) -> None:
        """Record a reconcile that failed or wrote nothing: the key does not trigger itself."""
        key = self._keys.get(request)
        if key is None:
            return
        key.own_runs, key.versions = 0, set()
        if key.any_runs < ANY_RUNS:
            self._hot.pop(request, None)

    def succeeded(
        self,
        request: Request,
        causes: Causes,
        log: WriteLog,
        *,
        began: float,
        now: float,
        rng: Random,
        asked: float | None = None,
    ) -> Loop | None:
        """Record a reconcile that succeeded. Returns its loop, or None. ``asked`` is its `RequeueAfter` in seconds."""
        if asked is not None and (loop := self._requeued(request, causes, asked=asked, now=now, rng=rng)) is not None:
            return loop
        if not log.writes:
            self.ended(request)
            return None
        return self._wrote(request, causes, log, began=began, now=now, rng=rng, asked=asked)

    def _wrote(
        self,
        request: Request,
        causes: Causes,
        log: WriteLog,
        *,
        began: float,
        now: float,
        rng: Random,
        asked: float | None = None,
    ) -> Loop | None:
        """Record a reconcile that wrote. Returns its loop, or None. ``asked`` is its `RequeueAfter` in seconds."""
        key = self._keys.pop(request, None)
        if key is not None and self._is_over(key, began):
            self._hot.pop(request, None)
            key = None
        key = self._keys[request] = key or _Key()
        own = any((cause.kind, cause.key, cause.resource_version) in key.versions for cause in causes)
        key.own_runs = key.own_runs + 1 if own else 0
        if any(cause.what != "requeue" for cause in causes):
            key.any_runs += 1
        if _has_news(key, causes):
            key.news = key.any_runs
        key.versions = {(write.kind, write.key, write.resource_version) for write in log.writes}
        key.ended = now
        # Only now: a reconcile that took long must not forget its own key.
        self._forget(now)
        if key.own_runs < OWN_RUNS and key.any_runs < ANY_RUNS:
            key.answers, key.delay = log.answers, 0.0
            self._hot.pop(request, None)
            return None
        first = request not in self._hot
        if key.delays is None:
            key.delays = Backoff(initial=0.1, maximum=OWN_DELAY)
        follows = key.any_runs - key.news < _NEWS
        most = OWN_DELAY if key.own_runs >= OWN_RUNS else NEW_DELAY if follows else ANY_DELAY
        if asked is not None:
            most = min(most, max(asked, ANY_DELAY))
        key.delay = min(key.delays.next_delay(rng), most)
        key.words = _words(key, log)
        key.answers = log.answers
        self._hot[request] = None
        return Loop(delay=key.delay, words=key.words, first=first)

    def _requeued(self, request: Request, causes: Causes, *, asked: float, now: float, rng: Random) -> Loop | None:
        """Record a reconcile that returned `RequeueAfter`. Returns its loop if it keeps asking for no pause, or None."""
        key = self._keys.get(request)
        if asked >= SHORT or not all(cause.what == "requeue" for cause in causes):
            if key is not None:
                key.short_runs = 0
            return None
        if key is None or self._is_over(key, now):
            self._hot.pop(request, None)
            self._keys.pop(request, None)
            key = self._keys[request] = _Key()
        self._keys.move_to_end(request)
        key.short_runs += 1
        key.ended = now
        self._forget(now)
        if key.short_runs < ANY_RUNS:
            return None
        first = request not in self._hot
        if key.delays is None:
            key.delays = Backoff(initial=0.1, maximum=ANY_DELAY)
        key.delay = min(key.delays.next_delay(rng), ANY_DELAY)
        key.words = (
            f"every reconcile returns RequeueAfter with less than {SHORT:g} s, {key.short_runs} in a row. Return Done() and let a watch trigger"
            " it, or wait longer: RequeueAfter(5)"
        )
        self._hot[request] = None
        return Loop(delay=key.delay, words=key.words, first=first)

    @staticmethod
    def _is_over(key: _Key, now: float) -> bool:
        return now - key.ended > key.delay + GAP

    def _forget(self, now: float) -> None:
        """Forget keys in the order of their last write: those whose loop is over, and those beyond the bound."""
        while self._keys:
            request, oldest = next(iter(self._keys.items()))
            if len(self._keys) <= KEYS and not (oldest.ended and self._is_over(oldest, now)):
                return
            del self._keys[request]
            self._hot.pop(request, None)


def _has_news(key: _Key, causes: Causes) -> bool:
    """Whether an object triggered a key for the first time. Remembers the objects."""
    is_new = False
    for cause in causes:
        if cause.kind is None or cause.key is None:
            continue
        name = (cause.kind, cause.key)
        is_new = is_new or name not in key.seen
        key.seen.pop(name, None)
        key.seen[name] = None
    while len(key.seen) > _SEEN:
        del key.seen[next(iter(key.seen))]
    return is_new


def _words(key: _Key, log: WriteLog) -> str:
    """How often it ran, what it writes, and which fields change each time."""
    runs = f"every reconcile writes, {max(key.any_runs, key.own_runs + 1)} in a row"
    changing = [
        f"{kind.kind} {name} ({', '.join(fields)})"
        for (kind, name), raw in log.answers.items()
        if (fields := _fields(raw, key.answers.get((kind, name)), log.befores.get((kind, name))))
    ]
    if not changing:
        objects = dict.fromkeys(f"{write.kind.kind} {write.key}" for write in log.writes)
        changing = list(objects) or ["objects whose answers were not shown"]
    words = f"{runs}: it keeps changing {'; '.join(changing[:_FIELDS])}"
    if key.own_runs >= OWN_RUNS:
        return f"{words}, which triggers it again. Write only what differs from the desired state"
    return f"{words}. Something else writes them back, or changes as fast"


def _fields(after: bytes, *befores: bytes | None) -> list[str]:
    """The fields that differ from the previous reconcile's answer or, if none do, from the state before this reconcile."""
    for before in befores:
        if before and (fields := changed_fields(before, after)):
            return fields
    return []


def changed_fields(before: bytes, after: bytes) -> list[str]:
    """The paths of the first fields that differ, without those that every write changes."""
    try:
        paths = _differences(msgspec.json.decode(before), msgspec.json.decode(after), "")
        return [path for _, path in zip(range(_FIELDS), paths, strict=False)]
    except (msgspec.MsgspecError, RecursionError):
        return []


def _differences(before: Any, after: Any, path: str) -> Iterator[str]:
    if path in _NOISE or before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        left, right = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        for name in dict.fromkeys((*left, *right)):
            yield from _differences(left.get(name), right.get(name), f"{path}.{name}" if path else name)
    elif isinstance(before, list) and isinstance(after, list):
        first, second = cast("list[Any]", before), cast("list[Any]", after)
        if len(first) != len(second):
            yield path
            return
        for place, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _differences(one, other, f"{path}[{place}]")
    else:
        yield path
