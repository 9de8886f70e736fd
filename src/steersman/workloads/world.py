"""What each object has in the real world: the one map from objects to processes or containers.

Guarantees
- **Only the reconciler changes a record.** An event of the world is an operation, which waits until the next reconcile of
  its object reads the record.
- Operations run once, in the order of their arrival, and each wakes its object.
- A record belongs to a uid: an event of a deleted object never reaches its successor of the same name.
- The record, not the status, says what was started, so a status write that conflicts starts nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Generic, TypeVar

from steersman.aio import Supervisor
from steersman.controller import ChannelSource, Emit, ObjectEvent
from steersman.objects import Key, Object

RecordT = TypeVar("RecordT")
#: A change of a record that an event of the world asks for.
Operation = Callable[[RecordT], None]


class _Entry(Generic[RecordT]):
    __slots__ = ("key", "pending", "record")

    def __init__(self, key: Key, record: RecordT) -> None:
        self.key = key
        self.record = record
        self.pending: list[Operation[RecordT]] = []


class World(ChannelSource, Generic[RecordT]):
    """The records of one kind, and the source of its events.

    A controller adds it with ``.on(world)``. A reconcile calls `record`; a listener of processes or containers calls `defer`.

    ``new`` makes the record of an object that has none. At most ``limit`` pieces of slow work run at once.
    """

    def __init__(self, name: str, new: Callable[[], RecordT], *, limit: int = 16) -> None:
        super().__init__(name)
        self._new = new
        self._entries: dict[str, _Entry[RecordT]] = {}
        #: The uids under each key: more than one after an object vanished without its finalizer.
        self._uids: dict[Key, list[str]] = {}
        self._limit = asyncio.Semaphore(limit)
        self._tasks: Supervisor | None = None

    def __iter__(self) -> Iterator[tuple[str, RecordT]]:
        """The uid and the record of every object, without the operations that still wait."""
        return iter([(uid, entry.record) for uid, entry in self._entries.items()])

    def record(self, obj: Object) -> RecordT:
        """The record of an object, after its waiting operations. Call it from the object's reconcile alone."""
        entry = self._entries.get(obj.uid)
        if entry is None:
            entry = self._entries[obj.uid] = _Entry(obj.key, self._new())
            self._uids.setdefault(obj.key, []).append(obj.uid)
        return _current(entry)

    def peek(self, uid: str) -> RecordT | None:
        """The record of an object as its last reconcile left it; None without one. Only for reading."""
        entry = self._entries.get(uid)
        return entry.record if entry is not None else None

    def concerns(self, event: ObjectEvent) -> bool:
        """Whether an event of an object needs a reconcile: all do but the end of an object whose record is forgotten."""
        return event.new is not None or (event.old is not None and event.old.uid in self._entries)

    def replaced(self, key: Key, uid: str = "") -> list[tuple[str, RecordT]]:
        """The records under a key that do not belong to ``uid``: objects that vanished without their finalizer."""
        return [(other, _current(self._entries[other])) for other in self._uids.get(key, ()) if other != uid]

    def forget(self, uid: str) -> None:
        """Drop a record, when nothing of it is left in the real world."""
        entry = self._entries.pop(uid, None)
        if entry is not None:
            uids = self._uids[entry.key]
            uids.remove(uid)
            if not uids:
                del self._uids[entry.key]

    def defer(self, uid: str, operation: Operation[RecordT], note: str = "") -> None:
        """Change a record at the start of the next reconcile of its object; ``note`` says why.

        Does nothing if the record was forgotten.
        """
        entry = self._entries.get(uid)
        if entry is not None:
            entry.pending.append(operation)
            self.send(entry.key, note)

    def wake(self, uid: str, note: str = "") -> None:
        """Reconcile an object without a change of its record."""
        entry = self._entries.get(uid)
        if entry is not None:
            self.send(entry.key, note)

    def work(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Run slow work as a task, such as a pull; it reports with `defer`. It is cancelled when the controller ends.

        The work must handle its own errors: one that escapes ends the controller.
        """
        if self._tasks is None:
            work.close()
            raise RuntimeError(f"world {self.name}: its controller is not running, so it cannot run {name}")
        return self._tasks.start(self._bounded(work), name=name)

    async def run(self, emit: Emit, started: Callable[[], None]) -> None:
        """Emit until cancelled."""
        async with Supervisor() as tasks:
            self._tasks = tasks
            try:
                await super().run(emit, started)
            finally:
                self._tasks = None
                tasks.cancel()

    async def _bounded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            async with self._limit:
                await work
        finally:
            work.close()


def _current(entry: _Entry[RecordT]) -> RecordT:
    pending, entry.pending = entry.pending, []
    for operation in pending:
        operation(entry.record)
    return entry.record
