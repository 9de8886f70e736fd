"""Fields that a writer may not choose: identities, metadata, statuses, what is immutable, and what others would believe."""

from __future__ import annotations

from typing import Any

from conformance.bodies import (
    CM,
    CORE,
    DEPLOYMENT,
    NAMESPACE,
    POD,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    Tree,
    configmap,
    deployment,
    merged,
    named,
    pod,
    secret,
    service,
)
from conformance.scenario import Step, Until, delete, get, patch, post, put, scenario
from conformance.scenarios.certificates import CSR as CSRS, request

ROWS = "Metadata, Kinds, Status errors"
RBAC = "rbac.authorization.k8s.io"
AS_USER = (("Impersonate-User", "{u}"),)
AUTHENTICATION, AUTHORIZATION = "/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1"

RULES = [
    {"apiGroups": [""], "resources": ["configmaps", "pods"], "verbs": ["*"]},
    {"apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "verbs": ["*"]},
]
USER: list[Step] = [
    post(ROLE, named(f"{RBAC}/v1", "Role", "m", rules=RULES)),
    post(ROLE_BINDING, named(f"{RBAC}/v1", "RoleBinding", "m", roleRef={"apiGroup": RBAC, "kind": "Role", "name": "m"}, subjects=[{"kind": "User", "apiGroup": RBAC, "name": "{u}"}])),
    Until(get(CM, headers=AS_USER), 200),
]  # fmt: skip

APPROVED = {"conditions": [{"type": "Approved", "status": "True", "reason": "x", "message": "x", "lastUpdateTime": "2026-01-01T00:00:00Z"}], "certificate": "YQ=="}  # fmt: skip
IDENTITY = {"username": "spoofed", "groups": ["system:masters"], "uid": "1", "extra": {"a": ["b"]}}


def signed(tree: Tree) -> Any:
    """Who asks for a certificate, and what of it was granted; the administrators of the servers have other names."""
    if tree["kind"] == "Status":
        return tree
    spec = tree["spec"]
    spoofed = {name: spec.get(name) == value for name, value in IDENTITY.items() if name != "groups"}
    return spoofed | {"status": tree.get("status"), "signerName": spec["signerName"]}


SPOOFED = {
    "uid": "11111111-1111-1111-1111-111111111111", "creationTimestamp": "2000-01-01T00:00:00Z", "deletionTimestamp": "2000-01-01T00:00:00Z",
    "deletionGracePeriodSeconds": 5, "generation": 77, "selfLink": "/x",
}  # fmt: skip
OWNER = {"apiVersion": "v1", "kind": "Pod", "controller": True}
#: Changes of a Pod.
POD_PATCHES: list[Tree] = [
    {"spec": {"serviceAccountName": "x"}}, {"spec": {"nodeName": "n"}}, {"spec": {"hostNetwork": True}},
    {"spec": {"containers": [{"name": "main", "image": "y", "command": ["x"]}]}}, {"spec": {"containers": [{"name": "main", "image": "y"}]}},
    {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}]}}, {"spec": {"tolerations": [{"operator": "Exists"}]}},
    {"spec": {"automountServiceAccountToken": False}}, {"spec": {"priority": 5}}, {"spec": {"schedulingGates": [{"name": "a"}]}},
    {"spec": {"shareProcessNamespace": True}}, {"spec": {"containers": [{"name": "main", "image": "x", "resources": {"limits": {"cpu": "1"}}}]}},
    {"spec": {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]}}, {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}},
    {"metadata": {"annotations": {"container.seccomp.security.alpha.kubernetes.io/main": "unconfined"}}},
]  # fmt: skip
EPHEMERAL: list[Tree] = [
    {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}]}}, {"spec": {"ephemeralContainers": [{"name": "e", "image": "y"}]}},
    {"spec": {"ephemeralContainers": []}}, {"spec": {"hostPID": True, "containers": [{"name": "main", "image": "evil"}]}, "metadata": {"labels": {"x": "y"}}},
    {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}, {"name": "f", "image": "x", "ports": [{"containerPort": 1}]}]}},
]  # fmt: skip
TOKENS, REVIEW = f"{AUTHENTICATION}/tokenreviews", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}


