"""Roles and bindings: a user grants only what the user holds, unless the user may escalate or bind."""

from __future__ import annotations

from typing import Any

from conformance.bodies import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, SECRET, merged, named, secret
from conformance.scenario import Step, Until, delete, get, patch, post, put, scenario

V1 = "rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
AS_USER = (("Impersonate-User", "{u}"),)
WHO = {"kind": "User", "apiGroup": GROUP, "name": "{u}"}
WRITES = {
    "apiGroups": [GROUP],
    "resources": ["*"],
    "verbs": ["get", "create", "update", "patch", "delete", "deletecollection", "list"],
}
READS = {"apiGroups": ["", "apps"], "resources": ["configmaps", "*/scale", "pods/log"], "verbs": ["get", "list"]}
ONE = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one", "two"], "verbs": ["get", "update"]}
PATHS = {"nonResourceURLs": ["/metrics", "/logs/*"], "verbs": ["get"]}
ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


def role(name: str = "a", *rules: Any, kind: str = "Role", **fields: Any) -> dict[str, Any]:
    """A role with rules."""
    return named(V1, kind, name, rules=list(rules), **fields)


def cluster_role(name: str = "{free}", *rules: Any, **fields: Any) -> dict[str, Any]:
    """A ClusterRole with rules."""
    return role(name, *rules, kind="ClusterRole", **fields)


def binding(name: str, ref: str, *subjects: Any, kind: str = "RoleBinding", of: str = "ClusterRole") -> dict[str, Any]:
    """A binding of a role."""
    return named(V1, kind, name, roleRef={"apiGroup": GROUP, "kind": of, "name": ref}, subjects=list(subjects))


def cluster_binding(name: str, ref: str, *subjects: Any) -> dict[str, Any]:
    """A ClusterRoleBinding."""
    return binding(name, ref, *subjects, kind="ClusterRoleBinding")


def rule(resources: str, verbs: str, groups: str = "core", **more: Any) -> dict[str, Any]:
    """A rule; words are separated by blanks."""
    named_groups = ["" if group == "core" else group for group in groups.split()]
    return {"apiGroups": named_groups, "resources": resources.split(), "verbs": verbs.split(), **more}


def user_with(*rules: Any) -> list[Step]:
    """A user who has these rules everywhere, and may write roles; waits until both servers know."""
    return [
        post(CLUSTER_ROLE, cluster_role("{u}", WRITES, *rules)),
        post(CLUSTER_ROLE_BINDING, cluster_binding("{u}", "{u}", WHO)),
        Until(get(f"{ROLE}/none", headers=AS_USER), 404),
    ]


def user_in_namespace(*rules: Any) -> list[Step]:
    """A user who has these rules in one namespace, and may write roles there."""
    return [
        post(ROLE, role("own", WRITES, *rules)),
        post(ROLE_BINDING, binding("own", "own", WHO, of="Role")),
        Until(get(f"{ROLE}/none", headers=AS_USER), 404),
    ]


def asked(*bodies: dict[str, Any], path: str = ROLE) -> list[Step]:
    """Tries to create each as the user."""
    return [post(path, body, headers=AS_USER) for body in bodies]


WANTED = [
    rule("configmaps", "get"),
    rule("configmaps", "get list"),
    rule("configmaps", "watch"),
    rule("configmaps", "get list watch"),
    rule("configmaps", "*"),
    rule("*", "get"),
    rule("configmaps", "get", groups="*"),
    rule("configmaps secrets", "get list", groups="core apps batch"),
    rule("deployments/scale", "get", groups="apps"),
    rule("*/scale", "list", groups="apps"),
    rule("*/status", "list", groups="apps"),
    rule("scale deployments/scale/x /scale deployments/", "get", groups="apps"),
    rule("pods", "get"),
    rule("pods/log pods/exec", "get"),
    rule("pods/*", "get"),
    rule("secrets", "get", resourceNames=["one"]),
    rule("secrets", "get update", resourceNames=["one", "two"]),
    rule("secrets", "get update delete", resourceNames=["one", "three"]),
    rule("secrets", "get", resourceNames=[""]),
    rule("secrets", "get"),
    rule("secrets", "get", resourceNames=[]),
    rule("configmaps", "get", resourceNames=["any"]),
    rule("configmaps", "get get delete delete"),
    rule('quo"ted', "tab\tbed ü"),
]  # fmt: skip

