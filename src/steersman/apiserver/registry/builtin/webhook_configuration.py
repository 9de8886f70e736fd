"""MutatingWebhookConfigurations and ValidatingWebhookConfigurations.

Guarantee: an update may keep what earlier versions allowed, as in kube-apiserver: side effects, unknown reviews, equal names,
and invalid values in selectors.
"""

from __future__ import annotations

from typing import Final

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.admission_rules import (
    condition_problems,
    name_warnings,
    reserved_name,
    review_warnings,
    rule_problems,
)
from steersman.apiserver.registry.builtin.types.labels import label_selector
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.apiserver.registry.builtin.types.webhook_clients import (
    REVIEWS,
    review_problems,
    service_problems,
    url_problems,
)
from steersman.apiserver.registry.strategy import WHOLE
from steersman.objects.field_problems import FieldProblem, duplicate, invalid, required, unsupported, until_enough
from steersman.schemas.names import dns_subdomain

_HARMLESS: Final = ("None", "NoneOnDryRun")
_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
_POLICIES: Final = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "reinvocationPolicy": ("IfNeeded", "Never"),
}
_TIMEOUT_MAX: Final = 30


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

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about a reserved name, and about rules for reviews."""
        return ([] if old is None else name_warnings(obj)) + [
            warning
            for at, hook in enumerate(items(obj, "webhooks"))
            for place, rule in enumerate(items(hook, "rules"))
            for warning in review_warnings(f"webhooks[{at}].rules[{place}]", rule)
        ]

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """Validate each webhook."""
        return _problems(items(obj, "webhooks"), None) + reserved_name(obj)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Validate each webhook; what the old ones have is tolerated."""
        return [WHOLE, *_problems(items(obj, "webhooks"), items(old, "webhooks"))]


def _problems(hooks: list[Tree], old: list[Tree] | None) -> list[FieldProblem]:
    """The problems of webhooks. What must hold of each depends on the old ones; ``old`` is None for a creation."""
    before = old or []
    old_names = [hook.get("name") for hook in before]
    must_be_harmless = all(hook.get("sideEffects") in _HARMLESS for hook in before)
    must_have_known_review = all(not items(hook, "admissionReviewVersions") or _is_known(hook) for hook in before)
    must_have_unique_names = len(old_names) == len(set(old_names))
    must_have_valid_values = not any(_selector_problems(hook, "", must_have_valid_values=True) for hook in before)
    must_have_valid_conditions = old is None or [hook.get("matchConditions") for hook in hooks] != [
        hook.get("matchConditions") for hook in before
    ]
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for at, hook in until_enough(hooks, problems):
        path, name = f"webhooks[{at}]", hook.get("name") or ""
        problems += _hook_problems(
            hook, path, must_be_harmless=must_be_harmless, must_have_valid_values=must_have_valid_values
        )
        if must_have_valid_conditions:
            problems += condition_problems(items(hook, "matchConditions"), f"{path}.matchConditions")
        reviews, missing = items(hook, "admissionReviewVersions"), f"must specify one of {', '.join(REVIEWS)}"
        problems += review_problems(
            reviews, f"{path}.admissionReviewVersions", must_have_known=must_have_known_review, missing=missing
        )
        if must_have_unique_names and name in seen:
            problems.append(duplicate(f"{path}.name", name))
        seen |= {name} - {""}
    return problems


def _is_known(hook: Tree) -> bool:
    return any(version in REVIEWS for version in items(hook, "admissionReviewVersions"))


def _hook_problems(
    hook: Tree, path: str, *, must_be_harmless: bool, must_have_valid_values: bool
) -> list[FieldProblem]:
    problems = _name_problems(hook.get("name") or "", f"{path}.name")
    for at, rule in until_enough(items(hook, "rules"), problems):
        problems += rule_problems(rule, f"{path}.rules[{at}]")
    for name in ("failurePolicy", "matchPolicy"):
        problems += _policy_problems(hook, name, path)
    effects, allowed = hook.get("sideEffects"), _HARMLESS if must_be_harmless else _EFFECTS
    if effects is None:
        problems.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(allowed)}"))
    elif effects not in allowed:
        problems.append(unsupported(f"{path}.sideEffects", effects, allowed))
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= _TIMEOUT_MAX:
        detail = f"the timeout value must be between 1 and {_TIMEOUT_MAX} seconds"
        problems.append(invalid(f"{path}.timeoutSeconds", seconds, detail))
    problems += _selector_problems(hook, path, must_have_valid_values=must_have_valid_values)
    problems += _policy_problems(hook, "reinvocationPolicy", path)
    return problems + _client_problems(inner(hook, "clientConfig"), f"{path}.clientConfig")


def _selector_problems(hook: Tree, path: str, *, must_have_valid_values: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for name in ("namespaceSelector", "objectSelector"):
        problems += label_selector(f"{path}.{name}", hook.get(name), must_have_valid_values=must_have_valid_values)
    return problems


def _policy_problems(hook: Tree, name: str, path: str) -> list[FieldProblem]:
    value, allowed = hook.get(name), _POLICIES[name]
    return [] if value is None or value in allowed else [unsupported(f"{path}.{name}", value, allowed)]


def _name_problems(name: str, path: str) -> list[FieldProblem]:
    if not name:
        return [required(path)]
    if reasons := dns_subdomain(name):
        return [invalid(path, name, ",".join(reasons))]
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
