"""One ValidatingAdmissionPolicy: its verdict on a write.

Guarantees
- If an expression fails, the write is denied, unless the policy ignores failures.
- The cost of all expressions is bounded.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from steersman.apiserver.policies.policy import Policy
from steersman.apiserver.registry.admission_expressions import EXHAUSTED, EXPRESSIONS_MAX, evaluated
from steersman.apiserver.registry.definition import Tree
from steersman.cel import Budget, BudgetExceeded, CelError, CompiledExpression

_MESSAGE_MAX: Final = 5 * 1024


class Denial(NamedTuple):
    """A failed validation of a policy: its index, message and reason."""

    number: int
    message: str
    reason: str = ""


class PolicyVerdict(NamedTuple):
    """The result of a policy for a write. ``errors`` deny the write, whatever the actions of the binding are."""

    denials: list[Denial]
    annotations: list[tuple[str, str]]
    errors: list[str]


_NOTHING: Final = PolicyVerdict([], [], [])


class _Validation(NamedTuple):
    expression: CompiledExpression
    message_expression: CompiledExpression | None
    message: str
    reason: str


class ValidatingPolicy(Policy):
    """A compiled policy."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        spec: Tree = tree.get("spec") or {}
        environment = self.environment
        self._validations = [
            _Validation(
                environment.compiled(validation["expression"], "bool"),
                environment.compiled(validation["messageExpression"], "string")
                if validation.get("messageExpression")
                else None,
                (validation.get("message") or "").strip(),
                validation.get("reason") or "Invalid",
            )
            for validation in spec.get("validations") or ()
        ]
        self._annotations: list[tuple[str, CompiledExpression]] = [
            (annotation["key"], environment.compiled(annotation["valueExpression"].strip(), "string", "null_type"))
            for annotation in spec.get("auditAnnotations") or ()
        ]

    def verdict(self, values: dict[str, Any]) -> PolicyVerdict:
        """Evaluate the policy for a write with these variables."""
        holds, problem = self.conditions.verdict(values)
        if problem:
            return self._failed(problem)
        if not holds:
            return _NOTHING
        budget = Budget(EXPRESSIONS_MAX)
        try:
            values = self.with_variables(values, budget)
            results = [evaluated(self.environment, each.expression, values, budget) for each in self._validations]
        except BudgetExceeded:
            return self._failed(EXHAUSTED)
        denials: list[Denial] = []
        for index, (validation, result) in enumerate(zip(self._validations, results, strict=True)):
            if isinstance(result, CelError):
                denials += [] if self.ignores_failures else [Denial(index, str(result))]
            elif result is not True:
                denials.append(Denial(index, self._message(validation, values, budget), validation.reason))
        annotations, errors = self._noted(values)
        return PolicyVerdict(denials, annotations, errors)

    def _failed(self, why: str) -> PolicyVerdict:
        return _NOTHING if self.ignores_failures else PolicyVerdict([Denial(0, why)], [], [])

    def _message(self, validation: _Validation, values: dict[str, Any], budget: Budget) -> str:
        message = ""
        if validation.message_expression is not None:
            try:
                result = evaluated(self.environment, validation.message_expression, values, budget)
            except BudgetExceeded:
                return f"failed messageExpression: {EXHAUSTED}"
            message = result.strip() if isinstance(result, str) else ""
            if len(message.encode()) > _MESSAGE_MAX or "\n" in message:
                message = ""
        return message or validation.message or f"failed expression: {validation.expression.text.strip()}"

    def _noted(self, values: dict[str, Any]) -> tuple[list[tuple[str, str]], list[str]]:
        """The audit annotations, and the errors of their expressions."""
        found: list[tuple[str, str]] = []
        errors: list[str] = []
        budget = Budget(EXPRESSIONS_MAX)
        for key, expression in self._annotations:
            try:
                value = evaluated(self.environment, expression, values, budget)
            except BudgetExceeded:
                value = CelError(EXHAUSTED)
            if isinstance(value, CelError):
                errors += [] if self.ignores_failures else [str(value)]
            elif isinstance(value, str) and value.strip():
                found.append((key, value.strip()))
        return found, errors
