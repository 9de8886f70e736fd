"""Reports code that blocks the event loop, while it blocks.

Guarantees
- If the loop does not turn for ``threshold`` seconds, the watchdog reports the blocking stack once, while it blocks.
  The report names the reconcile (controller and key) or the task, and the line in the operator's own source.
- When the loop turns again, the watchdog logs how long it was blocked.
- It costs one thread wake-up and one turn of the loop every quarter of the threshold, and nothing when not entered.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any, Self

import msgspec

from steersman.telemetry import StackText
from steersman.telemetry.stacks import line_of, text_of, thread_stack

_log = logging.getLogger("steersman.controller")

#: The default threshold, in seconds.
BLOCKED_AFTER = 1.0

#: Names the reconcile of a task; empty if the task is not a reconcile.
TaskNames = Callable[[asyncio.Task[Any]], str]


def no_names(task: asyncio.Task[Any]) -> str:
    """An empty name: without controllers, no task is a reconcile."""
    del task
    return ""


class Blocked(msgspec.Struct, frozen=True):
    """A report that the loop does not turn."""

    seconds: float
    #: The reconcile, or the name of the task if it is not a reconcile.
    task: str
    stack: str
    #: The blocking line in the operator's own source.
    line: str = ""

    def __str__(self) -> str:
        return f"{self.sentences}\n{self.stack}"

    @property
    def sentences(self) -> str:
        """The report without the stack."""
        at = f" at {self.line}" if self.line else ""
        return (
            f"the event loop was blocked for {self.seconds:.2f} s by {self.task}{at}: nothing else could run. "
            "Await it, or move it out of the loop with asyncio.to_thread."
        )


def log_blocked(blocked: Blocked) -> None:
    """Log a report; the default of a watchdog."""
    _log.warning("%s%s", blocked.sentences, StackText(f"\n{blocked.stack}"), extra={"task_name": blocked.task})


class Watchdog:
    """Watches the running loop from a thread: ``async with Watchdog(threshold=0.2): ...``."""

    def __init__(
        self, *, threshold: float = 0.2, report: Callable[[Blocked], None] = log_blocked, names: TaskNames = no_names
    ) -> None:
        if not 0 < threshold < float("inf"):
            raise ValueError(f"threshold must be a number of seconds above 0 (got {threshold})")
        self._threshold = threshold
        self._report = report
        self._names = names
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

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        self._turned.set()
        assert self._thread is not None
        # It waits only for these two, but a report being written may take a moment.
        self._thread.join(timeout=1.0)

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
            task, stack = self._task_name(loop), thread_stack(thread)
            self._report(Blocked(loop.time() - asked, task, text_of(stack), line_of(stack)))
            self._turned.wait()
            if not self._stop.is_set():
                _log.warning("the event loop turns again; %s blocked it for %.2f s", task, loop.time() - asked)

    def _task_name(self, loop: asyncio.AbstractEventLoop) -> str:
        task = asyncio.current_task(loop)
        if task is None:
            return "a callback"
        return self._names(task) or f"task {task.get_name()!r}"
