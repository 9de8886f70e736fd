"""Delivery of events to a handler, at the handler's own pace.

Guarantees
- A slow handler delays neither the watch nor other handlers.
- Notifying handlers of a list of any size does not block the event loop: each change becomes an entry when its turn comes.
- The buffer holds one entry per key: undelivered changes of a key are merged. The event keeps the last ``PASSED_LIMIT``
  intermediate states, because a reader may have seen one of them.
- An object that was created and deleted between two calls is reported as both, because a reader may have seen it.
- The order is consistent: an object appears before it changes, and vanishes before its successor of the same name appears.
  The ``old`` of a change is the last state that this handler was called with.
- Synced means that the handler was *called* for every object of the initial list.
- A handler may look up an index that is not complete: it is called again once it is.
- If a handler raises, the error is logged and counted, and the handler is called for the next key.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeAlias

import msgspec

from steersman import aio
from steersman.cache.disposal import Noted
from steersman.cache.object_events import ObjectEvent
from steersman.cache.stored_object import StoredObject, StoredView
from steersman.errors import is_exit
from steersman.objects import Key

_log = logging.getLogger("steersman.cache")

#: Called for every change; it must not block.
EventHandler: TypeAlias = Callable[[ObjectEvent], None]


class IndexPending(BaseException):
    """A handler looked up a large index that is not complete. `Registration.deliver` waits for it and repeats the call.

    Not an Exception: a handler that catches errors must not take it for one.
    """

    def __init__(self, index: str, build: Callable[[], Iterator[None]], prepare: Callable[[], Awaitable[None]]) -> None:
        super().__init__(f"the index {index} is not complete")
        #: Builds it in steps, and without blocking the event loop.
        self.build, self.prepare = build, prepare


#: How many intermediate states are kept per key between two calls.
PASSED_LIMIT = 16
#: The maximum number of pending batches; each may hold every key.
_BATCHES_MAX = 4
#: How many calls to make before other tasks get their turn.
_BATCH = 128


class _Pending(msgspec.Struct):
    """The merged, undelivered changes of one key."""

    number: int
    #: The last state that the handler was called with; None if the key is new to it.
    old: StoredObject | None
    #: The final state of a deleted object, from the watch.
    last: StoredObject | None = None
    #: The intermediate states, oldest first.
    passed: tuple[StoredObject, ...] = ()
    frames: int = 0
    broken: bool = False
    initial: bool = False
    resync: bool = False


class _Batch:
    """Many keys to notify of, added together. Each becomes an entry only when its turn comes."""

    __slots__ = ("_keys", "_noted", "_olds", "_taken", "initial", "number", "resync")

    def __init__(self, number: int, noted: Noted, *, initial: bool = False, resync: bool = False) -> None:
        self.number = number
        self.initial = initial
        self.resync = resync
        self._noted = noted
        #: The last state of each key that the handler was called with.
        self._olds = noted.olds
        self._keys = iter(noted.olds)
        self._taken: set[Key] = set()

    def __len__(self) -> int:
        return len(self._olds) - len(self._taken)

    def __contains__(self, key: Key) -> bool:
        return key in self._olds and key not in self._taken

    def old(self, key: Key) -> StoredObject | None:
        return None if self.initial else self._olds[key]

    def take(self, key: Key) -> bool:
        """Remove a key; return whether the batch still held it."""
        if key not in self:
            return False
        self._taken.add(key)
        return True

    def left(self) -> list[Key]:
        """The keys that it still holds."""
        return [key for key in self._olds if key not in self._taken]

    def pop(self) -> Key | None:
        """Remove and return the next key; None at the end."""
        for key in self._keys:
            if key not in self._taken:
                self._taken.add(key)
                return key
        return None


class HandlerRegistration:
    """A handler of an informer; made by ``informer.add_handler(...)``."""

    def __init__(
        self,
        handler: EventHandler,
        *,
        current: Callable[[Key], StoredObject | None],
        view: Callable[[StoredObject], StoredView],
        remove: Callable[[HandlerRegistration], None],
        resync: float | None,
        selects_all: bool = False,
        on_left: Callable[[Key], None] | None = None,
    ) -> None:
        self._handler = handler
        self._current = current
        self._view = view
        self._remove = remove
        self._selects_all = selects_all
        #: Called with the key of an object that left without a deletion, with its range.
        self._on_left = on_left
        self.resync = resync
        self._pending: OrderedDict[Key, _Pending] = OrderedDict()
        #: Pending batches, oldest first.
        self._batches: deque[_Batch] = deque()
        self._number = 0
        #: How many objects of the initial list are undelivered; None until that list is complete.
        self._initial: int | None = None
        self._wake = asyncio.Event()
        self._synced = asyncio.Event()
        self.delivered = 0
        self.failures = 0

    def __repr__(self) -> str:
        return f"<HandlerRegistration of {self._handler!r}: {len(self._pending)} pending, {self.delivered} delivered>"

    @property
    def synced(self) -> bool:
        """Whether the handler was called for every object of the initial list."""
        return self._synced.is_set()

    @property
    def pending(self) -> int:
        """A lower bound for the number of keys with undelivered changes."""
        return max(len(self._pending), *(len(batch) for batch in self._batches), 0)

    def waits(self, key: Key) -> bool:
        """Whether a key has undelivered changes."""
        return key in self._pending or any(key in batch for batch in self._batches)

    async def wait_synced(self) -> None:
        """Wait until the handler was called for every object of the initial list."""
        await self._synced.wait()

    def remove(self) -> None:
        """Stop calling the handler."""
        self._pending.clear()
        self._batches.clear()
        self._remove(self)

    # called by the informer

    @property
    def started(self) -> bool:
        """Whether the initial list was passed to `start`."""
        return self._initial is not None

    def start(self, present: Noted) -> None:
        """Deliver the existing objects as the initial list; later events are delivered as changes."""
        if self._initial is None:
            self._initial = len(present.olds)
            self._add_batch(present, initial=True)

    def add_present(self, present: Noted) -> None:
        """Deliver the objects of a gained scope as further objects of the initial list."""
        if self._initial is not None and present.olds:
            self._initial += len(present.olds)
            self._add_batch(present, initial=True)

    def drop(self, key: Key) -> None:
        """Forget what is undelivered of an object that left with its range: it was not deleted."""
        entry = self._pending.pop(key, None)
        delivered = int(entry is not None and entry.initial)
        for batch in self._batches:
            delivered += batch.take(key) and batch.initial
        if self._initial is not None:
            self._initial -= delivered
            self._wake.set()
        if self._on_left is not None:
            self._on_left(key)

    def drop_outside(self, is_outside: Callable[[Key], bool]) -> None:
        """Forget what is undelivered of all objects that left, including those that were deleted before."""
        for key in [key for key in self._pending if is_outside(key)]:
            self.drop(key)
        for batch in [batch for batch in self._batches if not batch.initial and not batch.resync]:
            for key in [key for key in batch.left() if is_outside(key)]:
                self.drop(key)

    def note_all(self, differences: Noted) -> None:
        """Note the keys that differ after a list, with their previous states."""
        if self._initial is not None and differences.olds:
            self._add_batch(differences)

    def note(self, key: Key, old: StoredObject | None, *, framed: bool, last: StoredObject | None = None) -> None:
        """Note a change of a key. ``framed``: a watch event reported it. ``last``: the final state of a deleted object."""
        if self._initial is None:
            return  # the initial list will include it
        entry = self._entry(key, old)
        if last is not None:
            # The deletion event shows the object's last state, so it stands for that state too.
            entry.last = last
            self._pass(entry, last)
        elif old is not None and old is not entry.old:
            self._pass(entry, old)
        entry.frames += 1
        entry.broken = entry.broken or not framed
        self._wake.set()

    def note_again(self, present: Noted) -> None:
        """Note a resync: deliver unchanged objects again."""
        if self._initial is None:
            return  # the handler was not called for any object yet
        # These keys include everything that an earlier resync has not delivered.
        self._batches = deque(batch for batch in self._batches if not batch.resync)
        self._add_batch(present, resync=True)

    def _add_batch(self, noted: Noted, *, initial: bool = False, resync: bool = False) -> None:
        self._number += 1
        self._batches.append(_Batch(self._number, noted, initial=initial, resync=resync))
        if len(self._batches) > _BATCHES_MAX:
            # After the append: the store already has the new batch's states, and only that batch has the previous ones.
            self._unpack(self._batches.popleft())
        self._wake.set()

    def _unpack(self, batch: _Batch) -> None:
        """Turn the rest of a batch into entries, so that batches of a very slow handler do not pile up."""
        while (key := batch.pop()) is not None:
            self._pending[key] = self._opened(batch, key)

    def _opened(self, batch: _Batch, key: Key) -> _Pending:
        """Return the entry of a key that was just removed from a batch, with its changes in later batches."""
        entry = self._pending.pop(key, None)
        if entry is not None:
            self._merge(entry, batch, key)
            self._absorb(key, entry)
        elif batch.resync:
            entry = _Pending(batch.number, self._current(key), resync=True)
            # The handler knows the old state of the first later change, not the current state.
            self._absorb(key, entry, new=True)
        else:
            counted = 0 if batch.initial else 1
            entry = _Pending(batch.number, batch.old(key), initial=batch.initial, frames=counted, broken=bool(counted))
            self._absorb(key, entry)
        return entry

    def _merge(self, entry: _Pending, batch: _Batch, key: Key) -> None:
        """Merge a batch's change of a key into an earlier entry."""
        if batch.resync:
            return
        if batch.initial and self._initial is not None:
            self._initial -= 1  # the entry counts at most once
        old = batch.old(key)
        if old is not None and old is not entry.old:
            self._pass(entry, old)
        if not batch.initial:
            entry.frames += 1
            entry.broken = True

    def _entry(self, key: Key, old: StoredObject | None) -> _Pending:
        """Return the entry of a key, with all earlier changes merged into it."""
        entry = self._pending.get(key)
        new = entry is None
        if entry is None:
            self._number += 1
            entry = self._pending[key] = _Pending(self._number, old)
        self._absorb(key, entry, new=new)
        return entry

    def _absorb(self, key: Key, entry: _Pending, *, new: bool = False) -> None:
        """Move a key's changes from the batches into its entry. A new entry takes its old state from the first batch."""
        for batch in self._batches:
            if not batch.take(key) or batch.resync:
                continue
            if new:
                entry.old, entry.initial = batch.old(key), batch.initial
                new = False
                if batch.initial:
                    continue
            self._merge(entry, batch, key)

    def _next(self) -> tuple[Key, _Pending] | None:
        """Remove and return the oldest pending entry; None if nothing is pending."""
        while self._batches:
            batch = self._batches[0]
            if self._pending and next(iter(self._pending.values())).number < batch.number:
                break
            # Without the first test, the last `pop` would skip all keys that an earlier entry has absorbed, in one turn.
            if not len(batch) or (key := batch.pop()) is None:
                self._batches.popleft()
                continue
            return key, self._opened(batch, key)
        if not self._pending:
            return None
        key, entry = self._pending.popitem(last=False)
        self._absorb(key, entry)
        return key, entry

    @staticmethod
    def _pass(entry: _Pending, state: StoredObject) -> None:
        entry.passed = (*entry.passed[1 - PASSED_LIMIT :], state)

    async def deliver(self) -> None:
        """Call the handler for pending entries until cancelled."""
        while True:
            for _ in range(_BATCH):
                due = self._next()
                if due is None:
                    break
                key, entry = due
                for event in self._events(key, entry):
                    while (pending := self._call(event)) is not None:
                        await pending.prepare()
                if entry.initial and self._initial is not None:
                    self._initial -= 1
            if self._initial == 0 and not self._synced.is_set():
                self._synced.set()
            if self._pending or self._batches:
                await asyncio.sleep(0)
            else:
                self._wake.clear()
                await self._wake.wait()

    async def show_again(self, present: Callable[[], Noted]) -> None:
        """Deliver all objects again every ``resync`` seconds, with jitter."""
        assert self.resync is not None
        while True:
            await asyncio.sleep(self.resync * (0.9 + 0.2 * aio.randomness().random()))
            self.note_again(present())

    def _events(self, key: Key, entry: _Pending) -> Iterator[ObjectEvent]:
        old, new = entry.old, self._current(key)
        unbroken = entry.frames == 1 and not entry.broken and not entry.initial
        passed = self._by_object(entry)
        if old is not None and (new is None or new.uid != old.uid):
            yield self._vanished(entry, [old, *passed.pop(old.uid, ())], unbroken=unbroken and new is None)
            old = None
            unbroken = unbroken and new is None
        between = self._views(passed.pop(new.uid, [])) if new is not None else ()
        for states in passed.values():
            # Created and deleted between two calls: no event covered it, but a reader may have seen it.
            view, earlier = self._view(states[-1]), self._views(states[:-1])
            yield ObjectEvent("appeared", new=view, passed=earlier, initial=entry.initial)
            yield self._vanished(entry, states, unbroken=False)
        if new is None:
            return
        if old is None:
            created = self._selects_all and not entry.initial and not entry.broken
            view = self._view(new)
            yield ObjectEvent(
                "appeared", new=view, passed=between, initial=entry.initial, unbroken=unbroken, created=created
            )
        elif old.resource_version != new.resource_version or old.raw != new.raw or between:
            # After a restore from backup, one version can name two states, and an earlier state can return.
            yield ObjectEvent("changed", old=self._view(old), new=self._view(new), passed=between, unbroken=unbroken)
        elif entry.resync:
            view = self._view(new)
            yield ObjectEvent("changed", old=view, new=view, resync=True)

    def _vanished(self, entry: _Pending, states: list[StoredObject], *, unbroken: bool) -> ObjectEvent:
        """Build the event that an object with these known states is gone."""
        certain = states[-1] is entry.last
        earlier = states[:-1] if entry.frames > 1 else ()
        view, passed = self._view(states[-1]), self._views(earlier)
        return ObjectEvent("vanished", old=view, passed=passed, unbroken=unbroken, certain=certain)

    @staticmethod
    def _by_object(entry: _Pending) -> dict[str, list[StoredObject]]:
        """Group the intermediate states by object (uid), in order of arrival."""
        by_uid: dict[str, list[StoredObject]] = {}
        for stored in entry.passed:
            by_uid.setdefault(stored.uid, []).append(stored)
        return by_uid

    def _views(self, states: Iterable[StoredObject]) -> tuple[StoredView, ...]:
        return tuple(self._view(stored) for stored in states)

    def _call(self, event: ObjectEvent) -> IndexPending | None:
        try:
            self._handler(event)
        except IndexPending as pending:
            return pending
        except BaseException as error:
            # A handler's error must not stop the delivery.
            if is_exit(error):
                raise
            self.failures += 1
            _log.exception(
                "the handler %r failed on %s %s; it continues with the next key",
                self._handler,
                event.kind.kind,
                event.key,
            )
        self.delivered += 1
        return None
