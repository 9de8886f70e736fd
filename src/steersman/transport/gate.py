"""A check before everything that leaves this process over HTTP, whoever sends it.

For programs that must be unable to do something, however they are written: ``with gate(check):``. What the check raises
stops the request before a connection is opened for it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

from steersman.wire import Request

#: Raises if a request must not be sent. It is called by whichever thread sends.
Check: TypeAlias = Callable[[Request], None]

_checks: list[Check] = []


@contextmanager
def gate(check: Check) -> Generator[None]:
    """Have every request of every `HttpTransport` checked, for a block."""
    _checks.append(check)
    try:
        yield
    finally:
        _checks.remove(check)


def pass_gates(request: Request) -> None:
    """Ask all checks."""
    for check in _checks:
        check(request)
