"""Go's regular expressions, for patterns and rules from CRDs.

Guarantees
- An expression matches what Go's regexp package matches, and fails with its messages.
- Matching takes linear time in the text, bounded by a budget: beyond it, `BudgetSpent` is raised.
- Verdicts are the same with and without google-re2; only the charged work differs.
- The parser and the machines are imported for the first expression: most schemas have no pattern.

The reasons are in designs/regular-expressions.md.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Final

from steersman.golang.regexp.budget import Budget, BudgetSpent

if TYPE_CHECKING:
    from steersman.golang.regexp.linear_expression import LinearExpression
    from steersman.golang.regexp.re2 import Re2Expression

__all__ = ["BudgetSpent", "Expression", "expression", "one_budget"]

#: How many compiled expressions are kept, and their total size in instructions and characters.
_KEPT_MAX: Final = 512
_SIZE_MAX: Final = 400_000
#: The fixed cost of compiling an expression, in addition to its length and size.
_COMPILING: Final = 250

_budget: ContextVar[Budget | None] = ContextVar("steersman_expression_budget", default=None)


@contextmanager
def one_budget() -> Generator[None]:
    """Let all matches inside the block share one budget, for one object. Without it, each match has its own."""
    if _budget.get() is not None:
        yield
        return
    token = _budget.set(Budget())
    try:
        yield
    finally:
        _budget.reset(token)


class Expression:
    """A regular expression of Go. Raises ValueError with Go's message if it is invalid."""

    def __init__(self, text: str) -> None:
        from steersman.golang.regexp.parser import parsed  # noqa: PLC0415 - see the module's guarantees

        self._root = parsed(text)
        #: Its approximate memory use.
        self.size = self._root.size + len(text)

    @cached_property
    def _re2(self) -> Re2Expression | None:
        from steersman.golang.regexp.re2 import re2_expression  # noqa: PLC0415 - as above

        return re2_expression(self._root)

    @cached_property
    def _linear(self) -> LinearExpression:
        from steersman.golang.regexp.linear_expression import LinearExpression  # noqa: PLC0415 - as above

        return LinearExpression(self._root)

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere in a text. Raises `BudgetSpent`."""
        budget = _budget.get() or Budget()
        re2 = self._re2
        if re2 is not None:
            worst = re2.size * (len(text) + 16)
            if worst <= budget.re2:
                budget.re2 -= worst
                try:
                    return re2.matches(text)
                except UnicodeEncodeError:
                    pass
        return self._linear.matches(text, budget)

    def find(self, text: str) -> str:
        """The first match; empty if there is none."""
        span = self._linear.find(text, _budget.get() or Budget())
        return text[span[0] : span[1]] if span is not None else ""

    def find_all(self, text: str, most: int = -1) -> list[str]:
        """All matches that do not overlap, at most ``most``."""
        return self._linear.find_all(text, _budget.get() or Budget(), most)


_kept: OrderedDict[str, Expression] = OrderedDict()
_kept_size = 0


def expression(text: str, *, charged: bool = True) -> Expression:
    """The expression, cached or compiled. Raises ValueError with Go's message if it is invalid.

    Compiling is charged to the budget, except if ``charged`` is False: for the patterns of a schema, which is read once.
    """
    global _kept_size  # noqa: PLW0603 - one bound for all that is kept
    found = _kept.get(text)
    if found is not None:
        # Another thread may have just dropped it.
        with suppress(KeyError):
            _kept.move_to_end(text)
        return found
    budget = (_budget.get() or Budget()) if charged else None
    if budget is not None:
        budget.spend(_COMPILING + len(text))
    made = Expression(text)
    if budget is not None:
        budget.spend(made.size)
    _kept[text] = made
    _kept_size += made.size
    while len(_kept) > _KEPT_MAX or (_kept_size > _SIZE_MAX and len(_kept) > 1):
        _, dropped = _kept.popitem(last=False)
        _kept_size -= dropped.size
    return made
