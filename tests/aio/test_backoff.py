from __future__ import annotations

import random  # noqa: TID251 - the generator that a backoff is given

import pytest
from hypothesis import given, strategies as st

from steersman.aio import Backoff


def test_delays_grow_to_the_maximum_and_start_again_after_a_reset() -> None:
    """Without jitter the sequence is exact."""
    backoff = Backoff(initial=1, factor=2, maximum=5, jitter=0)
    rng = random.Random(1)
    assert [backoff.next_delay(rng) for _ in range(5)] == [1, 2, 4, 5, 5]
    assert backoff.attempts == 5
    backoff.reset()
    assert backoff.attempts == 0
    assert backoff.next_delay(rng) == 1


@given(
    initial=st.floats(0.001, 10),
    factor=st.floats(1, 100),
    growth=st.floats(1, 1000),
    jitter=st.floats(0, 1),
    seed=st.integers(),
)
def test_delays_stay_within_their_bounds(initial: float, factor: float, growth: float, jitter: float, seed: int):
    """No delay is above the maximum nor below the jittered initial one, however many attempts are made."""
    backoff = Backoff(initial=initial, factor=factor, maximum=initial * growth, jitter=jitter)
    rng = random.Random(seed)
    for _ in range(400):
        assert initial * (1 - jitter) <= backoff.next_delay(rng) <= initial * growth


def test_jitter_spreads_delays_also_at_the_maximum() -> None:
    """Clients that all reached the maximum do not come back at the same moment."""
    rng = random.Random(1)
    backoff = Backoff(initial=1, maximum=1, jitter=0.5)
    delays = {backoff.next_delay(rng) for _ in range(20)}
    assert len(delays) == 20
    assert max(delays) - min(delays) > 0.2


def test_the_same_generator_gives_the_same_delays() -> None:
    """Chance comes only from the generator passed in."""
    runs = [[Backoff().next_delay(rng) for _ in range(5)] for rng in (random.Random(4), random.Random(4))]
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    "options",
    [
        {"initial": 0},
        {"initial": 2, "maximum": 1},
        {"maximum": float("inf")},
        {"factor": 0.5},
        {"factor": float("nan")},
        {"jitter": -0.1},
        {"jitter": 1.1},
    ],
)
def test_impossible_options_are_refused(options: dict[str, float]) -> None:
    """A backoff that could busy-loop or never come back cannot be made."""
    with pytest.raises(ValueError, match="a backoff"):
        Backoff(**options)
