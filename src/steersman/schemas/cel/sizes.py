"""Arithmetic of estimates: sizes from least to most, costs at most, all of them unsigned and never over the end."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MOST: Final = 2**64 - 1


def plus(one: int, two: int) -> int:
    """The sum, at the end at most."""
    return min(one + two, MOST)


def times(one: int, two: int) -> int:
    """The product, at the end at most."""
    return min(one * two, MOST)


def scaled(size: int, factor: float) -> int:
    """A size by a factor, rounded up."""
    number = float(size)
    if number > 0 and factor > 0 and number > MOST / factor:
        return MOST
    made = math.ceil(number * factor)
    return min(made, MOST)


class Size(NamedTuple):
    """How many elements or characters something has, from least to most."""

    least: int
    most: int

    def plus(self, other: Size) -> Size:
        """Both together."""
        return Size(plus(self.least, other.least), plus(self.most, other.most))

    def times(self, other: Size) -> Size:
        """One for each of the other."""
        return Size(times(self.least, other.least), times(self.most, other.most))

    def union(self, other: Size) -> Size:
        """Either."""
        return Size(min(self.least, other.least), max(self.most, other.most))


UNKNOWN: Final = Size(0, MOST)


def fixed(size: int) -> Size:
    """A size that is known."""
    return Size(size, size)
