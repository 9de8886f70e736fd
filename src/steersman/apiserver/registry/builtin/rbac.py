"""Roles and bindings."""

from __future__ import annotations

import re

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.labels import compiled, label_selector
from steersman.apiserver.registry.builtin.types.trees import Tree, items, subtree
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.objects.field_problems import IMMUTABLE, FieldProblem, each, invalid, required, unsupported, until_enough
from steersman.schemas.names import dns_subdomain, path_segment

GROUP = "rbac.authorization.k8s.io"


class RoleStrategy(BuiltinStrategy):
    """How Roles and ClusterRoles behave."""

    declared_fields = re.compile(r"rules\[\d+\]\.verbs")

    names = "path"
    create_on_update = True

    def default(self, obj: Tree) -> None:
        """Normalize it to the form of its type; a writer without rules owns the field all the same."""
        is_empty = obj.get("rules") == []
        super().default(obj)
        if is_empty:
            obj["rules"] = []

    def prepare_create(self, obj: Tree) -> None:
        """Set absent rules to null."""
        super().prepare_create(obj)
        obj["rules"] = obj.get("rules") or None

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Set absent rules to null."""
        super().prepare_update(obj, old)
        obj["rules"] = obj.get("rules") or None

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """Rules must have verbs and targets."""
        namespaced = self.kind.kind == "Role"
        problems: list[FieldProblem] = []
        for index, rule in until_enough(items(obj, "rules"), problems):
            problems += _rule(f"rules[{index}]", rule, namespaced=namespaced)
        aggregation = obj.get("aggregationRule")
        if aggregation is not None and not namespaced:
            path = "aggregationRule.clusterRoleSelectors"
            selectors = items(aggregation, "clusterRoleSelectors")
            if not selectors:
                detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
                problems.append(required(path, detail))
            for index, selector in until_enough(selectors, problems):
                problems += label_selector(f"{path}[{index}]", selector)
                if compiled(selector) is None:
                    problems.append(invalid(f"{path}[{index}]", None, "invalid label selector."))
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        del old
        return [WHOLE, *self.validate_create(obj), CHANGED]


def _rule(path: str, rule: Tree, *, namespaced: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if not rule.get("verbs"):
        problems.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            problems.append(invalid(f"{path}.nonResourceURLs", urls, detail))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            problems.append(invalid(f"{path}.nonResourceURLs", urls, detail))
        return problems
    if not rule.get("apiGroups"):
        problems.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        problems.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return problems


class BindingStrategy(BuiltinStrategy):
    """How RoleBindings and ClusterRoleBindings behave."""

    declared_fields = re.compile(r"(roleRef|subjects\[\d+\])\.name")
    declares_forms = False

    names = "path"
    create_on_update = True

    def fill(self, obj: Tree) -> None:
        """Default the API group of users, groups and roles."""
        role: Tree = obj["roleRef"]
        role["apiGroup"] = role.get("apiGroup") or GROUP
        for subject in items(obj, "subjects"):
            if subject.get("kind") in {"User", "Group"}:
                subject.setdefault("apiGroup", GROUP)

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """The role and the subjects must be complete."""
        namespaced = self.kind.kind == "RoleBinding"
        role = subtree(obj, "roleRef")
        problems: list[FieldProblem] = []
        if role.get("apiGroup") != GROUP:
            problems.append(unsupported("roleRef.apiGroup", role.get("apiGroup", ""), (GROUP,)))
        kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
        if role.get("kind") not in kinds:
            problems.append(unsupported("roleRef.kind", role.get("kind", ""), kinds))
        if not role.get("name"):
            problems.append(required("roleRef.name"))
        else:
            problems += each("roleRef.name", role["name"], path_segment(role["name"]))
        for index, subject in until_enough(items(obj, "subjects"), problems):
            problems += _subject(f"subjects[{index}]", subject, namespaced=namespaced)
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """The role is immutable."""
        problems = [WHOLE, *self.validate_create(obj), CHANGED]
        if subtree(obj, "roleRef") != subtree(old, "roleRef"):
            problems.append(invalid("roleRef", printed(obj["roleRef"], "rbac.RoleRef"), IMMUTABLE))
        return problems


def _subject(path: str, subject: Tree, *, namespaced: bool) -> list[FieldProblem]:
    problems = [] if subject.get("name") else [required(f"{path}.name")]
    group, kind = subject.get("apiGroup", ""), subject.get("kind", "")
    if kind == "ServiceAccount":
        problems += each(f"{path}.name", subject["name"], dns_subdomain(subject["name"])) if subject.get("name") else []
        if group:
            problems.append(unsupported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            problems.append(required(f"{path}.namespace"))
    elif kind in {"User", "Group"}:
        if group != GROUP:
            problems.append(unsupported(f"{path}.apiGroup", group, (GROUP,)))
    else:
        problems.append(unsupported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    return problems
