"""PodDisruptionBudgets: one count or percentage, and a selector of Pods."""

from __future__ import annotations

from typing import Any

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.formats import percent
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.labels import label_selector
from steersman.apiserver.registry.builtin.types.trees import Tree, subtree
from steersman.objects.field_problems import FieldProblem, each, invalid, not_negative, unsupported

_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


class PodDisruptionBudgetStrategy(BuiltinStrategy):
    """How PodDisruptionBudgets behave."""

    names = "any"
    judges_metadata = judges_metadata_of_status = knows_finalizers = False
    unconditional_update = False
    counts_generations = True

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec = subtree(obj, "spec")
        problems: list[FieldProblem] = []
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if least is not None and most is not None:
            shown = printed(spec, "policy.PodDisruptionBudgetSpec")
            problems.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
        for name, value in (("minAvailable", least), ("maxUnavailable", most)):
            if value is not None:
                problems += count_or_share(f"spec.{name}", value) + at_most_all(f"spec.{name}", value)
        problems += label_selector("spec.selector", spec.get("selector"))
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in _POLICIES:
            problems.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES))
        return problems

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Counts must not be negative."""
        del old
        status = subtree(obj, "status")
        problems: list[FieldProblem] = []
        for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
            problems += not_negative(f"status.{name}", status.get(name))
        return problems


def count_or_share(path: str, value: Any) -> list[FieldProblem]:
    """Check a non-negative count, or a percentage."""
    return each(path, value, percent(value)) if isinstance(value, str) else not_negative(path, value)


def at_most_all(path: str, value: Any) -> list[FieldProblem]:
    """A percentage must not exceed 100%."""
    too_much = isinstance(value, str) and amount(value) > 100
    return [invalid(path, value, "must not be greater than 100%")] if too_much else []


def amount(value: Any) -> int:
    """The number of a count or a percentage, to test for zero."""
    if isinstance(value, str):
        # The first digits decide; Python converts no thousands of them.
        return 0 if percent(value) else int(value[:-1].lstrip("0")[:19] or "0")
    return value or 0
