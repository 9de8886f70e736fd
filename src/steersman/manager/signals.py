"""The signals that ask a program to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def on_signals(call: Callable[[], None]) -> Generator[None]:
    """Call ``call`` on every SIGTERM and SIGINT for as long as the block lasts, where this thread may."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    try:
        for number in numbers:
            loop.add_signal_handler(number, call)
    except (NotImplementedError, RuntimeError, ValueError):
        yield  # not the main thread: whoever is there calls `stop`
        return
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
