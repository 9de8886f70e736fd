"""The common parts of kinds that create Pods from a template: selectors, templates, counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.apiserver.registry.builtin.pods.validation import pod_template
from steersman.apiserver.registry.builtin.pods.warnings import name_warnings, pod_warnings
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.labels import compiled, is_empty, label_selector, shown_selector
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, subtree
from steersman.objects.field_problems import FieldProblem, forbidden, invalid, not_negative, required, unsupported

MISMATCH = "`selector` does not match template `labels`"
_MORE_THAN_REPLICAS = "cannot be greater than status.replicas"


class WorkloadStrategy(BuiltinStrategy):
    """The common behavior of kinds that create Pods from a template."""

    counts_generations = True
    #: Whether Pods are named after objects of the kind, whose names may be invalid for a host.
    names_pods = False

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about a new template."""
        if old is not None and subtree(obj, "spec") == subtree(old, "spec"):
            return []
        named = name_warnings(obj) if old is None and self.names_pods else []
        return named + pod_warnings("spec.template.spec", subtree(obj, "spec", "template", "spec"))


def selector_problems(path: str, selector: Tree | None, noun: str) -> list[FieldProblem]:
    """Check that a selector exists and is not empty."""
    if selector is None:
        return [required(path)]
    problems = label_selector(path, selector)
    if is_empty(selector):
        problems.append(invalid(path, shown_selector(selector), f"empty selector is invalid for {noun}"))
    return problems


def template_problems(
    path: str, template: Tree, selector: Tree | None, *, kind: str, unusable: str
) -> list[FieldProblem]:
    """Validate a template that the selector must match, and whose Pods always run."""
    matcher = compiled(selector)
    if matcher is None:
        return [invalid("spec.selector", shown_selector(selector), unusable)]
    own = inner(template, "metadata").get("labels")
    problems: list[FieldProblem] = []
    if (selector is None or not is_empty(selector)) and not matcher.matches(own or {}):
        problems.append(invalid(f"{path}.metadata.labels", own, MISMATCH))
    return problems + pod_template(path, template) + always_running(path, template, kind)


def always_running(path: str, template: Tree, kind: str) -> list[FieldProblem]:
    """Check that Pods of a template are always restarted."""
    spec = inner(template, "spec")
    problems: list[FieldProblem] = []
    policy = spec.get("restartPolicy", "")
    if policy != "Always":
        problems.append(unsupported(f"{path}.spec.restartPolicy", policy, ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        problems.append(forbidden(f"{path}.spec.activeDeadlineSeconds", detail))
    return problems


def counts(status: Mapping[str, Any], names: tuple[str, ...]) -> list[FieldProblem]:
    """Check that counts are not negative."""
    return [found for name in names for found in not_negative(f"status.{name}", status.get(name))]


def no_more(status: Mapping[str, Any], names: tuple[str, ...], *, than_ready: str = "") -> list[FieldProblem]:
    """Check that parts do not exceed the whole, nor available Pods the ready ones."""
    problems = [
        invalid(f"status.{name}", status.get(name, 0), _MORE_THAN_REPLICAS)
        for name in names
        if status.get(name, 0) > status.get("replicas", 0)
    ]
    available = status.get("availableReplicas", 0)
    if than_ready and available > status.get("readyReplicas", 0):
        problems.append(invalid("status.availableReplicas", available, f"cannot be greater than {than_ready}"))
    return problems


def collisions(status: Mapping[str, Any], before: Mapping[str, Any]) -> list[FieldProblem]:
    """Check that the collision count does not decrease."""
    new, old = status.get("collisionCount"), before.get("collisionCount")
    if old is None or (new is not None and new >= old):
        return []
    return [invalid("status.collisionCount", new or 0, "cannot be decremented")]
