"""Growing delays between attempts.

Guarantees: a delay is never above `maximum` nor below `initial * (1 - jitter)`. It grows by `factor` up to the maximum
and stays there, however many attempts follow. Randomness comes only from the generator that the caller passes.
"""

from __future__ import annotations

import math
import random


class Backoff:
    """The delays between attempts of one operation.

    Without jitter the delays are `initial`, `initial * factor`, `initial * factor**2`, ... up to `maximum`. `jitter` is
    the random part of each delay: 0 is exact, 0.2 subtracts up to a fifth, 1 draws from the whole delay. Jitter only
    shortens, so `maximum` holds, and clients that failed together still spread out once they reach it.
    """

    __slots__ = ("_attempts", "_delay", "_factor", "_initial", "_jitter", "_maximum")

    def __init__(
        self, *, initial: float = 0.1, factor: float = 2.0, maximum: float = 30.0, jitter: float = 0.2
    ) -> None:
        if not (0 < initial <= maximum and math.isfinite(maximum)):
            raise ValueError(f"a backoff needs finite 0 < initial <= maximum (got {initial} and {maximum})")
        if not (factor >= 1 and math.isfinite(factor)):
            raise ValueError(f"a backoff's factor must be finite and at least 1 (got {factor})")
        if not 0 <= jitter <= 1:
            raise ValueError(f"a backoff's jitter must be between 0 and 1 (got {jitter})")
        self._initial = initial
        self._factor = factor
        self._maximum = maximum
        self._jitter = jitter
        self._delay = initial
        self._attempts = 0

    @property
    def attempts(self) -> int:
        """How many delays were returned since the last reset."""
        return self._attempts

    def next_delay(self, rng: random.Random) -> float:
        """Return the seconds to wait before the next attempt, and increase the following delay."""
        delay = self._delay
        # Multiplied step by step: a power of the attempt count would overflow in a loop that fails for days.
        self._delay = min(delay * self._factor, self._maximum)
        self._attempts += 1
        return delay * (1 - self._jitter * rng.random())

    def reset(self) -> None:
        """Start again from the initial delay: the last attempt succeeded."""
        self._delay = self._initial
        self._attempts = 0

    def __repr__(self) -> str:
        return f"<Backoff attempts={self._attempts} next<={self._delay:g}s maximum={self._maximum:g}s>"