SCENARIOS = [
    *(
        scenario(f"rule-{index}", "Status errors, Kinds", user_with(READS, ONE, PATHS), asked(role("a", wanted)), asked(cluster_role("{free}", wanted), path=CLUSTER_ROLE))
        for index, wanted in enumerate(WANTED)
    ),
    scenario(
        "paths",
        "Status errors, Kinds",
        user_with(READS, PATHS),
        *[
            [*asked(cluster_role("{free}", {"nonResourceURLs": urls, "verbs": verbs}), path=CLUSTER_ROLE), delete(f"{CLUSTER_ROLE}/{{free}}")]
            for urls, verbs in ((["/metrics"], ["get"]), (["/metrics/x"], ["get"]), (["/logs/a", "/logs/*"], ["get"]), (["/logs"], ["get"]), (["/log*", "*"], ["get"]), (["/metrics", "/b"], ["get", "put", "post"]), (["/metrics"], ["*"]), (["/logs/**", "/logs/a*b"], ["get"]))
        ],
        asked(role("a", PATHS), cluster_role("{free}", merged(PATHS, {"resources": ["pods"]}))),
    ),
    scenario(
        "several-rules",
        "Status errors, Kinds",
        user_with(READS, ONE, PATHS),
        asked(role("a"), role("b", READS, ONE), role("c", READS, rule("nodes", "get"), ALL, rule("nodes", "list get"), rule("pods", "get", resourceNames=["x"]), rule("pods", "list", resourceNames=["x"]))),
        asked(cluster_role("{free}", READS, ALL, {"nonResourceURLs": ["*"], "verbs": ["*"]}), path=CLUSTER_ROLE),
        asked(role("", ALL), merged(role("x", ALL), {"metadata": {"name": None, "generateName": "g-"}}), role("Bad name", ALL), role("a/b", ALL)),
        asked(role("d", {"apiGroups": ["apps"]}), role("d", {"apiGroups": ["apps"], "resources": ["x"], "verbs": []}), role("d", merged(ALL, {"verbs": []}))),
        post(ROLE, role("e", ALL), headers=AS_USER, dryRun="All"),
        post(ROLE, role("e", READS), headers=AS_USER, dryRun="All"),
        post(f"{ROLE}", role("b", ALL), headers=AS_USER),
        post(ROLE, role("e", ALL), headers=(*AS_USER, ("Impersonate-Group", "one"), ("Impersonate-Group", 'two "x"'))),
        post(ROLE, role("e", ALL), headers=(*AS_USER, ("Impersonate-Group", "system:masters"))),
    ),
    scenario(
        "in-a-namespace",
        "Status errors, Kinds, Namespaces",
        user_in_namespace(READS),
        asked(role("a", READS), role("b", ALL)),
        asked(cluster_role("{free}", READS), path=CLUSTER_ROLE),
        post(CLUSTER_ROLE, cluster_role("{free}", READS)),
        post(CLUSTER_ROLE, cluster_role("{free2}", READS, rule("nodes", "get"))),
        asked(binding("a", "{free}"), binding("b", "{free2}", WHO), binding("c", "cluster-admin", WHO), binding("d", "own", WHO, of="Role"), path=ROLE_BINDING),
        asked(cluster_binding("{u}", "{free}", WHO), path=CLUSTER_ROLE_BINDING),
    ),
    scenario(
        "bindings",
        "Status errors, Kinds",
        user_with(READS, ONE),
        post(ROLE, role("low", READS)),
        post(ROLE, role("high", ALL)),
        asked(
            binding("a", "low", WHO, of="Role"), binding("b", "high", WHO, of="Role"), binding("c", "cluster-admin"), binding("d", "{u}", {"kind": "Group", "apiGroup": GROUP, "name": "system:masters"}),
            binding("e", "none"), binding("e", "none", of="Role"), binding("e", "none", of="Other"), binding("e", "", of="Role"), binding("e", "cluster-admin", of="Role"), binding("e", "a/b"),
            merged(binding("e", "cluster-admin"), {"roleRef": {"apiGroup": "other.io"}}), merged(binding("e", "cluster-admin"), {"roleRef": {"apiGroup": ""}}), merged(binding("e", "cluster-admin"), {"roleRef": {"kind": ""}}),
            merged(binding("e", "cluster-admin"), {"metadata": {"name": None, "generateName": "g-"}}), merged(binding("e", "cluster-admin"), {"roleRef": None}),
            path=ROLE_BINDING,
        ),
        asked(cluster_binding("{free}", "cluster-admin", WHO), cluster_binding("{free}", "none", WHO), merged(cluster_binding("{free}", "low"), {"roleRef": {"kind": "Role"}}), cluster_binding("{free}", "{u}"), path=CLUSTER_ROLE_BINDING),
    ),
    scenario(
        "changes-of-roles",
        "Status errors, Update, Patch, Apply, dryRun",
        user_with(READS),
        post(ROLE, role("low", READS)),
        post(ROLE, role("high", ALL)),
        put(f"{ROLE}/low", role("low", ALL), headers=AS_USER),
        put(f"{ROLE}/low", role("low", ALL), headers=AS_USER, dryRun="All"),
        put(f"{ROLE}/low", role("low", rule("configmaps", "get")), headers=AS_USER),
        put(f"{ROLE}/new", role("new", ALL), headers=AS_USER),
        put(f"{ROLE}/new", role("new", READS), headers=AS_USER),
        patch(f"{ROLE}/low", {"rules": [ALL]}, headers=AS_USER),
        patch(f"{ROLE}/low", {"rules": [ALL]}, "strategic", headers=AS_USER),
        patch(f"{ROLE}/low", [{"op": "add", "path": "/rules/0/verbs/-", "value": "*"}], "json", headers=AS_USER),
        patch(f"{ROLE}/low", role("low", ALL), "apply", headers=AS_USER, fieldManager="m", force="true"),
        patch(f"{ROLE}/applied", role("applied", ALL), "apply", headers=AS_USER, fieldManager="m"),
        patch(f"{ROLE}/applied", role("applied", READS), "apply", headers=AS_USER, fieldManager="m"),
        patch(f"{ROLE}/high", {"metadata": {"labels": {"a": "b"}}}, headers=AS_USER),
        patch(f"{ROLE}/high", {"metadata": {"finalizers": ["example.com/x"]}}, headers=AS_USER),
        patch(f"{ROLE}/high", {"metadata": {"finalizers": [], "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}}, headers=AS_USER),
        patch(f"{ROLE}/high", {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}, headers=AS_USER),
        patch(f"{ROLE}/high", {}, headers=AS_USER),
        patch(f"{ROLE}/high", {"rules": []}, headers=AS_USER),
        put(f"{ROLE}/low", merged(role("low", ALL), {"metadata": {"resourceVersion": "1"}}), headers=AS_USER),
        put(f"{ROLE}/low", merged(role("low", ALL), {"metadata": {"uid": "x"}}), headers=AS_USER),
        put(f"{ROLE}/low", merged(role("low", ALL), {"metadata": {"labels": {"bad label": "b"}}}), headers=AS_USER),
        get(ROLE),
    ),
    scenario(
        "changes-of-bindings",
        "Status errors, Update, Patch, Apply",
        user_with(READS),
        post(ROLE, role("low", READS)),
        post(ROLE_BINDING, binding("low", "low", of="Role")),
        post(ROLE_BINDING, binding("high", "cluster-admin")),
        put(f"{ROLE_BINDING}/low", binding("low", "low", WHO, of="Role"), headers=AS_USER),
        put(f"{ROLE_BINDING}/low", binding("low", "cluster-admin", WHO), headers=AS_USER),
        put(f"{ROLE_BINDING}/high", binding("high", "cluster-admin", WHO), headers=AS_USER),
        put(f"{ROLE_BINDING}/high", binding("high", "low", WHO, of="Role"), headers=AS_USER),
        put(f"{ROLE_BINDING}/new", binding("new", "cluster-admin", WHO), headers=AS_USER),
        patch(f"{ROLE_BINDING}/high", {"subjects": [WHO]}, headers=AS_USER),
        patch(f"{ROLE_BINDING}/high", {"subjects": None}, headers=AS_USER),
        patch(f"{ROLE_BINDING}/high", {"metadata": {"finalizers": ["example.com/x"]}}, headers=AS_USER),
        patch(f"{ROLE_BINDING}/high", [{"op": "add", "path": "/subjects", "value": [WHO]}], "json", headers=AS_USER),
        patch(f"{ROLE_BINDING}/high", binding("high", "cluster-admin", WHO), "apply", headers=AS_USER, fieldManager="m", force="true"),
        patch(f"{ROLE_BINDING}/applied", binding("applied", "cluster-admin", WHO), "apply", headers=AS_USER, fieldManager="m"),
        delete(f"{ROLE}/low"),
        patch(f"{ROLE_BINDING}/low", {"subjects": [WHO, WHO]}, headers=AS_USER),
        delete(f"{ROLE_BINDING}/high", headers=AS_USER),
        get(ROLE_BINDING),
    ),
    scenario(
        "escalate-and-bind",
        "Status errors, Kinds",
        user_with(rule("roles", "escalate", groups=GROUP, resourceNames=["named"]), rule("clusterroles", "bind", groups=GROUP, resourceNames=["cluster-admin", "none"])),
        post(ROLE, role("named", READS)),
        put(f"{ROLE}/named", role("named", ALL), headers=AS_USER),
        asked(role("named2", ALL)),
        asked(cluster_role("{free}", ALL), path=CLUSTER_ROLE),
        asked(binding("a", "cluster-admin", WHO), binding("b", "none"), binding("c", "named", of="Role"), binding("d", "cluster-admin", of="Role"), path=ROLE_BINDING),
        post(SECRET, secret("a")),
        delete(f"{ROLE_BINDING}/a"),
    ),
    scenario(
        "escalate-anything",
        "Status errors, Kinds",
        user_in_namespace(rule("roles", "escalate", groups=GROUP)),
        asked(role("a", ALL), role("b", {"apiGroups": []})),
        asked(binding("a", "a", WHO, of="Role"), path=ROLE_BINDING),
        asked(cluster_role("{free}", ALL), path=CLUSTER_ROLE),
    ),
    scenario(
        "aggregation",
        "Status errors, Kinds, Update",
        user_with(READS),
        asked(cluster_role("{free}", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "{free}"}}]}), cluster_role("{free}", READS, aggregationRule={"clusterRoleSelectors": []}), cluster_role("{free}", ALL, aggregationRule={"clusterRoleSelectors": [{}]}), path=CLUSTER_ROLE),
        post(CLUSTER_ROLE, cluster_role("{free2}", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "{free}"}}]})),
        put(f"{CLUSTER_ROLE}/{{free2}}", cluster_role("{free2}"), headers=AS_USER),
        patch(f"{CLUSTER_ROLE}/{{free2}}", {"aggregationRule": None}, headers=AS_USER),
        patch(f"{CLUSTER_ROLE}/{{free2}}", {"metadata": {"labels": {"a": "b"}}}, headers=AS_USER),
        patch(f"{CLUSTER_ROLE}/{{free2}}", {"metadata": {"finalizers": ["example.com/x"]}}, headers=AS_USER),
        patch(f"{CLUSTER_ROLE}/{{free2}}", {"metadata": {"finalizers": None}}),
    ),
    scenario(
        "roles-that-are-missing",
        "Status errors, Kinds",
        user_with(READS),
        post(CLUSTER_ROLE_BINDING, cluster_binding("{free}", "{u2}", WHO)),
        asked(role("a", ALL)),
        post(CLUSTER_ROLE_BINDING, cluster_binding("{free2}", "{u3}", WHO)),
        post(ROLE_BINDING, binding("x", "gone", WHO, of="Role")),
        asked(role("a", ALL), role("b", READS)),
        delete(f"{CLUSTER_ROLE_BINDING}/{{free}}"),
        delete(f"{CLUSTER_ROLE_BINDING}/{{free2}}"),
    ),
]  # fmt: skip
