"""Blocking code, found in the act.

Guarantees
- If the loop does not turn for ``threshold`` seconds, the stack that blocks it is reported once, while it blocks, with
  the name of the task it belongs to; and again, with the time it took, when the loop turns again.
- It costs one wake-up of a thread and one turn of the loop every quarter of the threshold; nothing when not entered.

For development: whoever blocks a loop delays every other key, and no event tells so.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Self

import msgspec

_log = logging.getLogger("steersman.controller")


class Blocked(msgspec.Struct, frozen=True):
    """The loop did not turn."""

    seconds: float
    task: str
    stack: str

    def __str__(self) -> str:
        return (
            f"the event loop was blocked for {self.seconds:.2f} s by {self.task}: nothing else could run. "
            f"Await it, or move it out of the loop with asyncio.to_thread.\n{self.stack}"
        )


def log_blocked(blocked: Blocked) -> None:
    """Log it: what is done unless a watchdog is told otherwise."""
    _log.warning("%s", blocked, extra={"task_name": blocked.task})


class Watchdog:
    """Watches the running loop from a thread: ``async with Watchdog(threshold=0.2): ...``."""

    def __init__(self, *, threshold: float = 0.2, report: Callable[[Blocked], None] = log_blocked) -> None:
        if not 0 < threshold < float("inf"):
            raise ValueError(f"threshold is a number of seconds above 0; got {threshold}")
        self._threshold = threshold
        self._report = report
        self._stop = threading.Event()
        self._turned = threading.Event()
        self._thread: threading.Thread | None = None

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._thread = threading.Thread(
            target=self._watch, args=(loop, threading.get_ident()), name="steersman watchdog", daemon=True
        )
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._turned.set()
        assert self._thread is not None
        await asyncio.to_thread(self._thread.join)

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        while not self._stop.wait(self._threshold / 4):
            self._turned.clear()
            asked = loop.time()
            try:
                loop.call_soon_threadsafe(self._turned.set)
            except RuntimeError:
                return  # the loop is closed
            if self._turned.wait(self._threshold) or self._stop.is_set():
                continue
            task, stack = _task_name(loop), _stack(thread)
            self._report(Blocked(loop.time() - asked, task, stack))
            self._turned.wait()
            if not self._stop.is_set():
                _log.warning("the event loop turns again; %s blocked it for %.2f s", task, loop.time() - asked)


def _task_name(loop: asyncio.AbstractEventLoop) -> str:
    task = asyncio.current_task(loop)
    return f"task {task.get_name()!r}" if task else "a callback"


def _stack(thread: int) -> str:
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - Python's own way to look at another thread
    return "".join(traceback.format_stack(frame)) if frame else ""
