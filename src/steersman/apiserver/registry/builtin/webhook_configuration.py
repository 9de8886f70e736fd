"""MutatingWebhookConfigurations and ValidatingWebhookConfigurations.

Guarantee: an update may keep what earlier versions allowed, as in kube-apiserver: side effects, unknown reviews, equal names,
and invalid values in selectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from steersman.apiserver.registry.admission_expressions import conditions_environment, expression_problems
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.labels import label_selector
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.apiserver.registry.builtin.types.webhook_clients import (
    REVIEWS,
    review_problems,
    service_problems,
    url_problems,
)
from steersman.apiserver.registry.definition import WHOLE
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
from steersman.schemas.names import dns_subdomain, qualified_name

_HARMLESS: Final = ("None", "NoneOnDryRun")
_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_POLICIES: Final = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "reinvocationPolicy": ("IfNeeded", "Never"),
}
_LONGEST: Final = 30
_CONDITIONS_MAX: Final = 64


class WebhookConfigurationStrategy(BuiltinStrategy):
    """How configurations of webhooks behave."""

    judges_metadata = judges_metadata_of_status = knows_finalizers = False
    unconditional_update = False
    counts_generations = True

    def fill(self, obj: Tree) -> None:
        """Fill in the defaults of each webhook."""
        for hook in items(obj, "webhooks"):
            hook.setdefault("failurePolicy", "Fail")
            hook.setdefault("matchPolicy", "Equivalent")
            hook.setdefault("namespaceSelector", {})
            hook.setdefault("objectSelector", {})
            hook.setdefault("timeoutSeconds", 10)
            if obj.get("kind") == "MutatingWebhookConfiguration":
                hook.setdefault("reinvocationPolicy", "Never")
            for rule in items(hook, "rules"):
                rule.setdefault("scope", "*")
            service = inner(hook, "clientConfig").get("service")
            if service is not None:
                service.setdefault("port", 443)

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """Validate each webhook."""
        return _problems(items(obj, "webhooks"), None)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Validate each webhook; what the old ones have is tolerated."""
        return [WHOLE, *_problems(items(obj, "webhooks"), items(old, "webhooks"))]


def _problems(hooks: list[Tree], old: list[Tree] | None) -> list[FieldProblem]:
    before = old or []
    has_names = [hook.get("name") for hook in before]
    harmless = all(hook.get("sideEffects") in _HARMLESS for hook in before)
    known = all(not items(hook, "admissionReviewVersions") or _is_known(hook) for hook in before)
    unique = len(has_names) == len(set(has_names))
    valid_selectors = not any(_selector_problems(hook, "", must_have_valid_values=True) for hook in before)
    conditions = old is None or [hook.get("matchConditions") for hook in hooks] != [
        hook.get("matchConditions") for hook in before
    ]
    found: list[FieldProblem] = []
    seen: set[str] = set()
    for at, hook in until_enough(hooks, found):
        path, name = f"webhooks[{at}]", hook.get("name") or ""
        found += _hook_problems(hook, path, harmless=harmless, valid_selectors=valid_selectors)
        if conditions:
            found += condition_problems(items(hook, "matchConditions"), f"{path}.matchConditions")
        reviews, missing = items(hook, "admissionReviewVersions"), f"must specify one of {', '.join(REVIEWS)}"
        found += review_problems(reviews, f"{path}.admissionReviewVersions", known=known, missing=missing)
        if unique and name in seen:
            found.append(duplicate(f"{path}.name", name))
        seen |= {name} - {""}
    return found


def _is_known(hook: Tree) -> bool:
    return any(version in REVIEWS for version in items(hook, "admissionReviewVersions"))


def _hook_problems(hook: Tree, path: str, *, harmless: bool, valid_selectors: bool) -> list[FieldProblem]:
    found = _name_problems(hook.get("name") or "", f"{path}.name")
    for at, rule in until_enough(items(hook, "rules"), found):
        found += rule_problems(rule, f"{path}.rules[{at}]")
    for name in ("failurePolicy", "matchPolicy"):
        found += _policy_problems(hook, name, path)
    effects, allowed = hook.get("sideEffects"), _HARMLESS if harmless else _EFFECTS
    if effects is None:
        found.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(allowed)}"))
    elif effects not in allowed:
        found.append(unsupported(f"{path}.sideEffects", effects, allowed))
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= _LONGEST:
        found.append(invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds"))
    found += _selector_problems(hook, path, must_have_valid_values=valid_selectors)
    found += _policy_problems(hook, "reinvocationPolicy", path)
    return found + _client_problems(inner(hook, "clientConfig"), f"{path}.clientConfig")


def _selector_problems(hook: Tree, path: str, *, must_have_valid_values: bool) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    for name in ("namespaceSelector", "objectSelector"):
        found += label_selector(f"{path}.{name}", hook.get(name), must_have_valid_values=must_have_valid_values)
    return found


def _policy_problems(hook: Tree, name: str, path: str) -> list[FieldProblem]:
    value, allowed = hook.get(name), _POLICIES[name]
    return [] if value is None or value in allowed else [unsupported(f"{path}.{name}", value, allowed)]


def _name_problems(name: str, path: str) -> list[FieldProblem]:
    if not name:
        return [required(path)]
    if told := dns_subdomain(name):
        return [invalid(path, name, ",".join(told))]
    if name.count(".") < 2:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _client_problems(client: Tree, path: str) -> list[FieldProblem]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    return (
        service_problems(service, f"{path}.service") if service is not None else url_problems(url or "", f"{path}.url")
    )


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
    all_below: set[str] = set()
    below_all: set[str] = set()
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
        if resource in all_below:
            found.append(invalid(where, given, f"if '{resource}/*' is present, must not specify {given}"))
        if subresource in below_all:
            found.append(invalid(where, given, f"if '*/{subresource}' is present, must not specify {given}"))
        all_below |= {resource} if subresource == "*" else set()
        below_all |= {subresource} if resource == "*" else set()
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