def role_binding(name: str, kind: str, role: str, **fields: Any) -> Tree:
    """A binding to a role."""
    return named(f"{RBAC}/v1", "RoleBinding", name, roleRef={"apiGroup": RBAC, "kind": kind, "name": role}, **fields)


def slice_of(name: str, address: str) -> Tree:
    """An EndpointSlice with one address."""
    return named("discovery.k8s.io/v1", "EndpointSlice", name, addressType="IPv4", endpoints=[{"addresses": [address]}])


def target(kind: str, name: str) -> Tree:
    """A binding of a Pod."""
    return named("v1", "Binding", "a", target={"kind": kind, "name": name})


SLICES = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"

SCENARIOS = [
    scenario(
        "certificate-requests", "Kinds, Subresources",
        post(CSRS, merged(request(), {"spec": IDENTITY, "status": APPROVED}), focus=signed),
        patch(f"{CSRS}/{{free}}", {"status": APPROVED, "spec": {"username": "spoofed"}}, focus=signed),
        patch(f"{CSRS}/{{free}}/approval", {"status": APPROVED}, headers=AS_USER),
        patch(f"{CSRS}/{{free}}/status", {"status": {"certificate": "YQ=="}}, headers=AS_USER),
        patch(f"{CSRS}/{{free}}/status", {"metadata": {"labels": {"a": "b"}, "finalizers": ["a.b/c"]}, "spec": {"username": "spoofed"}}, focus=lambda tree: tree if tree["kind"] == "Status" else (tree["metadata"].get("labels"), tree["metadata"].get("finalizers"), tree["spec"].get("username") == "spoofed")),
        patch(f"{CSRS}/{{free}}/approval", {"metadata": {"labels": {"a": "b"}, "finalizers": ["a.b/c"]}, "spec": {"username": "spoofed"}}, focus=lambda tree: tree if tree["kind"] == "Status" else (tree["metadata"].get("labels"), tree["metadata"].get("finalizers"), tree["spec"].get("username") == "spoofed")),
        delete(f"{CSRS}/{{free}}", focus=lambda tree: tree["status"] if tree["kind"] == "Status" else tree["kind"]),
    ),
    scenario(
        "metadata", ROWS, USER,
        post(CM, configmap("sp", **SPOOFED), headers=AS_USER), get(f"{CM}/sp"), post(CM, configmap("rv", resourceVersion="5"), headers=AS_USER),
        [patch(f"{CM}/sp", {"metadata": change}, headers=AS_USER) for change in ({"uid": "x"}, {"name": "x"}, {"namespace": "kube-system"}, {"deletionTimestamp": None, "finalizers": ["a.b/c"]}, {"finalizers": ["x"]})],
        patch(f"{CM}/sp", {"kind": "Secret"}, headers=AS_USER),
        patch(f"{CM}/sp", [{"op": "replace", "path": "/metadata/creationTimestamp", "value": "2001-01-01T00:00:00Z"}], "json", headers=AS_USER),
        patch(f"{CM}/sp", {"metadata": {"finalizers": ["a.b/c"]}}, headers=AS_USER), delete(f"{CM}/sp", headers=AS_USER),
        patch(f"{CM}/sp", {"metadata": {"finalizers": ["a.b/c", "d.e/f"]}}, headers=AS_USER),
        put(f"{CM}/sp", configmap("sp", finalizers=["a.b/c"], deletionTimestamp=None), headers=AS_USER),
        post(CM, configmap("ow", ownerReferences=[{"apiVersion": "v1", "kind": "Event", "name": "x", "uid": "y"}]), headers=AS_USER),
        post(CM, configmap("ow2", ownerReferences=[OWNER | {"name": each, "uid": each} for each in "ab"]), headers=AS_USER),
    ),
    scenario("pods", ROWS, post(POD, pod()), [patch(f"{POD}/a", change) for change in POD_PATCHES]),
    scenario("ephemeral-containers", ROWS, post(POD, pod()), [patch(f"{POD}/a/ephemeralcontainers", change) for change in EPHEMERAL], patch(f"{POD}/a/resize", {"spec": {"hostPID": True, "containers": [{"name": "main", "image": "evil"}]}})),
    scenario(
        "secrets", ROWS,
        post(SECRET, secret("im", immutable=True, data={})), [patch(f"{SECRET}/im", change) for change in ({"stringData": {"a": "b"}}, {"immutable": False}, {"type": "x"})],
        post(SECRET, secret("t", type="kubernetes.io/service-account-token")), post("/api/v1/namespaces/kube-system/secrets", secret("t", type="bootstrap.kubernetes.io/token"), dryRun="All"),
    ),
    scenario(
        "roles", ROWS, USER, post(ROLE_BINDING, role_binding("rb", "Role", "m")), patch(f"{ROLE_BINDING}/rb", {"roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}}),
        post(ROLE_BINDING, role_binding("x", "ClusterRole", "cluster-admin", subjects=[]), headers=AS_USER),
        post(ROLE, named(f"{RBAC}/v1", "Role", "nr", rules=[{"nonResourceURLs": ["*"], "verbs": ["*"]}]), headers=AS_USER),
        post(ROLE_BINDING, role_binding("y", "Role", "../../clusterroles/cluster-admin"), headers=AS_USER), post(ROLE_BINDING, role_binding("z", "Role", "later"), headers=AS_USER),
    ),
    scenario(
        "reviews", ROWS, USER,
        post(f"{AUTHENTICATION}/selfsubjectreviews", {"status": {"userInfo": {"username": "admin"}}}, headers=AS_USER),
        post(TOKENS, REVIEW | {"spec": {"token": "x"}}, headers=AS_USER),
        post(TOKENS, REVIEW | {"spec": {"token": "x"}, "status": {"authenticated": True, "user": {"username": "admin"}, "audiences": ["a"], "error": "e"}}),
        post(TOKENS, REVIEW | {"spec": {"token": "x"}, "status": {"authenticated": True, "user": {}}}),
        post(TOKENS, REVIEW | {"spec": {"token": "a.b.c", "audiences": ["x"]}, "status": {"user": {"groups": ["system:masters"]}}}),
        post(f"{AUTHORIZATION}/subjectaccessreviews", {"spec": {"user": "admin", "resourceAttributes": {"verb": "get"}}}, headers=AS_USER),
        post(f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}, "status": {"allowed": True}}, headers=AS_USER),
    ),
    scenario(
        "addresses", ROWS, post(SERVICE, service("s")), [patch(f"{SERVICE}/s", {"spec": change}) for change in ({"externalIPs": ["192.0.2.8"]}, {"externalIPs": ["127.0.0.1"]})],
        [post(SLICES, slice_of(f"e{index}", address)) for index, address in enumerate(("169.254.169.254", "127.0.0.1"))],
        post(f"{CORE}/endpoints", named("v1", "Endpoints", "e", subsets=[{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": 1}]}])),
    ),
    scenario(
        "others", ROWS, USER, delete(f"{NAMESPACE}/kube-system", dryRun="All", focus=lambda tree: (tree["kind"], tree.get("message"))),
        delete(f"{SERVICE_ACCOUNT}/default", dryRun="All", focus=lambda tree: tree["kind"]), post(POD, pod()),
        [post(f"{POD}/a/binding", target(*each)) for each in (("Node", "n"), ("Node", "n2"), ("Secret", "n"))],
        post(DEPLOYMENT, deployment()), patch(f"{DEPLOYMENT}/a/scale", {"spec": {"replicas": -1}}), patch(f"{DEPLOYMENT}/a", {"spec": {"selector": {"matchLabels": {"c": "d"}}}}),
        [post(PRIORITIES, named("scheduling.k8s.io/v1", "PriorityClass", name, value=value), dryRun="All") for name, value in (("system-evil", 5), ("{free}", 2000000000))],
        [post(POD, pod("sys", **spec), headers=AS_USER, dryRun="All") for spec in ({"priorityClassName": "system-node-critical"}, {"priority": 2000001000})],
    ),
]  # fmt: skip
