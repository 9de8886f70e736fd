"""A quantity of many digits is read in one pass."""

from __future__ import annotations

import timeit

from steersman.apiserver.go_types import scalars


def test_a_long_quantity_is_no_longer_work_than_its_length():
    """The server answers no one else while it reads a text: ten times the text must not be a hundred times the work."""
    short, long = (
        min(timeit.repeat(lambda text="0" * size + "!": scalars._QUANTITY.fullmatch(text), number=1, repeat=3))
        for size in (2_000, 20_000)
    )
    assert long < 40 * max(short, 0.002)
