"""ValidatingAdmissionPolicies and their bindings: constraints, expressions and parameters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from steersman.apiserver.registry.admission_expressions import VARIABLES, expression_problems, new_environment
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.admission_rules import (
    condition_problems,
    name_warnings,
    reserved_name,
    rule_problems,
)
from steersman.apiserver.registry.builtin.types.labels import label_selector
from steersman.apiserver.registry.builtin.types.trees import Tree, items, metadata, subtree
from steersman.apiserver.registry.strategy import WHOLE
from steersman.cel import Environment
from steersman.objects.field_problems import (
    FieldProblem,
    duplicate,
    each,
    forbidden,
    invalid,
    required,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_1035_label, dns_subdomain, path_segment, qualified_name

_POLICIES: Final = ("Fail", "Ignore")
_MATCHES: Final = ("Equivalent", "Exact")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_NOT_FOUND: Final = ("Deny", "Allow")
_ANNOTATIONS_MAX, _ANNOTATION_MAX = 20, 5 * 1024
_NOTHING: Final = "validations or auditAnnotations must contain at least one item"
_EXCLUSIVE: Final = "name and selector are mutually exclusive"
_BOTH: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers "
    "serves no purpose)"
)
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED: Final = frozenset(
    """
    true false null in as break const continue else for function if import let loop package namespace return var void while
    """.split()  # noqa: SIM905
)


def fill_match_resources(resources: Tree) -> None:
    """Fill in the defaults of what a policy or a binding selects."""
    resources["matchPolicy"] = resources.get("matchPolicy") or "Equivalent"
    for name in ("namespaceSelector", "objectSelector"):
        if resources.get(name) is None:
            resources[name] = {}
    for rule in (*items(resources, "resourceRules"), *items(resources, "excludeResourceRules")):
        rule.setdefault("scope", "*")


class PolicyStrategy(BuiltinStrategy):
    """How ValidatingAdmissionPolicies behave."""

    judges_metadata = judges_metadata_of_status = knows_finalizers = False
    unconditional_update = False
    counts_generations = True
    status_keeps_metadata = True

    def fill(self, obj: Tree) -> None:
        """Fill in the defaults."""
        spec: Tree = obj.setdefault("spec", {})
        spec.setdefault("failurePolicy", "Fail")
        if spec.get("matchConstraints") is not None:
            fill_match_resources(spec["matchConstraints"])

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """A warning about a changed object with a reserved name."""
        return [] if old is None else name_warnings(obj)

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """Validate the constraints and compile the expressions."""
        return _policy_problems(obj, conditions=True) + reserved_name(obj)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Validate the changed policy."""
        names = ("paramKind", "matchConditions")
        changed = any(subtree(obj, "spec").get(name) != subtree(old, "spec").get(name) for name in names)
        return [WHOLE, *_policy_problems(obj, conditions=changed)]


