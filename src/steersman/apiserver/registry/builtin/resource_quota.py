"""ResourceQuotas: which resources they limit, and in which scopes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.apiserver.registry.builtin.pods.resources import quantity, resource_name
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.resource_names import is_standard
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, subtree
from steersman.objects import Quantity
from steersman.objects.field_problems import IMMUTABLE, FieldProblem, invalid, required, until_enough

_COMPUTE: Final = frozenset(f"{part}{name}" for part in ("", "requests.", "limits.") for name in ("cpu", "memory"))
_OF_PODS: Final = _COMPUTE | {"pods"}
#: The resources that each scope allows.
_SCOPES: Final = {
    "BestEffort": frozenset({"pods"}),
    "CrossNamespacePodAffinity": _OF_PODS,
    "NotBestEffort": _OF_PODS,
    "NotTerminating": _OF_PODS,
    "PriorityClass": _OF_PODS,
    "Terminating": _OF_PODS,
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_CONFLICTS: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
#: Scopes that support only the operator ``Exists``.
_PLAIN: Final = frozenset(_SCOPES) - {"PriorityClass", "VolumeAttributesClass"}
_MUST_EXIST: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_UNSUPPORTED: Final = "unsupported scope applied to resource"


class ResourceQuotaStrategy(BuiltinStrategy):
    """How ResourceQuotas behave."""

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec = subtree(obj, "spec")
        return _amounts("spec.hard", inner(spec, "hard")) + _scopes(spec) + _selector(spec)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that the scopes do not change."""
        problems = self.validate_create(obj)
        scopes = items(subtree(obj, "spec"), "scopes")
        if set(scopes) != set(items(subtree(old, "spec"), "scopes")):
            problems.append(invalid("spec.scopes", scopes or None, IMMUTABLE))
        return problems

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        del old
        status = subtree(obj, "status")
        return _amounts("status.hard", inner(status, "hard")) + _amounts("status.used", inner(status, "used"))

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about a limit on requests that is higher than the limit on limits."""
        hard = inner(subtree(obj, "spec"), "hard") if old is None else {}
        found: list[str] = []
        for name in ("cpu", "memory", "storage", "ephemeral-storage"):
            request, limit = f"requests.{name}", f"limits.{name}"
            if request not in hard and name in {"cpu", "memory"}:
                request = name
            if request in hard and limit in hard and Quantity(hard[request]) > Quantity(hard[limit]):
                asked, most = (Quantity(hard[each]).printed() for each in (request, limit))
                found.append(f"ResourceQuota {request} ({asked}) should be less than {limit} ({most})")
        return found


def _is_limited(name: str) -> bool:
    """Whether a name is a standard resource for quotas."""
    return name != "storage" and is_standard(name)


def _amounts(path: str, hard: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for _, name in until_enough(sorted(hard), problems):
        where = f"{path}[{name}]"
        problems += resource_name(where, name)
        if "/" not in name and not _is_limited(name):
            problems.append(invalid(where, name, "must be a standard resource for quota"))
        problems += quantity(where, name, hard[name])
    return problems


def _is_misapplied(scope: str, resource: str) -> bool:
    return _is_limited(resource) and scope in _SCOPES and resource not in _SCOPES[scope]


def _conflicting(path: str, scopes: Iterable[str], shown: list[str]) -> list[FieldProblem]:
    given = set(scopes)
    return [invalid(path, shown or None, "conflicting scopes") for pair in _CONFLICTS if pair <= given]


def _scopes(spec: Tree) -> list[FieldProblem]:
    scopes: list[str] = items(spec, "scopes")
    problems: list[FieldProblem] = []
    for _, scope in until_enough(scopes, problems):
        if scope not in _SCOPES:
            problems.append(invalid("spec.scopes", scopes, "unsupported scope"))
        misapplied = (name for name in inner(spec, "hard") if _is_misapplied(scope, name))
        problems += [invalid("spec.scopes", scopes, _UNSUPPORTED) for _ in misapplied]
    return problems + _conflicting("spec.scopes", scopes, scopes)


def _selector(spec: Tree) -> list[FieldProblem]:
    path = "spec.scopeSelector.matchExpressions"
    selector = inner(spec, "scopeSelector")
    expressions = items(selector, "matchExpressions")
    problems: list[FieldProblem] = []
    for _, each in until_enough(expressions, problems):
        scope, operator, values = each.get("scopeName", ""), each.get("operator", ""), items(each, "values")
        if scope not in _SCOPES:
            problems.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        misapplied = (name for name in inner(spec, "hard") if _is_misapplied(scope, name))
        problems += [invalid(path, printed(selector, "core.ScopeSelector"), _UNSUPPORTED) for _ in misapplied]
        if scope in _PLAIN and operator != "Exists":
            problems.append(invalid(f"{path}.operator", operator, _MUST_EXIST))
        if operator in {"In", "NotIn"}:
            if not values:
                why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                problems.append(required(f"{path}.values", why))
        elif operator in {"Exists", "DoesNotExist"}:
            if values:
                why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                problems.append(invalid(f"{path}.values", values, why))
        else:
            problems.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    scopes = [expression.get("scopeName", "") for expression in expressions]
    return problems + _conflicting(path, scopes, items(spec, "scopes"))
