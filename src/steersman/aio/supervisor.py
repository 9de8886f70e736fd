"""Ownership of tasks.

Guarantees:

- Leaving the block waits until every task has ended; no task outlives its supervisor.
- The first failing task cancels the others and the block, and the block raises an `ExceptionGroup` of every failure in
  the order in which the tasks failed. Each failure carries a note with the name of its task.
- `cancel` cancels every task and lets the block end without an error.
- Tasks are cancelled in the reverse order of their start, so a run in virtual time repeats exactly.
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

    It differs from `asyncio.TaskGroup` in what a controller needs: it can be told to `cancel` all tasks and end
    cleanly, names every task, cancels in a defined order, and lets an exception of the block itself through unchanged
    when no task failed.
    """

    def __init__(self) -> None:
        self._owner: asyncio.Task[Any] | None = None
        # A dict keeps the order of start; a set would cancel in the order of memory addresses.
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._failures: list[BaseException] = []
        # KeyboardInterrupt or SystemExit of a task: leaves the block as it is, not in a group.
        self._exit: BaseException | None = None
        self._stopping = False
        self._leaving = False
        self._owner_cancelled = False
        self._all_ended: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        if self._owner is not None:
            raise RuntimeError("a supervisor is used once: make a new one for a new block")
        self._owner = asyncio.current_task()
        if self._owner is None:
            raise RuntimeError("a supervisor needs a task around it, which it can cancel when one of its own fails")
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

        The block's own body is not interrupted. Calling it again changes nothing.
        """
        if self._stopping:
            return
        self._stopping = True
        for task in reversed(self._tasks):
            task.cancel()

    @property
    def running(self) -> tuple[str, ...]:
        """The names of the tasks that have not ended, in the order of their start."""
        return tuple(task.get_name() for task in self._tasks)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._leave(error)
        finally:
            # A failure's traceback refers to this frame; keeping the failures here as well would be a cycle.
            self._failures = []
            self._exit = None

    async def _leave(self, error: BaseException | None) -> None:
        assert self._owner is not None
        self._leaving = True
        cancelled = error if isinstance(error, asyncio.CancelledError) else None
        if self._owner_cancelled and self._owner.uncancel() == 0:
            # Nobody but us cancelled the body.
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
        if self._owner.cancelling():
            # The group hides the cancellation from outside: ask again, so that the next await sees it.
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
