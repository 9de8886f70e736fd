"""Wall time and randomness, bound to the running loop, or to an actor on it.

A loop passed to `bind` uses its own clock and its own seeded generator, so a simulation in virtual time repeats
exactly. On a bound loop, each `Actor` has its own generator, and a wall clock that may be skewed. An unbound loop, and code outside any loop (a worker thread, a module being imported), uses the machine's time
and the operating system's randomness.

Monotonic time is the running loop's `time()`, which `asyncio.sleep` and `asyncio.timeout` use; it may stop while the
machine is suspended. `boottime` does not stop: use it for time that other machines also measure.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from steersman.aio.actors import current_actor

# Kubernetes' alphabet for generated names: no vowels, so no words, and no characters that look alike.
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class WallClock(Protocol):
    """Provides the wall time of one loop."""

    def now(self) -> datetime:
        """Return the current time, with a time zone."""
        ...


@runtime_checkable
class BootClock(WallClock, Protocol):
    """A clock that also provides a time since a fixed moment, which may advance while the loop's time stands still."""

    def boottime(self) -> float:
        """Return seconds since a fixed moment."""
        ...


# Without such a clock, the monotonic one is said to run during sleep, as on macOS.
_BOOT_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class _MachineClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def boottime(self) -> float:
        return time.clock_gettime(_BOOT_CLOCK)


@dataclass(frozen=True, slots=True)
class _Binding:
    clock: WallClock
    generator: random.Random


# The system's generator has no state: forked processes and threads never repeat each other.
_MACHINE = _Binding(clock=_MachineClock(), generator=random.SystemRandom())

# Weak, so that a closed loop's binding is dropped; never iterated, so its order does not matter.
_bindings: WeakKeyDictionary[asyncio.AbstractEventLoop, _Binding] = WeakKeyDictionary()


def bind(loop: asyncio.AbstractEventLoop, *, clock: WallClock, seed: int) -> None:
    """Give `loop` its own wall clock and a generator seeded with `seed`; binding again resets both."""
    _bindings[loop] = _Binding(clock=clock, generator=random.Random(seed))


def unbind(loop: asyncio.AbstractEventLoop) -> None:
    """Return `loop` to the machine's time and randomness."""
    _bindings.pop(loop, None)


def is_bound() -> bool:
    """Whether the running loop has its own clock and generator, so that it must be repeatable."""
    return bool(_bindings) and asyncio.get_running_loop() in _bindings


def utc_now() -> datetime:
    """Return the wall time of the running loop or actor, in UTC."""
    moment = (binding := _current()).clock.now().astimezone(UTC)
    if binding is not _MACHINE and (actor := current_actor()) is not None and actor.skew:
        return moment + timedelta(seconds=actor.skew)
    return moment


def boottime() -> float:
    """Return seconds on a clock that never jumps and keeps running while the machine is suspended.

    On a bound loop it is the clock's own `boottime` if it has one (see `BootClock`), else the loop's `time()`.
    """
    clock = _current().clock
    return clock.boottime() if isinstance(clock, BootClock) else asyncio.get_running_loop().time()


def randomness() -> random.Random:
    """Return the generator of the running loop or actor."""
    return _generator()


def new_uid() -> str:
    """Return a new object UID: a random (version 4) UUID in lower case."""
    return str(uuid.UUID(int=_generator().getrandbits(128), version=4))


def name_suffix(length: int = 5) -> str:
    """Return `length` random characters from the alphabet Kubernetes uses for generated names."""
    return "".join(_generator().choices(_SUFFIX_ALPHABET, k=length))


def _generator() -> random.Random:
    binding = _current()
    if binding is not _MACHINE and (actor := current_actor()) is not None:
        return actor.generator
    return binding.generator


def _current() -> _Binding:
    if not _bindings:
        return _MACHINE
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return _MACHINE
    return _bindings.get(loop, _MACHINE)
