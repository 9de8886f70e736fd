"""Leases: valid durations and counts."""

from __future__ import annotations

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.trees import Tree, inner
from steersman.objects.field_problems import NEGATIVE, FieldProblem, invalid


class LeaseStrategy(BuiltinStrategy):
    """How Leases behave."""

    unconditional_update = False
    create_on_update = True
    knows_finalizers = False

    def prepare_create(self, obj: Tree) -> None:
        """Drop the fields of a disabled feature."""
        for field in ("strategy", "preferredHolder"):
            obj["spec"].pop(field, None)

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Drop the fields of a disabled feature."""
        del old
        self.prepare_create(obj)

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec: Tree = inner(obj, "spec")
        problems: list[FieldProblem] = []
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if duration is not None and duration <= 0:
            problems.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            problems.append(invalid("spec.leaseTransitions", transitions, NEGATIVE))
        return problems
