"""Go's regular expressions: a parser with Go's messages, and matching in linear time.

A package of its own beside the surface of `steersman.golang`, because few programs match such expressions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.golang.regexp.expressions import (
    BudgetSpent as BudgetSpent,
    Expression as Expression,
    expression as expression,
    one_budget as one_budget,
)

# Imported on first use: most schemas have no pattern, and only simulations make texts.
if TYPE_CHECKING:
    from steersman.golang.regexp.parser import expression_problem as expression_problem
    from steersman.golang.regexp.sample_texts import matching_texts as matching_texts
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.golang.regexp.parser": ["expression_problem"],
            "steersman.golang.regexp.sample_texts": ["matching_texts"],
        },
    )
