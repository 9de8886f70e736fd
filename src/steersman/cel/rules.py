"""The rules of a whole schema: compiled, checked when a CRD is created, and applied to objects.

Guarantees
- `compile_rules` reports about expressions what kube-apiserver reports when a CRD is created.
- `Rules.problems` reports about an object what kube-apiserver reports; see `steersman.cel.verdicts`.
- Expressions are compiled once, on first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from steersman.cel.compiled_rule import CompiledRule
from steersman.cel.costs.sizes import MOST, plus
from steersman.cel.model import REQUEST_MAX, Shape, Structs
from steersman.cel.rule_node import RULES, RuleNode, has_rules
from steersman.cel.verdicts import Judgment, RuleVerdict
from steersman.golang import escape_html
from steersman.golang.regexp import one_budget
from steersman.objects.field_problems import FieldProblem, Printed, invalid, problem

Schema = Mapping[str, Any]
#: The limits on the estimates of one expression, and of all expressions of a schema.
EXPRESSION_ESTIMATE_MAX: Final = 10_000_000
SCHEMA_ESTIMATE_MAX: Final = 100_000_000
_HINT: Final = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
_SHARED: Final = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
_TOTAL: Final = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
_UNTYPED: Final = (
    "Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to "
    "convert structural schema to CEL declarations"
)


def rules_of(schema: Schema, *, resource: bool = True) -> Rules:
    """The rules of a schema, not compiled yet.

    `resource` is for the schema of a whole object, whose kind, apiVersion and name expressions can use.
    """
    return Rules(schema, resource=resource)


def compile_rules(schema: Schema, *, path: str = "", resource: bool = True) -> tuple[Rules, list[FieldProblem]]:
    """Compile all rules of a structural schema. Returns them with the problems that prevent the creation of a CRD."""
    rules = Rules(schema, resource=resource)
    costs = _Costs()
    problems: list[FieldProblem] = []
    if rules.root is not None:
        _Creation(costs, problems).node(rules.root, path, cardinality=1, uncorrelated="")
        problems += costs.problems(path)
    return rules, problems


class Rules:
    """The rules of a schema."""

    def __init__(self, schema: Schema, *, resource: bool = True) -> None:
        found = has_rules(schema)
        self.root: RuleNode | None = RuleNode(schema, Shape(schema, Structs(), resource=resource)) if found else None

    def __bool__(self) -> bool:
        return self.root is not None

    def problems(self, value: Any, old: Any = None, *, path: str = "") -> list[FieldProblem]:
        """The problems that the rules find in a new object, or in one that replaces another."""
        return self.verdict(value, old, path=path).problems

    def verdict(self, value: Any, old: Any = None, *, path: str = "") -> RuleVerdict:
        """The problems, and warnings about problems that existed before."""
        judgment = Judgment()
        if self.root is not None:
            with one_budget():
                judgment.judge(self.root, value, old, path)
        return RuleVerdict(judgment.problems, judgment.warnings)


class _Costs:
    """The total estimated cost of all expressions of a schema."""

    def __init__(self) -> None:
        self._total = 0
        self._dear: list[tuple[int, str]] = []

    def add(self, path: str, cost: int) -> None:
        """Add an expression. Cheap ones are never named."""
        self._total = plus(self._total, cost)
        if cost >= SCHEMA_ESTIMATE_MAX // 100:
            self._dear = sorted([*self._dear, (cost, path)], key=lambda one: -one[0])[:4]

    def problems(self, path: str) -> list[FieldProblem]:
        """The problem of the total, if it exceeds the limit."""
        if self._total <= SCHEMA_ESTIMATE_MAX:
            return []
        shared = [problem(where, "FieldValueForbidden", detail=_SHARED) for _, where in self._dear]
        return [
            *shared,
            problem(path, "FieldValueForbidden", detail=_exceeding(_TOTAL, self._total, SCHEMA_ESTIMATE_MAX)),
        ]


def _exceeding(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x" if factor <= 100.0 else "more than 100x"
    return f"{name} exceeds budget by factor of {shown} {_HINT}"


class _Creation:
    """The check of the expressions of a new CRD."""

    def __init__(self, costs: _Costs, problems: list[FieldProblem]) -> None:
        self._costs = costs
        self._problems = problems

    def node(self, node: RuleNode, path: str, *, cardinality: int | None, uncorrelated: str) -> None:
        """Check everything below a node, then the node."""
        below = _multiplied(cardinality, _elements(node.schema))
        if node.additional is not None:
            self.node(node.additional, f"{path}.additionalProperties", cardinality=below, uncorrelated=uncorrelated)
        for name, inner in sorted(node.properties.items()):
            self.node(inner, f"{path}.properties[{name}]", cardinality=below, uncorrelated=uncorrelated)
        if node.items is not None:
            lost = uncorrelated or ("" if node.schema.get("x-kubernetes-list-type") == "map" else path)
            self.node(node.items, f"{path}.items", cardinality=below, uncorrelated=lost)
        written: list[Schema] = node.schema.get(RULES) or []
        declared = node.shape.declared
        if declared is None:
            if written:
                self._problems.append(FieldProblem(f"{path}.{RULES}", _UNTYPED, cast("Any", "InternalError")))
            return
        for at, rule in enumerate(node.rules):
            times = REQUEST_MAX // (declared.smallest + 1) if cardinality is None else cardinality
            self._rule(rule, f"{path}.{RULES}[{at}]", times, uncorrelated)

    def _rule(self, rule: CompiledRule, path: str, times: int, uncorrelated: str) -> None:
        add = self._problems.append
        expression, message = rule.expression, rule.message
        cost = min(expression.cost * times, MOST)
        if cost > EXPRESSION_ESTIMATE_MAX:
            said = _exceeding("estimated rule cost", cost, EXPRESSION_ESTIMATE_MAX)
            add(problem(f"{path}.rule", "FieldValueForbidden", detail=said))
        self._costs.add(f"{path}.rule", cost)
        if expression.error:
            add(_invalid(f"{path}.rule", rule.rule, expression.error))
        if message is not None and message.error:
            add(_invalid(f"{path}.messageExpression", rule.rule, message.error))
        elif message is not None:
            if message.cost > EXPRESSION_ESTIMATE_MAX:
                said = _exceeding("estimated messageExpression cost", message.cost, EXPRESSION_ESTIMATE_MAX)
                add(problem(f"{path}.messageExpression", "FieldValueForbidden", detail=said))
            self._costs.add(f"{path}.messageExpression", message.cost)
        if expression.uses_old:
            if uncorrelated:
                said = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
                add(problem(f"{path}.rule", "FieldValueInvalid", rule.rule["rule"], said))
        elif rule.rule.get("optionalOldSelf") is not None:
            said = "may not be set if oldSelf is not used in rule"
            add(problem(f"{path}.optionalOldSelf", "FieldValueInvalid", rule.rule["optionalOldSelf"], said))


def _invalid(path: str, rule: Schema, detail: str) -> FieldProblem:
    """A problem with a rule, which is printed with the server's field names."""
    printed = msgspec.json.encode(
        {
            "Rule": rule.get("rule") or "",
            "Message": rule.get("message") or "",
            "MessageExpression": rule.get("messageExpression") or "",
            "Reason": rule.get("reason"),
            "FieldPath": rule.get("fieldPath") or "",
            "OptionalOldSelf": rule.get("optionalOldSelf"),
        }
    ).decode()
    return invalid(path, Printed(escape_html(printed)), detail)


def _elements(schema: Schema) -> int | None:
    """How often a schema below can occur; None if there is no limit."""
    match schema.get("type"):
        case "object" if schema.get("additionalProperties"):
            most = schema.get("maxProperties")
        case "array":
            most = schema.get("maxItems")
        case _:
            return 1
    return None if most is None else max(int(most), 0)


def _multiplied(cardinality: int | None, elements: int | None) -> int | None:
    if cardinality is None or elements is None:
        return None
    return min(cardinality * elements, MOST)
