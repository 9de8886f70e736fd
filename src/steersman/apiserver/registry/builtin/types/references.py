"""References to other objects by group, kind and name."""

from __future__ import annotations

from steersman.apiserver.registry.builtin.types.trees import Tree
from steersman.objects.field_problems import FieldProblem, each, required
from steersman.schemas.names import dns_subdomain, path_segment


def path_segment_problems(path: str, tree: Tree, *names: str) -> list[FieldProblem]:
    """Check required names that must be valid path segments, such as kind and name."""
    problems: list[FieldProblem] = []
    for name in names:
        value: str = tree.get(name) or ""
        problems += each(f"{path}.{name}", value, path_segment(value)) if value else [required(f"{path}.{name}")]
    return problems


def local_reference(path: str, reference: Tree) -> list[FieldProblem]:
    """Check a reference by apiGroup, kind and name."""
    group = reference.get("apiGroup")
    problems = [] if group is None else each(f"{path}.apiGroup", group, dns_subdomain(group))
    return problems + path_segment_problems(path, reference, "kind", "name")
