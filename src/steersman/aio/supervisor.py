"""Ownership of tasks.

Guarantees:

- Leaving the block waits until every task has ended; no task outlives its supervisor.
- The first failing task cancels the others and the block. The block raises an `ExceptionGroup` of all failures, in the
  order in which the tasks failed. Each failure carries a note with the name of its task.
- `cancel` cancels every task and lets the block end without an error.
- Tasks are cancelled in reverse start order, so a run in virtual time repeats exactly.
- A cancellation of the surrounding task is never lost, whatever happens inside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Supervisor:
    """The owner of a group of tasks: ``async with Supervisor() as tasks: tasks.start(work(), name="work")``.

    It differs from `asyncio.TaskGroup` where a controller needs it: `cancel` ends all tasks cleanly, every task has a
    name, cancellation has a defined order, and an exception of the block itself passes unchanged if no task failed.
    """

    def __init__(self) -> None:
        self._owner: asyncio.Task[Any] | None = None
        #: Cancellations of the owner before the block, which are ignored here.
        self._cancelling = 0
        # A dict keeps the start order; a set would cancel in the order of memory addresses.
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._failures: list[BaseException] = []
        # KeyboardInterrupt or SystemExit of a task: raised from the block directly, not in a group.
        self._exit: BaseException | None = None
        self._stopping = False
        self._leaving = False
        self._owner_cancelled = False
        self._all_ended: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        if self._owner is not None:
            raise RuntimeError("a supervisor can be entered once: make a new one for a new block")
        self._owner = asyncio.current_task()
        if self._owner is None:
            raise RuntimeError("a supervisor must be entered inside a task, which it cancels when one of its own fails")
        self._cancelling = self._owner.cancelling()
        return self

    def start(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        """Run `work` as a task of this supervisor; its failure fails the block."""
        if self._owner is None or self._stopping or (self._leaving and not self._tasks):
            work.close()
            state = "not entered" if self._owner is None else "ending"
            raise RuntimeError(f"cannot start task {name!r}: its supervisor is {state}")
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def cancel(self) -> None:
        """Cancel every task and start no more; the block ends without an error once they have ended.

        Does not interrupt the block's own body. Calling it again changes nothing.
        """
        if self._stopping:
            return
        self._stopping = True
        for task in reversed(self._tasks):
            task.cancel()

    @property
    def stopping(self) -> bool:
        """Whether every task was cancelled: by `cancel`, by a failure, or because the block was cancelled."""
        return self._stopping

    @property
    def running(self) -> tuple[str, ...]:
        """The names of the tasks that have not ended, in start order."""
        return tuple(task.get_name() for task in self._tasks)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._leave(error)
        finally:
            # A failure's traceback refers to this frame; keeping the failures here would make a cycle.
            self._failures = []
            self._exit = None

    async def _leave(self, error: BaseException | None) -> None:
        assert self._owner is not None
        self._leaving = True
        cancelled = error if isinstance(error, asyncio.CancelledError) else None
        if self._owner_cancelled and self._owner.uncancel() <= self._cancelling:
            # Only we cancelled the body.
            cancelled = None
        if error is not None:
            self.cancel()
        while self._tasks:
            self._all_ended = asyncio.get_running_loop().create_future()
            try:
                await self._all_ended
            except asyncio.CancelledError as outer:
                cancelled = outer
                self.cancel()
        if self._exit is not None:
            raise self._exit
        if not self._failures:
            if cancelled is not None and cancelled is not error:
                raise cancelled
            return
        if error is not None and not isinstance(error, asyncio.CancelledError):
            self._failures.append(error)
        if self._owner.cancelling() > self._cancelling:
            # The group hides the cancellation from outside: cancel again, so that the next await raises it.
            self._owner.uncancel()
            self._owner.cancel()
        raise BaseExceptionGroup("tasks failed", self._failures) from None

    def _ended(self, task: asyncio.Task[Any]) -> None:
        del self._tasks[task]
        if not self._tasks and self._all_ended is not None and not self._all_ended.done():
            self._all_ended.set_result(None)
        failure = None if task.cancelled() else task.exception()
        if failure is None:
            return
        _name_failure(failure, task.get_name())
        if not isinstance(failure, SystemExit | KeyboardInterrupt):
            self._failures.append(failure)
        elif self._exit is None:
            self._exit = failure
        self.cancel()
        assert self._owner is not None
        if not self._leaving and not self._owner_cancelled and not self._owner.done():
            self._owner_cancelled = True
            self._owner.cancel()


def _name_failure(failure: BaseException, name: str) -> None:
    note = f"in task {name!r}"
    # One exception may fail several tasks that awaited the same future.
    if note not in getattr(failure, "__notes__", ()):
        failure.add_note(note)
