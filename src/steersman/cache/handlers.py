"""Telling a handler what changed, at its own pace.

Guarantees
- A handler that is slow delays nobody: not the watch, not other handlers.
- The buffer holds one entry for each key, whatever happens: changes that were not delivered yet become one. The states
  between are not lost with them: the last ``PASSED_LIMIT`` are handed on, so that whoever saw one of them can be told.
- Also an object that came and went between two calls is told, as both: somebody may have read it.
- What is delivered is consistent: an object appears before it changes, and vanishes before another of its name appears;
  the ``old`` of a change is what this handler was told last.
- Synced means that the handler was *called* for every object of the initial list.
- A handler that raises is logged and counted; it is called again for the next key.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from steersman import aio
from steersman.cache.notifications import Appeared, Changed, Notification, Vanished
from steersman.cache.stored import Stored, View
from steersman.objects import Key

_log = logging.getLogger("steersman.cache")

#: Called for every change; it must not block.
Handler: TypeAlias = Callable[[Notification], None]

#: States between two calls that one key keeps.
PASSED_LIMIT = 16
#: So many calls, and other tasks get their turn.
_BATCH = 128


class _Pending(msgspec.Struct):
    """What a handler has yet to be told of one key."""

    number: int
    #: What the handler was told last; None if the key is new to it.
    old: Stored | None
    #: The final state, as the watch showed it.
    last: Stored | None = None
    #: What it was between, the oldest first.
    passed: tuple[Stored, ...] = ()
    frames: int = 0
    broken: bool = False
    initial: bool = False
    resync: bool = False


class Registration:
    """A handler of an informer; made by ``informer.add_handler(...)``."""

    def __init__(
        self,
        handler: Handler,
        *,
        current: Callable[[Key], Stored | None],
        view: Callable[[Stored], View],
        remove: Callable[[Registration], None],
        resync: float | None,
    ) -> None:
        self._handler = handler
        self._current = current
        self._view = view
        self._remove = remove
        self.resync = resync
        self._pending: OrderedDict[Key, _Pending] = OrderedDict()
        self._number = 0
        #: The number of the last initial entry; None until the initial list is there.
        self._initial: int | None = None
        self._wake = asyncio.Event()
        self._synced = asyncio.Event()
        self.delivered = 0
        self.failures = 0

    def __repr__(self) -> str:
        return f"<Registration of {self._handler!r}: {len(self._pending)} pending, {self.delivered} delivered>"

    @property
    def synced(self) -> bool:
        """Whether the handler was called for every object of the initial list."""
        return self._synced.is_set()

    @property
    def pending(self) -> int:
        """How many keys wait for the handler."""
        return len(self._pending)

    async def wait_synced(self) -> None:
        """Wait until the handler was called for every object of the initial list."""
        await self._synced.wait()

    def remove(self) -> None:
        """Call the handler no more."""
        self._pending.clear()
        self._remove(self)

    # called by the informer

    def start(self, keys: Iterable[Key]) -> None:
        """Tell of the objects that are there; what follows is told as a change."""
        if self._initial is None:
            for key in keys:
                self._entry(key, None).initial = True
            self._initial = self._number
            self._wake.set()

    def note(self, key: Key, old: Stored | None, *, framed: bool, last: Stored | None = None) -> None:
        """Something happened to a key: ``framed`` if a watch said so by itself, ``last`` if it removed the object."""
        if self._initial is None:
            return  # the initial list will tell
        entry = self._entry(key, old)
        if last is not None:
            # it shows the object as it was before, so it stands for that state too
            entry.last = last
            self._pass(entry, last)
        elif old is not None and old is not entry.old:
            self._pass(entry, old)
        entry.frames += 1
        entry.broken = entry.broken or not framed
        self._wake.set()

    def note_again(self, keys: Iterable[Key]) -> None:
        """Show objects again, although they did not change."""
        for key in keys:
            entry = self._pending.get(key)
            if entry is None:
                self._entry(key, self._current(key)).resync = True
        self._wake.set()

    def _entry(self, key: Key, old: Stored | None) -> _Pending:
        entry = self._pending.get(key)
        if entry is None:
            self._number += 1
            entry = self._pending[key] = _Pending(self._number, old)
        return entry

    @staticmethod
    def _pass(entry: _Pending, state: Stored) -> None:
        entry.passed = (*entry.passed[1 - PASSED_LIMIT :], state)

    async def deliver(self) -> None:
        """Call the handler for what is pending, for ever."""
        while True:
            for _ in range(_BATCH):
                if not self._pending:
                    break
                key, entry = self._pending.popitem(last=False)
                for notification in self._notifications(key, entry):
                    self._call(notification)
            if self._initial is not None and not self._synced.is_set() and self._first_number() > self._initial:
                self._synced.set()
            if self._pending:
                await asyncio.sleep(0)
            else:
                self._wake.clear()
                await self._wake.wait()

    async def show_again(self, keys: Callable[[], Iterable[Key]]) -> None:
        """Show all objects again every ``resync`` seconds, a little earlier or later each time."""
        assert self.resync is not None
        while True:
            await asyncio.sleep(self.resync * (0.9 + 0.2 * aio.randomness().random()))
            self.note_again(keys())

    def _first_number(self) -> int:
        for entry in self._pending.values():
            return entry.number
        return self._number + 1

    def _notifications(self, key: Key, entry: _Pending) -> Iterator[Notification]:
        old, new = entry.old, self._current(key)
        unbroken = entry.frames == 1 and not entry.broken and not entry.initial
        passed = self._by_object(entry)
        if old is not None and (new is None or new.uid != old.uid):
            yield self._vanished(entry, [old, *passed.pop(old.uid, ())], unbroken=unbroken and new is None)
            old = None
            unbroken = unbroken and new is None
        between = self._views(passed.pop(new.uid, [])) if new is not None else ()
        for states in passed.values():
            # it came and went: nobody was told of it, but it could be read
            yield Appeared(self._view(states[-1]), initial=entry.initial, passed=self._views(states[:-1]))
            yield self._vanished(entry, states, unbroken=False)
        if new is None:
            return
        if old is None:
            yield Appeared(self._view(new), initial=entry.initial, unbroken=unbroken, passed=between)
        elif old.resource_version != new.resource_version or old.raw != new.raw or between:
            # one version can name two states: of before and after a backup was restored, which can also bring one back
            coalesced = entry.frames > 1
            yield Changed(self._view(old), self._view(new), coalesced=coalesced, unbroken=unbroken, passed=between)
        elif entry.resync:
            view = self._view(new)
            yield Changed(view, view, resync=True)

    def _vanished(self, entry: _Pending, states: list[Stored], *, unbroken: bool) -> Vanished:
        """An object is gone that was told, or passed, in these states."""
        certain = states[-1] is entry.last
        earlier = states[:-1] if entry.frames > 1 else ()
        return Vanished(self._view(states[-1]), certain=certain, unbroken=unbroken, passed=self._views(earlier))

    @staticmethod
    def _by_object(entry: _Pending) -> dict[str, list[Stored]]:
        """What was passed, object by object, in the order in which they came."""
        found: dict[str, list[Stored]] = {}
        for stored in entry.passed:
            found.setdefault(stored.uid, []).append(stored)
        return found

    def _views(self, states: Iterable[Stored]) -> tuple[View, ...]:
        return tuple(self._view(stored) for stored in states)

    def _call(self, notification: Notification) -> None:
        try:
            self._handler(notification)
        except Exception:  # noqa: BLE001 - whatever a handler raises is its own
            self.failures += 1
            _log.exception(
                "the handler %r failed on %s %s; it goes on with the next key",
                self._handler,
                notification.kind.kind,
                notification.key,
            )
        self.delivered += 1
