"""Saturating unsigned arithmetic of estimates: sizes from least to most, and maximum costs."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MOST: Final = 2**64 - 1


def plus(one: int, two: int) -> int:
    """The saturated sum."""
    return min(one + two, MOST)


def times(one: int, two: int) -> int:
    """The saturated product."""
    return min(one * two, MOST)


def scaled(size: int, factor: float) -> int:
    """A size times a factor, rounded up."""
    number = float(size)
    if number > 0 and factor > 0 and number > MOST / factor:
        return MOST
    made = math.ceil(number * factor)
    return min(made, MOST)


class Size(NamedTuple):
    """The number of elements or characters, from least to most."""

    least: int
    most: int

    def plus(self, other: Size) -> Size:
        """The sum of both sizes."""
        return Size(plus(self.least, other.least), plus(self.most, other.most))

    def times(self, other: Size) -> Size:
        """The product of both sizes."""
        return Size(times(self.least, other.least), times(self.most, other.most))

    def union(self, other: Size) -> Size:
        """A size that covers both."""
        return Size(min(self.least, other.least), max(self.most, other.most))


UNKNOWN: Final = Size(0, MOST)


def fixed(size: int) -> Size:
    """A known size."""
    return Size(size, size)
