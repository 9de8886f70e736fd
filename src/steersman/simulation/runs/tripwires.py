"""Tripwires: which lines of a program ask the machine for time, random numbers or a socket.

Such a call makes a run depend on the machine, so two runs of one schedule can differ. `datetime.now` cannot be replaced.
"""

from __future__ import annotations

import os
import random
import secrets
import socket
import sys
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_WIRES: tuple[tuple[Any, str], ...] = (
    (time, "time"),
    (time, "time_ns"),
    (time, "monotonic"),
    (time, "perf_counter"),
    (time, "sleep"),
    (random, "random"),
    (random, "randint"),
    (random, "choice"),
    (random, "uniform"),
    (random, "getrandbits"),
    (uuid, "uuid1"),
    (uuid, "uuid4"),
    (os, "urandom"),
    (secrets, "token_hex"),
    (secrets, "token_urlsafe"),
    (secrets, "token_bytes"),
    (socket.socket, "__init__"),
    (socket, "create_connection"),
)
_OURS = str(Path(__file__).resolve().parent.parent)
_LIBRARY = str(Path(os.__file__).resolve().parent)


@contextmanager
def wired() -> Generator[list[str]]:
    """Collect the calls of a block, each as the function and the line that called it."""
    calls: list[str] = []
    with ExitStack() as stack:
        for module, name in _WIRES:
            real = getattr(module, name)
            setattr(module, name, _wire(real, f"{module.__name__}.{name}", calls))
            stack.callback(setattr, module, name, real)
        yield calls


def _wire(real: Callable[..., Any], name: str, calls: list[str]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        frame = sys._getframe(1)  # noqa: SLF001 - who called
        path = frame.f_code.co_filename
        if not path.startswith(_OURS) and ("site-packages" in path or not path.startswith(_LIBRARY)):
            words = f"{name} at {path}:{frame.f_lineno}"
            if words not in calls:
                calls.append(words)
        return real(*args, **options)

    return call
