"""The common part of admission policies: constraints, match conditions and variables.

Guarantee: an evaluation computes each variable at most once, on first use.
"""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.apiserver.policies.match_resources import MatchResources
from steersman.apiserver.registry.admission_expressions import VARIABLES, Conditions, counts_as, new_environment
from steersman.apiserver.registry.definition import Tree
from steersman.cel import Budget, CelError, CompiledExpression, LazyFields
from steersman.golang import quoted


class Policy:
    """A compiled policy; with ``patches``, its expressions may create objects."""

    def __init__(self, tree: Tree, *, patches: bool = False) -> None:
        self.name: str = tree["metadata"]["name"]
        spec: Tree = tree.get("spec") or {}
        self.ignores_failures = spec.get("failurePolicy") == "Ignore"
        self.params: Tree | None = spec.get("paramKind")
        self.constraints = MatchResources(spec.get("matchConstraints") or {})
        has_params = self.params is not None
        conditions: list[Tree] = spec.get("matchConditions") or []
        self.conditions = Conditions([condition["expression"] for condition in conditions], params=has_params)
        variables: list[Tree] = spec.get("variables") or []
        self._texts = [msgspec.json.encode(spec).decode()]
        self.environment = new_environment(params=has_params, variables=bool(variables) or patches, patches=patches)
        self._variables: dict[str, CompiledExpression] = {}
        for variable in variables:
            compiled = self._variables[variable["name"]] = self.environment.compiled(variable["expression"])
            self.environment.declare_field(VARIABLES, variable["name"], compiled.type)

    def counts_as(self, size: int) -> int:
        """The size that a write of this size counts as: large if the expressions have loops, which may take long."""
        return counts_as(self._texts, size)

    def with_variables(self, values: dict[str, Any], budget: Budget) -> dict[str, Any]:
        """The values of an expression's variables, including those that the policy declares."""
        if not self._variables:
            return values

        def compute(name: str) -> Any:
            value = self.environment.run(self._variables[name], complete, budget)
            if isinstance(value, CelError):
                return CelError(f"composited variable {quoted(name)} fails to evaluate: {value}")
            return value

        complete = values | {"variables": LazyFields(list(self._variables), compute)}
        return complete
