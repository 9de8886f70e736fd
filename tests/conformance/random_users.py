"""Users of random requests: one who reads, one who may do most to one name, and one who may do nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.bodies import ROLE, ROLE_BINDING, Tree, binding, role
from conformance.random_kinds import RandomKind
from conformance.scenario import Step, Until, get, post

USERS = ("reader", "editor", "stranger")
_RBAC = "rbac.authorization.k8s.io"


def _group_resource(path: str) -> tuple[str, str]:
    parts = path.split("/")
    return ("" if parts[1] == "api" else parts[2]), parts[-1]


def let_in(kinds: Sequence[RandomKind]) -> list[Step]:
    """Give the users their roles in the first namespace, and wait until those count."""
    steps: list[Step] = []
    rules: dict[str, list[Tree]] = {"reader": [], "editor": []}
    # no role may grant roles: the servers would check for escalation
    ruled = [kind for kind in kinds if not kind.cluster and _group_resource(kind.path)[0] != _RBAC]
    for kind in ruled:
        group, resource = _group_resource(kind.path)
        named = {"apiGroups": [group], "resources": [resource]}
        rules["reader"].append({**named, "verbs": ["get", "list", "watch"]})
        rules["editor"].append({**named, "verbs": ["*"], "resourceNames": ["a"]})
        rules["editor"].append({**named, "verbs": ["create", "get", "list", "deletecollection"]})
    for user, allowed in rules.items():
        name = f"users-{user}"
        steps.append(post(ROLE, role(name, rules=allowed)))
        given = {"roleRef": {"kind": "Role", "name": name}, "subjects": [{"kind": "User", "name": f"{user}-{{u}}"}]}
        steps.append(post(ROLE_BINDING, binding(name, **given)))
        if ruled:
            seen = replace(get(ruled[0].path), headers=(("Impersonate-User", f"{user}-{{u}}"),))
            steps.append(Until(seen, 200))
    return steps
