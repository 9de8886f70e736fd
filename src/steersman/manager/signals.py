"""The signals that stop a process, and the forced exit of a process that does not stop.

Guarantees
- Every SIGTERM and SIGINT calls each manager of the process on its event loop. Signals are noticed even while Python
  code blocks the loop.
- A process that does not end by itself exits with code 1: after the grace period plus `LAST_SECONDS`, `LAST_SECONDS`
  after the second signal, and at once on the third. Neither a blocked loop nor a reconcile that swallows its
  cancellation prevents that. The log names what kept the process running.
- The program's previous handlers are restored when the last manager ends. They are also restored in a forked child: a
  worker process ends when it gets SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

#: Seconds that cancelled work has to end.
LAST_SECONDS = 5.0

#: Seconds for a last report: a log whose reader hangs must not keep the process alive.
_REPORT_SECONDS = 2.0

_NUMBERS = (signal.SIGTERM, signal.SIGINT)

#: Called by the process's handler, in the order of registration; a process has one handler for each signal.
_listeners: list[Callable[[], None]] = []
_previous: dict[signal.Signals, Any] = {}


@contextmanager
def on_signals(call: Callable[[], None], *, grace: float, report: Callable[[str], None]) -> Generator[None]:
    """Call ``call`` on the loop for every SIGTERM and SIGINT, and end the process if the block does not end in time.

    Another thread calls ``report`` with the reason before the process exits. Outside the main thread this does
    nothing: the embedding program calls `Manager.stop` itself.
    """
    loop = asyncio.get_running_loop()
    guard = _Guard(loop, grace, report)

    def hear() -> None:
        guard.hear()
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(call)

    if not _listen(hear):
        yield
        return
    try:
        with guard:
            yield
    finally:
        _unlisten(hear)


def end_process(why: str, report: Callable[[str], None]) -> None:
    """Exit this process now with code 1. ``report`` has a moment to log why."""
    reporting = threading.Thread(target=report, args=(why,), name="steersman: last report", daemon=True)
    reporting.start()
    reporting.join(_REPORT_SECONDS)
    os._exit(1)


def end_process_after(seconds: float, why: str, report: Callable[[str], None]) -> None:
    """Exit this process if it is still running after this many seconds."""

    def watch() -> None:
        threading.Event().wait(seconds)
        end_process(why, report)

    threading.Thread(target=watch, name="steersman: exit guard", daemon=True).start()


class _Guard:
    """A thread that ends the process when its time is over. It needs neither the loop nor the main thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, grace: float, report: Callable[[str], None]) -> None:
        self._loop = loop
        self._grace = grace
        self._report = report
        # The only queue that a signal handler may use at any moment.
        self._heard: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._watch, name="steersman: exit guard", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *failure: object) -> None:
        self._heard.put(False)
        self._thread.join(1.0)

    def hear(self) -> None:
        """Count a signal."""
        self._heard.put(True)

    def _watch(self) -> None:
        count, ends, why = 0, None, ""
        while True:
            try:
                left = None if ends is None else max(0.0, ends - self._loop.time())
                if not self._heard.get(timeout=left):
                    return
            except Empty:
                end_process(why, self._report)
            count += 1
            allowed = self._grace + LAST_SECONDS if count == 1 else LAST_SECONDS if count == 2 else 0.0
            ends = min(self._loop.time() + allowed, ends if ends is not None else float("inf"))
            if count == 1:
                why = f"{allowed:g} s after the signal to stop, including its grace period of {self._grace:g} s"
            else:
                why = f"{allowed:g} s after signal number {count}"


def _listen(hear: Callable[[], None]) -> bool:
    if threading.current_thread() is not threading.main_thread():
        return False
    _listeners.append(hear)
    if not _previous:
        for number in _NUMBERS:
            _previous[number] = signal.signal(number, _handle)
    return True


def _unlisten(hear: Callable[[], None]) -> None:
    _listeners.remove(hear)
    if not _listeners:
        _restore()


def _forked() -> None:
    """Restore the signal handlers in a forked child: it has neither the loop nor the thread that handle them here."""
    if _listeners and threading.current_thread() is threading.main_thread():
        _listeners.clear()
        _restore()


os.register_at_fork(after_in_child=_forked)


def _restore() -> None:
    for number, handler in _previous.items():
        # Keep a handler that the program has set meanwhile.
        if signal.getsignal(number) is _handle:
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
    _previous.clear()


def _handle(number: int, frame: FrameType | None) -> None:
    """Handle a signal, in the main thread, between two instructions of the running code."""
    del number, frame
    for hear in tuple(_listeners):
        hear()
