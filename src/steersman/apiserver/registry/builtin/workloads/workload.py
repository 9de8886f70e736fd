"""The common parts of kinds that create Pods from a template: selectors, templates, counts."""

from __future__ import annotations

from steersman.apiserver.registry.builtin.pods.validation import pod_template
from steersman.apiserver.registry.builtin.pods.warnings import name_warnings, template_warnings
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.labels import compiled, is_empty, label_selector, shown_selector
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, subtree
from steersman.objects.field_problems import FieldProblem, forbidden, invalid, not_negative, required, unsupported

MISMATCH = "`selector` does not match template `labels`"


class WorkloadStrategy(BuiltinStrategy):
    """The common behavior of kinds that create Pods from a template."""

    counts_generations = True
    #: Whether Pods are named after objects of the kind, whose names may be invalid for a host.
    names_pods = False
    #: Counts in the status that may not be negative, and those that may not be greater than ``replicas``.
    status_counts: tuple[str, ...] = ()
    status_parts: tuple[str, ...] = ()
    #: The count of ready Pods, as a message about more available ones names it.
    ready_field = "readyReplicas"

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        if old is not None and subtree(obj, "spec") == subtree(old, "spec"):
            return []
        named = name_warnings(obj) if old is None and self.names_pods else []
        return named + template_warnings("spec.template", subtree(obj, "spec", "template"))

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        status, before = subtree(obj, "status"), subtree(old, "status")
        problems = [found for name in self.status_counts for found in not_negative(f"status.{name}", status.get(name))]
        problems += [
            invalid(f"status.{name}", status.get(name, 0), "cannot be greater than status.replicas")
            for name in self.status_parts
            if status.get(name, 0) > status.get("replicas", 0)
        ]
        available = status.get("availableReplicas", 0)
        if available > status.get("readyReplicas", 0):
            problems.append(
                invalid("status.availableReplicas", available, f"cannot be greater than {self.ready_field}")
            )
        new, earlier = status.get("collisionCount"), before.get("collisionCount")
        if earlier is not None and (new is None or new < earlier):
            problems.append(invalid("status.collisionCount", new or 0, "cannot be decremented"))
        return problems


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
