"""The scopes of quotas, which restrict a quota to some objects."""

from __future__ import annotations

from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, subtree

_TERMS = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")


def quota_scopes(spec: Tree) -> list[Tree]:
    """The scopes of a quota; an object must be in all of them."""
    listed: list[Tree] = [{"scopeName": name, "operator": "Exists"} for name in items(spec, "scopes")]
    return [*listed, *items(subtree(spec, "scopeSelector"), "matchExpressions")]


def selects(scope: Tree, name: str) -> bool:
    """Whether a scope selects a class by name; the empty name stands for an object without a class."""
    match scope.get("operator"):
        case "In":
            return bool(name) and name in items(scope, "values")
        case "NotIn":
            return not name or name not in items(scope, "values")
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case _:
            return False


def is_terminating(pod: Tree) -> bool:
    """Whether a Pod has a deadline."""
    deadline = subtree(pod, "spec").get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def crosses_namespaces(pod: Tree) -> bool:
    """Whether the affinity of a Pod names other namespaces."""
    affinity = subtree(pod, "spec", "affinity")
    for sort in ("podAffinity", "podAntiAffinity"):
        for field in _TERMS:
            for term in items(inner(affinity, sort), field):
                own = inner(term, "podAffinityTerm") if field == _TERMS[1] else term
                if own.get("namespaces") or own.get("namespaceSelector") is not None:
                    return True
    return False
