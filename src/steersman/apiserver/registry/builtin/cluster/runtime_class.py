"""RuntimeClasses: container runtime handlers, and their requirements for nodes."""

from __future__ import annotations

import re

from steersman.apiserver.registry.builtin.pods.resources import requirements
from steersman.apiserver.registry.builtin.pods.scheduling import tolerations
from steersman.apiserver.registry.builtin.pods.warnings import label_warnings
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.labels import labels
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.objects.field_problems import (
    FieldProblem,
    duplicate,
    each,
    required,
    unchanged,
)
from steersman.schemas.names import dns_label


class RuntimeClassStrategy(BuiltinStrategy):
    """How RuntimeClasses behave."""

    declared_fields = re.compile("handler")

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        handler: str = obj.get("handler", "")
        problems = each("handler", handler, dns_label(handler)) if handler else [required("handler")]
        if obj.get("overhead") is not None:
            problems += requirements("overhead", {"limits": inner(inner(obj, "overhead"), "podFixed")})
        scheduling = inner(obj, "scheduling")
        problems += labels("scheduling.nodeSelector", scheduling.get("nodeSelector"))
        return problems + _tolerations(items(scheduling, "tolerations"))

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that the handler does not change."""
        changed = unchanged("handler", obj.get("handler", ""), old.get("handler", ""))
        # Declared rules report the change before what is wrong with the new one.
        return [*changed, WHOLE, *self.validate_create(obj), CHANGED]

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about deprecated node labels."""
        del old
        return label_warnings("scheduling.nodeSelector", inner(inner(obj, "scheduling"), "nodeSelector"))


def _tolerations(given: list[Tree]) -> list[FieldProblem]:
    path = "scheduling.tolerations"
    problems = tolerations(path, given)
    seen: set[tuple[str, ...]] = set()
    for index, one in enumerate(given):
        key = tuple(one.get(name, "") for name in ("key", "operator", "value", "effect"))
        problems += [duplicate(f"{path}[{index}]", printed(one, "core.Toleration"))] if key in seen else []
        seen.add(key)
    return problems
