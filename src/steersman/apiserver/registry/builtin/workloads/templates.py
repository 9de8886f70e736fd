"""PodTemplates and ControllerRevisions."""

from __future__ import annotations

from typing import Any

from steersman.apiserver.registry.builtin.pods.defaults import fill_template
from steersman.apiserver.registry.builtin.pods.validation import pod_template
from steersman.apiserver.registry.builtin.pods.warnings import template_warnings
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.trees import Tree, inner
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.objects.field_problems import FieldProblem, not_negative, required, unchanged


class PodTemplateStrategy(BuiltinStrategy):
    """How PodTemplates behave."""

    def fill(self, obj: Tree) -> None:
        fill_template(obj["template"])

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        return pod_template("template", inner(obj, "template"))

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        if old is not None and inner(obj, "template") == inner(old, "template"):
            return []
        return template_warnings("template", inner(obj, "template"))


class ControllerRevisionStrategy(BuiltinStrategy):
    """How ControllerRevisions behave."""

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        problems = not_negative("revision", obj.get("revision"))
        data: Any = obj.get("data")
        if data is None:
            problems.append(required("data", "data is mandatory"))
        elif not isinstance(data, dict):
            problems.append(required("data", "data must be a valid JSON object"))
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that the data does not change."""
        problems = [CHANGED, WHOLE, *not_negative("revision", obj.get("revision"))]
        return problems + unchanged("data", obj.get("data"), old.get("data"))
