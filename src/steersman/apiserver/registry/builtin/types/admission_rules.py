"""Rules and match conditions of webhook configurations and admission policies, validated as in kube-apiserver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from steersman.apiserver.registry.admission_expressions import conditions_environment, expression_problems
from steersman.apiserver.registry.builtin.types.trees import Tree, items, metadata
from steersman.objects.field_problems import (
    FieldProblem,
    duplicate,
    each,
    invalid,
    required,
    too_many,
    unsupported,
    until_enough,
)
from steersman.schemas.names import qualified_name

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_CONDITIONS_MAX: Final = 64
_RESERVED: Final = ".static.k8s.io"
_RESERVED_WORDS: Final = f'names ending with "{_RESERVED}" are reserved for static manifest-based configurations and cannot be managed via the API'
#: Reviews, by group: the server notifies no webhook of them.
_REVIEWS: Final = {
    "authentication.k8s.io": ("selfsubjectreviews", "tokenreviews"),
    "authorization.k8s.io": (
        "localsubjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "subjectaccessreviews",
    ),
}


def rule_problems(rule: Tree, path: str, *, operations: Sequence[str] = _OPERATIONS) -> list[FieldProblem]:
    """The problems of a rule; ``operations`` are those that it may name."""
    found: list[FieldProblem] = []
    given: list[Any] = items(rule, "operations")
    if not given:
        found.append(required(f"{path}.operations"))
    if len(given) > 1 and "*" in given:
        found.append(invalid(f"{path}.operations", given, "if '*' is present, must not specify other operations"))
    for at, operation in until_enough(given, found):
        if operation not in operations:
            found.append(unsupported(f"{path}.operations[{at}]", operation, operations))
    for name, words in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values: list[Any] = items(rule, name)
        if not values:
            found.append(required(f"{path}.{name}"))
        if len(values) > 1 and "*" in values:
            found.append(invalid(f"{path}.{name}", values, f"if '*' is present, must not specify other {words}"))
    for at, version in until_enough(items(rule, "apiVersions"), found):
        if not version:
            found.append(required(f"{path}.apiVersions[{at}]"))
    found += _resource_problems(items(rule, "resources"), f"{path}.resources")
    scope = rule.get("scope")
    return found + ([] if scope is None or scope in _SCOPES else [unsupported(f"{path}.scope", scope, _SCOPES)])


def _resource_problems(resources: list[Any], path: str) -> list[FieldProblem]:
    found: list[FieldProblem] = [] if resources else [required(path)]
    #: The resources of entries such as ``pods/*``, and the subresources of those such as ``*/status``.
    with_any_subresource: set[str] = set()
    of_any_resource: set[str] = set()
    is_plain = False
    for at, given in until_enough(resources, found):
        if not given:
            found.append(required(f"{path}[{at}]"))
            continue
        resource, slash, subresource = given.partition("/")
        if not slash:
            # As in kube-apiserver, the last one decides.
            is_plain = given != "*"
            continue
        where = f"{path}[{at}]"
        if resource in with_any_subresource:
            found.append(invalid(where, given, f"if '{resource}/*' is present, must not specify {given}"))
        if subresource in of_any_resource:
            found.append(invalid(where, given, f"if '*/{subresource}' is present, must not specify {given}"))
        with_any_subresource |= {resource} if subresource == "*" else set()
        of_any_resource |= {subresource} if resource == "*" else set()
    if len(resources) > 1 and "*/*" in resources:
        found.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and is_plain:
        words = "if '*' is present, must not specify other resources without subresources"
        found.append(invalid(path, resources, words))
    return found


def condition_problems(conditions: list[Tree], path: str, *, params: bool = False) -> list[FieldProblem]:
    """The problems of match conditions; ``params`` is whether they can use params."""
    found: list[FieldProblem] = []
    if len(conditions) > _CONDITIONS_MAX:
        found.append(too_many(path, len(conditions), _CONDITIONS_MAX))
    seen: set[str] = set()
    for at, condition in until_enough(conditions, found):
        name, where = condition.get("name") or "", f"{path}[{at}]"
        expression = (condition.get("expression") or "").strip()
        if not expression:
            found.append(required(f"{where}.expression"))
        else:
            compiled = conditions_environment(params=params).compiled(expression, "bool")
            found += expression_problems(compiled, f"{where}.expression")
        found += each(f"{where}.name", name, qualified_name(name)) if name else [required(f"{where}.name")]
        if name in seen:
            found.append(duplicate(f"{where}.name", name))
        seen |= {name} - {""}
    return found


def reserved_name(obj: Tree) -> list[FieldProblem]:
    """Check that a new configuration has no name that is reserved for configurations in files."""
    name: str = metadata(obj).get("name", "")
    return [invalid("metadata.name", name, _RESERVED_WORDS)] if name.endswith(_RESERVED) else []


def name_warnings(obj: Tree) -> list[str]:
    """The warning about a changed configuration with a reserved name."""
    return [f"metadata.name: {_RESERVED_WORDS}"] if metadata(obj).get("name", "").endswith(_RESERVED) else []


def review_warnings(path: str, rule: Tree) -> list[str]:
    """Warnings about the reviews that a rule names, of which webhooks are not notified."""
    groups, resources = items(rule, "apiGroups"), items(rule, "resources")
    if "*" in groups or "*" in resources:
        return []
    named = dict.fromkeys((group, name) for group in groups for name in resources if name in _REVIEWS.get(group, ()))
    detail = "is excluded from admission webhooks; this rule will have no effect"
    return [f"{path}: {name}.{group} {detail}" for group, name in named]
