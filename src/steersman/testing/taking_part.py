"""What takes part in a test: operators and other controllers that have work to finish before a test may look.

Guarantees: whoever takes part is known from the beginning of its block to its end, on the loop that it runs on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from steersman.cache import Informer
from steersman.controller import Controller, KeyRecord
from steersman.objects import Key


class Participant(Protocol):
    """Something with controllers."""

    @property
    def controllers(self) -> Iterable[Controller]:
        """Those that run now."""
        ...

    @property
    def informers(self) -> Iterable[Informer[Any]]:
        """What they read from."""
        ...

    @property
    def runs(self) -> Sequence[tuple[str, KeyRecord]]:
        """Every reconcile that ended, oldest first; empty if nobody kept them."""
        ...

    def runs_of(self, key: Key) -> Iterable[tuple[str, KeyRecord]]:
        """The reconciles of a key, with the names of their controllers, oldest first."""
        ...

    def check(self) -> None:
        """Raise if it is not worth waiting for, because it is broken."""
        ...


_here: list[tuple[asyncio.AbstractEventLoop, Participant]] = []


@contextmanager
def taking_part(participant: Participant) -> Generator[None]:
    """Be known for a block."""
    entry = (asyncio.get_running_loop(), participant)
    _here.append(entry)
    try:
        yield
    finally:
        _here.remove(entry)


def participants() -> list[Participant]:
    """Those on the running loop, in the order in which they came."""
    loop = asyncio.get_running_loop()
    return [participant for where, participant in _here if where is loop]
