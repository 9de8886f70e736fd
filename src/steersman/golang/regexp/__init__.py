"""Go's regular expressions: a parser with Go's messages, and matching in linear time.

A package of its own beside the surface of `steersman.golang`, because few programs match such expressions.
"""

from steersman.golang.regexp.expression import BudgetSpent, Expression, expression, one_budget
from steersman.golang.regexp.parser import expression_problem

__all__ = ["BudgetSpent", "Expression", "expression", "expression_problem", "one_budget"]
