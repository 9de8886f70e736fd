"""CEL: the rules of CRDs (``x-kubernetes-validations``), compiled and applied as by kube-apiserver 1.37. Pure.

Guarantees
- `compile_rules` reports what the server reports when a CRD is created, with its messages: syntax, types, literals,
  estimated cost, messages and transitions.
- `Rules.problems` returns the causes that the server returns for an object; `Rules.verdict` also returns the warnings.
- No dependency: parser, checker, estimates and evaluation are here.

What rules share with the rest of validation is here too: `formats` of strings, and the `correlation` of new values with
old ones.
"""

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.cel.correlation import (
    UNCORRELATED as UNCORRELATED,
    ItemsBefore as ItemsBefore,
    before_of as before_of,
    is_same as is_same,
)
from steersman.cel.field_names import escape as escape
from steersman.cel.formats import enforced_format as enforced_format, matches_format as matches_format

if TYPE_CHECKING:
    from steersman.cel.data.typed_data import (
        TypedList as TypedList,
        TypedObject as TypedObject,
        typed as typed,
        untyped as untyped,
    )
    from steersman.cel.environment import (
        Budget as Budget,
        BudgetExceeded as BudgetExceeded,
        CompiledExpression as CompiledExpression,
        Environment as Environment,
        LazyFields as LazyFields,
    )
    from steersman.cel.rule_node import has_rules as has_rules
    from steersman.cel.rules import Rules as Rules, compile_rules as compile_rules, rules_of as rules_of
    from steersman.cel.syntax.disjunctions import (
        CallArgument as CallArgument,
        NotDisjunction as NotDisjunction,
        disjoined_calls as disjoined_calls,
    )
    from steersman.cel.values import CelError as CelError, MadeObject as MadeObject
    from steersman.cel.verdicts import RuleVerdict as RuleVerdict
else:
    # Loaded on first use: few kinds have rules.
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.cel.syntax.disjunctions": ["CallArgument", "NotDisjunction", "disjoined_calls"],
            "steersman.cel.environment": [
                "Budget",
                "BudgetExceeded",
                "CompiledExpression",
                "Environment",
                "LazyFields",
            ],
            "steersman.cel.rule_node": ["has_rules"],
            "steersman.cel.rules": ["Rules", "compile_rules", "rules_of"],
            "steersman.cel.data.typed_data": ["TypedList", "TypedObject", "typed", "untyped"],
            "steersman.cel.values": ["CelError", "MadeObject"],
            "steersman.cel.verdicts": ["RuleVerdict"],
        },
    )

#: Programs import nothing from this room: its names are for other rooms.
__all__: list[str] = []
