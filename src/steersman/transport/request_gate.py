"""A check before every HTTP request that leaves this process.

For programs that must be unable to do something, whatever their code does: ``with gate(check):``. An exception of the
check stops the request before a connection is opened for it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

from steersman.wire import HttpRequest

#: Raises if a request must not be sent. Called in the sending thread.
Check: TypeAlias = Callable[[HttpRequest], None]

_checks: list[Check] = []


@contextmanager
def gate(check: Check) -> Generator[None]:
    """Check every request of every `HttpTransport`, for a block."""
    _checks.append(check)
    try:
        yield
    finally:
        _checks.remove(check)


def pass_gates(request: HttpRequest) -> None:
    """Call all checks."""
    for check in _checks:
        check(request)
