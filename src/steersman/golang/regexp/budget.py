"""The budget for matching regular expressions: all work on an expression is charged to it, so matching time is bounded."""

from __future__ import annotations

from typing import Final

#: Limit for all matches of one object, in instructions: a few tenths of a second.
INSTRUCTIONS_MAX: Final = 500_000
#: The same for RE2, which does not count: instructions times characters, its worst case.
RE2_MAX: Final = 10_000_000


class BudgetSpent(Exception):
    """The expressions of one object exceed their budget."""


class Budget:
    """The remaining budget for matching the expressions of one object."""

    __slots__ = ("instructions", "re2")

    def __init__(self) -> None:
        self.instructions = INSTRUCTIONS_MAX
        self.re2 = RE2_MAX

    def spend(self, instructions: int) -> None:
        """Charge instructions. Raises `BudgetSpent` if too few are left."""
        self.instructions -= instructions
        if self.instructions < 0:
            raise BudgetSpent("the patterns cost too much to match: shorten the text, or simplify its pattern")
