"""CEL expressions about a write: match conditions of webhooks, and admission policies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from steersman.apiserver.workers import LARGE
from steersman.cel import Budget, BudgetExceeded, CelError, CompiledExpression, Environment
from steersman.objects.field_problems import FieldProblem, invalid

#: The cost limits of the expressions for one write.
EXPRESSIONS_MAX: Final = 10_000_000
CONDITIONS_MAX: Final = EXPRESSIONS_MAX // 4
_STRUCTS: Final[dict[str, dict[str, Any]]] = {
    "kubernetes.GroupVersionKind": {"group": "string", "version": "string", "kind": "string"},
    "kubernetes.GroupVersionResource": {"group": "string", "version": "string", "resource": "string"},
    "kubernetes.UserInfo": {
        "username": "string",
        "uid": "string",
        "groups": "list(string)",
        "extra": "map(string, list(string))",
    },
    "kubernetes.AdmissionRequest": {
        "kind": "kubernetes.GroupVersionKind",
        "resource": "kubernetes.GroupVersionResource",
        "subResource": "string",
        "requestKind": "kubernetes.GroupVersionKind",
        "requestResource": "kubernetes.GroupVersionResource",
        "requestSubResource": "string",
        "name": "string",
        "namespace": "string",
        "operation": "string",
        "userInfo": "kubernetes.UserInfo",
        "dryRun": "bool",
        "options": "dyn",
    },
    "kubernetes.NamespaceSpec": {"finalizers": "list(string)"},
    "kubernetes.NamespaceStatus": {"conditions": "list(dyn)", "phase": "string"},
    "kubernetes.NamespaceMetadata": {
        "name": "string",
        "generateName": "string",
        "namespace": "string",
        "labels": "map(string, string)",
        "annotations": "map(string, string)",
        "UID": "string",
        "creationTimestamp": "timestamp",
        "deletionGracePeriodSeconds": "int",
        "deletionTimestamp": "timestamp",
        "generation": "int",
        "resourceVersion": "string",
        "finalizers": "list(string)",
    },
    "kubernetes.Namespace": {
        "metadata": "kubernetes.NamespaceMetadata",
        "spec": "kubernetes.NamespaceSpec",
        "status": "kubernetes.NamespaceStatus",
    },
}
#: The type of ``variables``, to which a policy adds its own fields.
VARIABLES: Final = "kubernetes.variables"
EXHAUSTED: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


_LOOP: Final = re.compile(r"\.\s*(all|exists|exists_one|existsOne|map|filter|transform\w+)\s*\(")


def counts_as(texts: Iterable[str], size: int) -> int:
    """The size that a write counts as for its expressions: large if they have loops, which may take long."""
    return max(size, LARGE) if any(map(_LOOP.search, texts)) else size


def new_environment(*, params: bool = False, variables: bool = False, patches: bool = False) -> Environment:
    """A new environment; ``variables`` allows a policy's own variables, ``patches`` expressions that create objects."""
    declared = {
        "object": "dyn",
        "oldObject": "dyn",
        "namespaceObject": "kubernetes.Namespace",
        "request": "kubernetes.AdmissionRequest",
    }
    declared |= {"params": "dyn"} if params else {}
    declared |= {"variables": VARIABLES} if variables else {}
    return Environment(declared, {**_STRUCTS, VARIABLES: {}}, patches=patches)


@cache
def conditions_environment(*, params: bool = False) -> Environment:
    """The environment of match conditions."""
    return new_environment(params=params)


def expression_problems(expression: CompiledExpression, path: str) -> list[FieldProblem]:
    """The problem of an expression that does not compile."""
    return [invalid(path, expression.text, expression.error)] if expression.error else []


def evaluated(environment: Environment, expression: CompiledExpression, values: dict[str, Any], budget: Budget) -> Any:
    """The value of an expression; a `CelError` has kube-apiserver's message."""
    if expression.program is None:
        return CelError(f"compilation error: {expression.error}")
    value = environment.run(expression, values, budget)
    if isinstance(value, CelError):
        return CelError(f"expression '{expression.text}' resulted in error: {value}")
    return value


class Conditions:
    """Match conditions, compiled once."""

    def __init__(self, expressions: list[str], *, params: bool = False) -> None:
        self._environment = conditions_environment(params=params)
        self._compiled = [self._environment.compiled(expression, "bool") for expression in expressions]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._compiled)

    def verdict(self, values: dict[str, Any]) -> tuple[bool, str]:
        """Whether all conditions hold, and the error if that cannot be decided."""
        budget = Budget(CONDITIONS_MAX)
        errors: list[str] = []
        try:
            for expression in self._compiled:
                value = evaluated(self._environment, expression, values, budget)
                if value is False:
                    return False, ""
                if isinstance(value, CelError):
                    errors.append(str(value))
        except BudgetExceeded:
            return False, EXHAUSTED
        distinct = list(dict.fromkeys(errors))
        return not errors, distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""