class PolicyBindingStrategy(BuiltinStrategy):
    """How ValidatingAdmissionPolicyBindings behave."""

    declared_fields = re.compile(r"spec\.validationActions")
    judges_metadata = judges_metadata_of_status = knows_finalizers = False
    unconditional_update = False
    counts_generations = True

    def fill(self, obj: Tree) -> None:
        """Fill in the defaults."""
        resources = obj.setdefault("spec", {}).get("matchResources")
        if resources is not None:
            fill_match_resources(resources)

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """A warning about a changed object with a reserved name."""
        return [] if old is None else name_warnings(obj)

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        return self.judged(obj) + reserved_name(obj)

    def judged(self, obj: Tree) -> list[FieldProblem]:
        """The problems of the reference, the parameters and the actions."""
        return _binding_problems(subtree(obj, "spec"))

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Validate the changed binding."""
        del old
        return [WHOLE, *self.judged(obj)]


def scope_problems(
    spec: Tree, *, conditions: bool, more: Callable[[Tree, str], list[FieldProblem]] | None = None
) -> list[FieldProblem]:
    """The problems of what a policy applies to; ``more`` checks the constraints further."""
    policy, params, constraints = spec.get("failurePolicy"), spec.get("paramKind"), spec.get("matchConstraints")
    problems = [] if policy in _POLICIES else [unsupported("spec.failurePolicy", policy, _POLICIES)]
    if params is not None:
        problems += param_kind_problems(params, "spec.paramKind")
    if constraints is None:
        problems.append(required("spec.matchConstraints"))
    else:
        problems += match_problems(constraints, "spec.matchConstraints")
        if not items(constraints, "resourceRules"):
            problems.append(required("spec.matchConstraints.resourceRules"))
        problems += more(constraints, "spec.matchConstraints") if more is not None else []
    if conditions:
        problems += condition_problems(
            items(spec, "matchConditions"), "spec.matchConditions", params=params is not None
        )
    return problems


def _policy_problems(obj: Tree, *, conditions: bool) -> list[FieldProblem]:
    spec = subtree(obj, "spec")
    problems, params = scope_problems(spec, conditions=conditions), spec.get("paramKind")
    variables = items(spec, "variables")
    environment = new_environment(params=params is not None, variables=bool(variables))
    for at, variable in until_enough(variables, problems):
        problems += variable_problems(environment, variable, f"spec.variables[{at}]")
    validations, annotations = items(spec, "validations"), items(spec, "auditAnnotations")
    if not validations and not annotations:
        return [*problems, required("spec.validations", _NOTHING), required("spec.auditAnnotations", _NOTHING)]
    for at, validation in until_enough(validations, problems):
        problems += _validation_problems(environment, validation, f"spec.validations[{at}]")
    return problems + _annotation_problems(environment, metadata(obj).get("name") or "", annotations)


def variable_problems(environment: Environment, variable: Tree, path: str) -> list[FieldProblem]:
    """The problems of a variable, which is declared."""
    name, expression = variable.get("name") or "", variable.get("expression") or ""
    problems: list[FieldProblem] = []
    if not name.strip():
        problems.append(required(f"{path}.name", "name is not specified"))
    elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
        problems.append(invalid(f"{path}.name", name, "must be a valid CEL identifier"))
    if not expression.strip():
        return [*problems, required(f"{path}.expression", "expression is not specified")]
    compiled = environment.compiled(expression)
    environment.declare_field(VARIABLES, name, compiled.type)
    return problems + expression_problems(compiled, f"{path}.expression")


def _validation_problems(environment: Environment, validation: Tree, path: str) -> list[FieldProblem]:
    expression, message = validation.get("expression") or "", validation.get("message") or ""
    problems: list[FieldProblem] = []
    if not expression.strip():
        problems.append(required(f"{path}.expression", "expression is not specified"))
    else:
        problems += expression_problems(environment.compiled(expression, "bool"), f"{path}.expression")
    by_expression = validation.get("messageExpression") or ""
    if by_expression and not by_expression.strip():
        problems.append(invalid(f"{path}.messageExpression", by_expression, "must be non-empty if specified"))
    elif by_expression:
        problems += expression_problems(environment.compiled(by_expression, "string"), f"{path}.messageExpression")
    if message and not message.strip():
        problems.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        problems.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    reason = validation.get("reason")
    return problems + (
        [] if reason is None or reason in _REASONS else [unsupported(f"{path}.reason", reason, _REASONS)]
    )


def _annotation_problems(environment: Environment, policy: str, annotations: list[Tree]) -> list[FieldProblem]:
    path = "spec.auditAnnotations"
    problems: list[FieldProblem] = []
    if len(annotations) > _ANNOTATIONS_MAX:
        problems.append(invalid(path, annotations, f"must not have more than {_ANNOTATIONS_MAX} auditAnnotations"))
    seen: set[str] = set()
    for at, annotation in until_enough(annotations, problems):
        key, expression = annotation.get("key") or "", annotation.get("valueExpression") or ""
        where = f"{path}[{at}]"
        name = f"{policy}/{key}"
        if policy:
            problems += each(f"{where}.key", name, qualified_name(name))
        else:
            problems.append(invalid(f"{where}.key", key, "requires metadata.name be non-empty"))
        if not expression.strip():
            problems.append(required(f"{where}.valueExpression", "valueExpression is not specified"))
        elif len(expression.strip().encode()) > _ANNOTATION_MAX:
            problems.append(required(f"{where}.valueExpression", f"must not exceed {_ANNOTATION_MAX} bytes in length"))
        elif error := environment.compiled(expression.strip(), "string", "null_type").error:
            problems.append(invalid(f"{where}.valueExpression", expression, error))
        if key in seen:
            problems.append(duplicate(f"{where}.key", key))
        seen.add(key)
    return problems


def param_kind_problems(kind: Tree, path: str) -> list[FieldProblem]:
    """The problems of the kind of parameters."""
    problems: list[FieldProblem] = []
    api_version, name = kind.get("apiVersion") or "", kind.get("kind") or ""
    if not api_version:
        problems.append(required(f"{path}.apiVersion"))
    elif api_version.count("/") > 1:
        problems.append(invalid(f"{path}.apiVersion", api_version, f"unexpected GroupVersion string: {api_version}"))
    else:
        group, _, version = api_version.rpartition("/")
        if group and (reasons := dns_subdomain(group)):
            problems.append(invalid(f"{path}.apiVersion", group, ",".join(reasons)))
        if not version:
            problems.append(invalid(f"{path}.apiVersion", api_version, "version must be specified"))
        elif reasons := dns_1035_label(version):
            problems.append(invalid(f"{path}.apiVersion", version, ",".join(reasons)))
    if not name:
        problems.append(required(f"{path}.kind"))
    elif reasons := dns_1035_label(name.lower()):
        words = f"may have mixed case, but should otherwise match: {','.join(reasons)}"
        problems.append(invalid(f"{path}.kind", name, words))
    return problems


def match_problems(resources: Tree, path: str) -> list[FieldProblem]:
    """The problems of what a policy or a binding selects."""
    policy = resources.get("matchPolicy")
    problems = [] if policy in _MATCHES else [unsupported(f"{path}.matchPolicy", policy, _MATCHES)]
    problems += label_selector(f"{path}.namespaceSelector", resources.get("namespaceSelector"))
    problems += label_selector(f"{path}.objectSelector", resources.get("objectSelector"))
    for name in ("resourceRules", "excludeResourceRules"):
        for at, rule in until_enough(items(resources, name), problems):
            problems += _named_rule_problems(rule, f"{path}.{name}[{at}]")
    return problems


def _named_rule_problems(rule: Tree, path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seen: set[Any] = set()
    names: list[Any] = items(rule, "resourceNames")
    for at, name in until_enough(names, problems):
        where = f"{path}.resourceNames[{at}]"
        problems += [invalid(where, name, reason) for reason in path_segment(name)]
        if name in seen:
            problems.append(duplicate(where, name))
        seen.add(name)
    return problems + rule_problems(rule, path)


def _binding_problems(spec: Tree) -> list[FieldProblem]:
    name, resources = spec.get("policyName") or "", spec.get("matchResources")
    if name:
        problems = [invalid("spec.policyName", name, reason) for reason in dns_subdomain(name)]
    else:
        problems = [required("spec.policyName")]
    if spec.get("paramRef") is not None:
        problems += param_ref_problems(spec["paramRef"], "spec.paramRef")
    if resources is not None:
        problems += match_problems(resources, "spec.matchResources")
    return problems + _action_problems(items(spec, "validationActions"), "spec.validationActions")


def param_ref_problems(ref: Tree, path: str) -> list[FieldProblem]:
    """The problems of a reference to parameters."""
    name, selector, action = ref.get("name") or "", ref.get("selector"), ref.get("parameterNotFoundAction") or ""
    problems = [invalid(f"{path}.name", name, reason) for reason in path_segment(name)] if name else []
    if name and selector is not None:
        problems.append(forbidden(f"{path}.name", _EXCLUSIVE))
    if selector is not None:
        problems += label_selector(f"{path}.selector", selector)
        if name:
            problems.append(forbidden(f"{path}.selector", _EXCLUSIVE))
    elif not name:
        problems.append(required(path, "one of name or selector must be specified"))
    if not action:
        problems.append(required(f"{path}.parameterNotFoundAction"))
    elif action not in _NOT_FOUND:
        problems.append(unsupported(f"{path}.parameterNotFoundAction", action, _NOT_FOUND))
    return problems


def _action_problems(actions: list[Any], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for at, action in until_enough(actions, problems):
        if action not in _ACTIONS:
            problems.append(unsupported(f"{path}[{at}]", action, _ACTIONS))
        if action in seen:
            problems.append(duplicate(f"{path}[{at}]", action))
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        problems.append(invalid(path, actions, _BOTH))
    return problems if seen else [*problems, required(path, "at least one validation action is required")]
