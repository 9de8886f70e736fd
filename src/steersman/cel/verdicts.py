"""Apply rules to an object.

Guarantees
- Problems come in kube-apiserver's order: those of a node before those below it, in the order of the rules, and fields
  in the order of the object.
- A rule with ``oldSelf`` runs where there is an old value to compare with; with ``optionalOldSelf`` it always runs.
- A problem that an update leaves unchanged is a warning (ratcheting), unless the rule uses ``oldSelf``.
- The cost of one expression, and of all expressions for an object, is limited. Exceeding a limit ends the validation.
- Null is never validated; the rules of the enclosing value can test for it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import msgspec

from steersman.cel.compiled_rule import CompiledRule
from steersman.cel.correlation import UNCORRELATED, ItemsBefore, before_of, is_same
from steersman.cel.data.schema_data import seen
from steersman.cel.rule_node import RuleNode
from steersman.cel.values import NOTHING, CelError, CostExceeded, Maybe
from steersman.golang import quoted
from steersman.objects.field_problems import FieldProblem, problem

#: The cost limit of all rules for one object.
OBJECT_MAX: Final = 10_000_000
_MESSAGE_BYTES_MAX: Final = 5 * 1024
_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
_EXHAUSTED: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_REASONS: Final = frozenset({"FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"})


class RuleVerdict(NamedTuple):
    """The result of applying rules to an object."""

    problems: list[FieldProblem]
    warnings: list[str]


class _Over(Exception):
    """Raised when no further rule may run."""


class _Before(NamedTuple):
    """The old value of a place, or of the nearest correlated place above it."""

    here: tuple[Any, Any, Any] | None
    above: tuple[Any, Any, Any] | None

    def is_same(self) -> bool:
        """Whether nothing changed."""
        known = self.here or self.above
        return known is not None and is_same(*known)

    def entry(self, name: str, schema: Any) -> _Before:
        """The old value of a field or of a map entry."""
        if self.here is None:
            return self
        if self.above is None and name in {"apiVersion", "kind"}:
            return _NO_BEFORE
        whole, value, old = self.here
        was = before_of(whole, cast("dict[str, Any]", value), old, name) if isinstance(value, dict) else UNCORRELATED
        return _Before(None if was is UNCORRELATED else (schema, value[name], was), self.here)

    def item(self, item: Any, was: Any, schema: Any) -> _Before:
        """The old value of a list item."""
        if self.here is None:
            return self
        return _Before(None if was is UNCORRELATED else (schema, item, was), self.here)


_NO_BEFORE: Final = _Before(None, None)


class Judgment:
    """The validation of one object."""

    def __init__(self) -> None:
        self.problems: list[FieldProblem] = []
        self.warnings: list[str] = []
        self._left = OBJECT_MAX

    def judge(self, node: RuleNode, value: Any, old: Any, path: str) -> None:
        """Apply all rules at a node and below."""
        before = _NO_BEFORE if old is None else _Before((node.shape.schema, value, old), None)
        try:
            self._node(node, value, old, path, before)
        except _Over:
            return

    def _node(self, node: RuleNode, value: Any, old: Any, path: str, before: _Before) -> None:
        if value is None:
            return
        if node.rules:
            self._rules(node, value, old, path, before)
        if isinstance(value, list):
            self._items(node, cast("list[Any]", value), old, path, before)
        elif isinstance(value, dict):
            self._entries(node, cast("dict[str, Any]", value), old, path, before)

    def _entries(self, node: RuleNode, value: dict[str, Any], old: Any, path: str, before: _Before) -> None:
        was = cast("dict[str, Any]", old) if isinstance(old, dict) else {}
        if node.additional is not None:
            schema = node.additional.shape.schema
            for key, inner in value.items():
                self._node(node.additional, inner, was.get(key), f"{path}[{key}]", before.entry(key, schema))
        if node.properties:
            for key, inner in value.items():
                below = node.properties.get(key)
                if below is not None:
                    joined = f"{path}.{key}" if path else key
                    self._node(below, inner, was.get(key), joined, before.entry(key, below.shape.schema))

    def _items(self, node: RuleNode, value: list[Any], old: Any, path: str, before: _Before) -> None:
        if node.items is None:
            return
        items = ItemsBefore(node.shape.schema, old)
        schema = node.items.shape.schema
        for at, item in enumerate(value):
            was = items.of(item)
            known = None if was is UNCORRELATED else was
            self._node(node.items, item, known, f"{path}[{at}]", before.item(item, was, schema))

    def _rules(self, node: RuleNode, value: Any, old: Any, path: str, before: _Before) -> None:
        if self._left <= 0:
            self._invalid(node, path, _EXHAUSTED)
            raise _Over
        this = _seen(value, node)
        was = _seen(old, node) if old is not None else None
        for rule in node.rules:
            if rule.expression.error:
                self._invalid(node, path, f"rule compile error: {rule.expression.error}")
                continue
            if rule.expression.program is None:
                continue
            if rule.expression.uses_old and old is None and not rule.optional_old:
                continue
            before_value = (NOTHING if old is None else Maybe(was)) if rule.optional_old else was
            self._rule(node, rule, (this, before_value), value, path, before)

    def _invalid(self, node: RuleNode, path: str, detail: str) -> None:
        kind = node.shape.schema.get("type") or ""
        self.problems.append(problem(path or "<nil>", "FieldValueInvalid", kind, detail))

    def _rule(
        self, node: RuleNode, rule: CompiledRule, given: tuple[Any, Any], value: Any, path: str, before: _Before
    ) -> None:
        assert rule.expression.program is not None
        try:
            result, cost = rule.expression.program.run(*given)
        except CostExceeded as exceeded:
            result, cost = None, exceeded.args[0]
            if cost <= self._left:
                said = f"'{_EXCEEDED}': no further validation rules will be run due to call cost exceeds limit for rule: {rule.said}"
                self._invalid(node, path, said)
                raise _Over from None
        if cost > self._left:
            self._invalid(node, path, _EXHAUSTED)
            raise _Over
        self._left -= cost
        if isinstance(result, CelError):
            self._failed(node, rule, path, str(result))
        elif result is not True:
            self._refused(node, rule, given, value, path, before)

    def _failed(self, node: RuleNode, rule: CompiledRule, path: str, error: str) -> None:
        """Record that the expression failed."""
        if error.startswith("no such overload"):
            said = f"'{error}': call arguments did not match a supported operator, function or macro signature for rule: {rule.said}"
        else:
            said = f"{error} evaluating rule: {rule.said}"
        self._invalid(node, path, said)

    def _refused(
        self, node: RuleNode, rule: CompiledRule, given: tuple[Any, Any], value: Any, path: str, before: _Before
    ) -> None:
        """Record that the rule does not hold."""
        where = (f"{path}.{rule.field_path}" if path else rule.field_path) if rule.field_path else path
        kind = node.shape.schema.get("type")
        ratcheted = not rule.expression.uses_old and before.is_same()
        detail = self._message(rule, given)
        if isinstance(detail, _Stop):
            self._add(problem(where or "<nil>", "FieldValueInvalid", kind or "", detail.said), ratcheted=ratcheted)
            raise _Over
        if detail is None:
            detail = (rule.rule.get("message") or "").strip() or f"failed rule: {rule.said}"
        self._add(_worded(rule, where or "<nil>", kind, value, detail), ratcheted=ratcheted)

    def _add(self, found: FieldProblem, *, ratcheted: bool) -> None:
        if ratcheted:
            self.warnings.append(str(found))
        else:
            self.problems.append(found)

    def _message(self, rule: CompiledRule, given: tuple[Any, Any]) -> str | _Stop | None:  # noqa: PLR0911 - one answer for each kind
        """The result of the rule's message expression; None if it has none."""
        if rule.message is None or rule.message.program is None:
            return None
        try:
            result, cost = rule.message.program.run(*given)
        except CostExceeded as exceeded:
            if exceeded.args[0] > self._left:
                return _Stop(_OUT_OF_COST)
            expression = quoted(rule.rule["messageExpression"])
            return _Stop(
                f"no further validation rules will be run due to call cost exceeds limit for messageExpression: {expression}"
            )
        if cost > self._left:
            return _Stop(_OUT_OF_COST)
        self._left -= cost
        if not isinstance(result, str):
            return None
        said = result.strip()
        if not said or "\n" in said or len(said.encode()) > _MESSAGE_BYTES_MAX:
            return None
        return said


_OUT_OF_COST: Final = (
    "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
)


class _Stop(msgspec.Struct, frozen=True):
    """A message that ends the validation."""

    said: str


def _seen(value: Any, node: RuleNode) -> Any:
    """The value of a variable, or the error in its place."""
    try:
        return seen(value, node.shape)
    except CelError as error:
        return error


def _worded(rule: CompiledRule, where: str, kind: Any, value: Any, detail: str) -> FieldProblem:
    reason: Any = rule.rule.get("reason")
    if reason not in _REASONS:
        reason = "FieldValueInvalid"
    if reason in {"FieldValueForbidden", "FieldValueRequired"}:
        return problem(where, reason, detail=detail)
    if kind in {"object", "array"}:
        # Messages do not print objects: they would be longer than the message.
        words = "Duplicate value" if reason == "FieldValueDuplicate" else f"Invalid value: {detail}"
        return FieldProblem(where, words, reason)
    return problem(where, reason, value, "" if reason == "FieldValueDuplicate" else detail)
