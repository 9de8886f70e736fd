"""The signals that end a long-running command."""

from __future__ import annotations

import asyncio
import signal


class StopSignals:
    """Sets an event on the first signal, and cancels the current task on the second one.

    SIGTERM and Ctrl-C count. With ``hangup``, a closed terminal sets the event too.
    """

    def __init__(self, stopping: asyncio.Event, *, hangup: bool = False) -> None:
        self._stopping = stopping
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        #: The SIGTERM or SIGINT that set the event; None if another cause did.
        self.first: signal.Signals | None = None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop, number)
        # nohup ignores SIGHUP: keep it so.
        if hangup and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, stopping.set)

    def stop(self, number: signal.Signals | None = None) -> None:
        """Act as a signal does, for a program that reads keys: pass SIGINT for Ctrl-C, and None for any other key."""
        if self._stopping.is_set():
            self._task.cancel()
        else:
            self.first = number
            self._stopping.set()
