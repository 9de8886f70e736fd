"""MutatingAdmissionPolicies and their bindings."""

from __future__ import annotations

from typing import Final

from steersman.apiserver.registry.admission_expressions import expression_problems, new_environment
from steersman.apiserver.registry.builtin.admission_policy import (
    PolicyBindingStrategy,
    PolicyStrategy,
    fill_match_resources,
    match_problems,
    param_ref_problems,
    scope_problems,
    variable_problems,
)
from steersman.apiserver.registry.builtin.types.admission_rules import reserved_name
from steersman.apiserver.registry.builtin.types.trees import Tree, items, subtree
from steersman.apiserver.registry.strategy import WHOLE
from steersman.cel import Environment
from steersman.objects.field_problems import FieldProblem, invalid, required, unsupported, until_enough
from steersman.schemas.names import dns_subdomain

_REINVOCATIONS: Final = ("IfNeeded", "Never")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
#: The field of each type of patch, and the type of its expression.
_PATCHES: Final = {
    "ApplyConfiguration": ("applyConfiguration", "Object"),
    "JSONPatch": ("jsonPatch", "list(JSONPatch)"),
}


class MutatingPolicyStrategy(PolicyStrategy):
    """How MutatingAdmissionPolicies behave."""

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """Validate the constraints and compile the expressions."""
        return _policy_problems(subtree(obj, "spec"), conditions=True) + reserved_name(obj)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Validate the changed policy."""
        spec, before = subtree(obj, "spec"), subtree(old, "spec")
        changed = any(spec.get(name) != before.get(name) for name in ("paramKind", "matchConditions"))
        return [WHOLE, *_policy_problems(spec, conditions=changed)]


class MutatingPolicyBindingStrategy(PolicyBindingStrategy):
    """How MutatingAdmissionPolicyBindings behave."""

    def fill(self, obj: Tree) -> None:
        """Fill in the defaults."""
        resources = obj.setdefault("spec", {}).get("matchResources")
        if resources is not None:
            fill_match_resources(resources)

    def judged(self, obj: Tree) -> list[FieldProblem]:
        """The problems of the reference and the parameters."""
        spec = subtree(obj, "spec")
        name, resources = spec.get("policyName") or "", spec.get("matchResources")
        problems = [invalid("spec.policyName", name, reason) for reason in dns_subdomain(name)] if name else []
        problems += [] if name else [required("spec.policyName")]
        if spec.get("paramRef") is not None:
            problems += param_ref_problems(spec["paramRef"], "spec.paramRef")
        if resources is not None:
            problems += match_problems(resources, "spec.matchResources")
            problems += _operation_problems(resources, "spec.matchResources")
        return problems


def _policy_problems(spec: Tree, *, conditions: bool) -> list[FieldProblem]:
    problems = scope_problems(spec, conditions=conditions, more=_operation_problems)
    environment = new_environment(params=spec.get("paramKind") is not None, variables=True, patches=True)
    for at, variable in until_enough(items(spec, "variables"), problems):
        problems += variable_problems(environment, variable, f"spec.variables[{at}]")
    mutations = items(spec, "mutations")
    if not mutations:
        problems.append(required("spec.mutations", "mutations must contain at least one item"))
    for at, mutation in until_enough(mutations, problems):
        problems += _mutation_problems(environment, mutation, f"spec.mutations[{at}]")
    again = spec.get("reinvocationPolicy") or ""
    if not again:
        problems.append(required("spec.reinvocationPolicy"))
    elif again not in _REINVOCATIONS:
        problems.append(unsupported("spec.reinvocationPolicy", again, _REINVOCATIONS))
    return problems


def _operation_problems(resources: Tree, path: str) -> list[FieldProblem]:
    return [
        unsupported(f"{path}.resourceRules.operations", operation, _OPERATIONS)
        for rule in items(resources, "resourceRules")
        for operation in rule.get("operations") or ()
        if operation not in _OPERATIONS
    ]


def _mutation_problems(environment: Environment, mutation: Tree, path: str) -> list[FieldProblem]:
    sort = mutation.get("patchType") or ""
    if not sort:
        return [required(f"{path}.patchType")]
    if sort not in _PATCHES:
        return [unsupported(f"{path}.patchType", sort, sorted(_PATCHES))]
    field, wanted = _PATCHES[sort]
    (other,) = (name for patch_type, (name, _) in _PATCHES.items() if patch_type != sort)
    problems: list[FieldProblem] = []
    given = mutation.get(field)
    if given is None:
        problems.append(required(f"{path}.{field}", f"must be specified when patchType is {sort}"))
    elif not (expression := (given.get("expression") or "").strip()):
        problems.append(required(f"{path}.{field}.expression"))
    else:
        problems += expression_problems(environment.compiled(expression, wanted), f"{path}.{field}.expression")
    if mutation.get(other) is not None:
        words = f"must not be specified when patchType is {sort}"
        problems.append(invalid(f"{path}.{other}", f"{{{other}}}", words))
    return problems
