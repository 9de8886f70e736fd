"""Stacks of tasks and threads, for reports about code that blocks or does not end.

Guarantees
- A waiting task is followed through everything it awaits, down to the last line of Python.
- A report names the deepest line outside Python's library and this package: the operator's own.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

_LIBRARY = str(Path(os.__file__).parent)
_OURSELVES = str(Path(__file__).parents[1])

#: How deep a chain of awaits is followed.
_DEPTH_MAX = 100


def task_stack(task: asyncio.Task[Any], *, thread: int) -> traceback.StackSummary:
    """The stack of a task. ``thread`` is the thread of its loop, in case the task is running right now."""
    if asyncio.current_task(task.get_loop()) is task:
        return thread_stack(thread)
    return traceback.StackSummary.extract((frame, frame.f_lineno) for frame in _awaited(task.get_coro()))


def thread_stack(thread: int) -> traceback.StackSummary:
    """The stack of a thread; empty if the thread has ended."""
    return traceback.extract_stack(frame) if (frame := _frame(thread)) is not None else traceback.StackSummary()


def busy_threads() -> Iterator[tuple[str, traceback.StackSummary]]:
    """The name and the stack of every busy thread that the exit of the process would wait for."""
    for thread in threading.enumerate():
        if thread.daemon or thread is threading.main_thread() or thread.ident is None:
            continue
        stack = thread_stack(thread.ident)
        # An idle executor thread waits for work in this function.
        if stack and stack[-1].name != "_worker":
            yield thread.name, stack


def line_of(stack: traceback.StackSummary) -> str:
    """The line to look at, as ``file.py:12 in function``; empty for an empty stack."""
    if not stack:
        return ""
    own = [entry for entry in stack if not _is_foreign(entry.filename)]
    entry = (own or stack)[-1]
    return f"{entry.filename}:{entry.lineno} in {entry.name}"


def text_of(stack: traceback.StackSummary) -> str:
    """The stack, formatted as in a traceback."""
    return "".join(stack.format())


def _is_foreign(filename: str) -> bool:
    library = filename.startswith(_LIBRARY) and "-packages" not in filename
    return library or filename.startswith((_OURSELVES, "<frozen"))


def _frame(thread: int) -> FrameType | None:
    return sys._current_frames().get(thread)  # noqa: SLF001 - Python's own way to look at another thread


def _awaited(awaitable: Any) -> Iterator[FrameType]:
    for _ in range(_DEPTH_MAX):
        frame = _first(awaitable, "cr_frame", "gi_frame", "ag_frame")
        if frame is None:
            return
        yield frame
        awaitable = _first(awaitable, "cr_await", "gi_yieldfrom", "ag_await")


def _first(of: Any, *names: str) -> Any:
    return next((found for name in names if (found := getattr(of, name, None)) is not None), None)
