"""The participants of a test: operators and other controllers with work to finish before a test may assert.

Guarantee: a participant is registered from the beginning of its block to its end, on its own loop.
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
        """The running controllers."""
        ...

    @property
    def informers(self) -> Iterable[Informer[Any]]:
        """The caches they read from."""
        ...

    @property
    def runs(self) -> Sequence[tuple[str, KeyRecord]]:
        """Every finished reconcile, oldest first; empty if not recorded."""
        ...

    def runs_of(self, key: Key) -> Iterable[tuple[str, KeyRecord]]:
        """The reconciles of a key, with the names of their controllers, oldest first."""
        ...

    def check(self) -> None:
        """Raise if it is broken, and not worth waiting for."""
        ...


_here: list[tuple[asyncio.AbstractEventLoop, Participant]] = []


@contextmanager
def participation(participant: Participant) -> Generator[None]:
    """Register a participant for a block."""
    entry = (asyncio.get_running_loop(), participant)
    _here.append(entry)
    try:
        yield
    finally:
        _here.remove(entry)


def participants() -> list[Participant]:
    """The participants on the running loop, in order of registration."""
    loop = asyncio.get_running_loop()
    return [participant for where, participant in _here if where is loop]


def running_controllers() -> list[Controller]:
    """The controllers of all participants on the running loop."""
    return [controller for participant in participants() for controller in participant.controllers]
