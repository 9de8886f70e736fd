"""PriorityClasses: the range of values for users, two system classes, and immutable values."""

from __future__ import annotations

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.trees import Tree, metadata
from steersman.objects.field_problems import FieldProblem, forbidden, required, unchanged, unsupported

#: The values of the classes that every cluster has.
SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_HIGHEST = 1_000_000_000
_POLICIES = ("PreemptLowerPriority", "Never")


class PriorityClassStrategy(BuiltinStrategy):
    """How PriorityClasses behave."""

    def fill(self, obj: Tree) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def prepare_create(self, obj: Tree) -> None:
        """Set the generation, which stays the same."""
        metadata(obj)["generation"] = 1

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        problems = _value(obj)
        policy = obj.get("preemptionPolicy")
        if policy == "":
            problems.append(required("preemptionPolicy"))
        elif policy not in {None, *_POLICIES}:
            problems.append(unsupported("preemptionPolicy", policy, _POLICIES))
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        problems: list[FieldProblem] = []
        if obj.get("value", 0) != old.get("value", 0):
            problems.append(forbidden("value", "may not be changed in an update."))
        return problems + unchanged("preemptionPolicy", obj.get("preemptionPolicy"), old.get("preemptionPolicy"))


def _value(obj: Tree) -> list[FieldProblem]:
    name, value = metadata(obj).get("name", ""), obj.get("value", 0)
    if not name.startswith("system-"):
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        return [forbidden("value", detail)] if value > _HIGHEST else []
    if name not in SYSTEM_PRIORITIES:
        why = f"{name} is not a known system priority class"
    elif value != SYSTEM_PRIORITIES[name]:
        why = f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name]}"
    elif obj.get("globalDefault"):
        why = f"globalDefault of {name} PriorityClass must be false"
    else:
        return []
    detail = f"priority class names with 'system-' prefix are reserved for system use only. error: {why}"
    return [forbidden("metadata.name", detail)]
