"""Requests of a user who tries to get more than its role allows: by paths, methods, headers, names and subresources."""

from __future__ import annotations

from typing import Any

from conformance.bodies import (
    CM,
    DEPLOYMENT,
    NAMESPACE,
    POD,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Tree,
    configmap,
    container,
    deployment,
    merged,
    named,
    namespace,
    pod,
    secret,
    service_account,
)
from conformance.scenario import Call, Step, Until, call, delete, get, patch, post, put, scenario

ROWS = "Status errors"
RBAC = "rbac.authorization.k8s.io"
ACCOUNT = "system:serviceaccount:{ns}:m"
AS_USER = (("Impersonate-User", ACCOUNT),)
CORE = "/api/v1/namespaces/"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"

#: Secrets by one name, everything about ConfigMaps and Pods, and scales.
RULES = [
    {"apiGroups": [""], "resources": ["configmaps", "pods", "pods/ephemeralcontainers"], "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["only"], "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]},
    {"apiGroups": ["apps"], "resources": ["*/scale"], "verbs": ["*"]},
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create", "get"]},
    {"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": ["m"], "verbs": ["create"]},
]  # fmt: skip
USER: list[Step] = [
    post(SERVICE_ACCOUNT, service_account("m")),
    post(ROLE, named(f"{RBAC}/v1", "Role", "m", rules=RULES)),
    post(ROLE_BINDING, named(f"{RBAC}/v1", "RoleBinding", "m", roleRef={"apiGroup": RBAC, "kind": "Role", "name": "m"}, subjects=[{"kind": "ServiceAccount", "name": "m", "namespace": "{ns}"}])),
    post(SECRET, secret("hidden")),
    post(SECRET, secret("only")),
    post(f"{CORE}{{ns2}}/secrets", secret("only")),
    Until(get(f"{SECRET}/only", headers=AS_USER), 200),
]  # fmt: skip


def told(tree: Any) -> Any:
    """The names of a list, or what a refusal says."""
    return [each["metadata"]["name"] for each in tree["items"]] if isinstance(tree, dict) and "items" in tree else tree


def asked(path: str, method: str = "GET", headers: tuple[tuple[str, str], ...] = ()) -> Call:
    """A request of the user; what stands behind a question mark is the query."""
    path, _, query = path.partition("?")
    pairs = tuple(tuple(each.partition("=")[::2]) for each in query.split("&") if each)
    return Call(method, path, pairs, AS_USER + headers, focus=told if method == "GET" else None)


HERE, THERE = f"{CORE}{{ns}}", f"{CORE}{{ns2}}"
SELECTORS = [
    "metadata.name=only", "metadata.name=only,metadata.name=hidden", "metadata.name!=hidden", "metadata.name==only",
]  # fmt: skip
PATHS = [
    f"{SECRET}", f"{SECRET}/hidden", f"{SECRET}/only",
    "/api/v1/watch/namespaces/{ns}/secrets", "/api/v1/watch/namespaces/{ns}/secrets/hidden", "/api/v1/watch/secrets",
    f"{HERE}//secrets/hidden", "//api/v1/namespaces/{ns}/secrets/hidden", f"{SECRET}//hidden", f"{HERE}/./secrets/hidden",
    f"{HERE}/../{{ns2}}/secrets/only", f"{SECRET}/only/../hidden", f"{SECRET}/%6fnly", f"{SECRET}/only%2f..%2fhidden",
    f"{SECRET}/only/%2e%2e/hidden", f"{SECRET}/only/", f"{SECRET}/only/status", f"{SECRET}/",
    "/API/v1/namespaces/{ns}/secrets/only", "/api/V1/namespaces/{ns}/secrets/only", "/api//v1/secrets",
    f"{HERE}/SECRETS/hidden", f"{SECRET}/hidden;x=only", f"{SECRET}/hidden?name=only", f"{HERE}%2fsecrets",
    f"{CORE}{{free}}/secrets/only", f"{POD}/x/proxy/../../secrets/hidden", f"{HERE}/services/https:kubernetes:443/proxy/",
    f"{CM}/../secrets/hidden", f"{DEPLOYMENT}/x/scale/../", "/apis//v1/namespaces/{ns}/secrets/hidden",
    "/api/v1/proxy/namespaces/{ns}/pods/x", "/api/v1/proxy/namespaces/{ns}/secrets/hidden", "/api/v1/redirect/namespaces/{ns}/pods/x",
    f"{HERE}/namespaces/{{ns}}", f"{HERE}/finalize", "/api/v1/secrets", "/api/v1//secrets", "/api/v1/namespaces//secrets",
    "/apis/apps//namespaces/{ns}/deployments", "/apis/apps/v1//deployments", "/apis/apps/v1/namespaces/{ns}//deployments/x",
    "/apis//apps/v1/deployments", "/api/v1/namespaces/{ns}/pods/x//log", "/api/v1/namespaces/{ns}/pods//x",
]  # fmt: skip
#: Paths without resources.
OTHERS = [
    "/debug/pprof/", "/logs/", "/openapi/v2/../../api/v1/secrets", "/healthz/../api/v1/secrets", "/livez/verbose",
    "/version/../metrics", "/statusz", "/flagz", "/configz", "/debug/api_priority_and_fairness/dump_requests", "/metrics",
]  # fmt: skip
HEADERS = [
    (("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters")),
    (("X-HTTP-Method-Override", "DELETE"),),
    (("Impersonate-User", "admin"),),
]

MERGE = {"data": {"a": "1"}}
PATCHES: list[tuple[str, Any]] = [
    ("merge", MERGE),
    ("json", [{"op": "add", "path": "/data", "value": {"a": "1"}}]),
    ("strategic", MERGE),
    ("apply", named("v1", "ConfigMap", "c", data={"a": "1"})),
]
BINDING = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "n", "kind": "Node"}}
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d", "namespace": "{ns}"}, "spec": {"replicas": 5}}  # fmt: skip
REVIEW = {"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview", "metadata": {"namespace": "{ns}"}, "spec": {"user": "x", "resourceAttributes": {"namespace": "{ns}", "verb": "get"}}}  # fmt: skip
EVENT = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "{ns}"}}
#: What is in this namespace, and the namespace: a selector of namespaces selects all other objects without one.
DENIED = [
    {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"], "scope": "Namespaced"},
    {"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["namespaces", "namespaces/*"]},
]
DENIAL: list[Step] = [
    post(DEPLOYMENT, deployment("d")), post(POD, pod("p")), post(CM, configmap("c")), post(SERVICE_ACCOUNT, service_account("a")),
    post(f"{ADMISSION}/validatingadmissionpolicies", named("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "{free}", spec={"failurePolicy": "Fail", "matchConstraints": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "{ns}"}}, "resourceRules": DENIED}, "validations": [{"expression": "false", "message": "no"}]}), focus=lambda tree: tree["kind"]),
    post(f"{ADMISSION}/validatingadmissionpolicybindings", named("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "{free}", spec={"policyName": "{free}", "validationActions": ["Deny"]}), focus=lambda tree: tree["kind"]),
    Until(post(CM, configmap("z"), dryRun="All"), 422),
]  # fmt: skip
ALLOWANCE: list[Step] = [delete(f"{ADMISSION}/{each}/{{free}}", focus=lambda tree: tree["status"] if tree["kind"] == "Status" else tree["kind"]) for each in ("validatingadmissionpolicybindings", "validatingadmissionpolicies")]  # fmt: skip

TIGHT = f"{CORE}{{free}}/pods"
SAFE_CONTAINER = container(securityContext={"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}})
SAFE: Tree = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [SAFE_CONTAINER],
}
PRIVILEGED = container() | {"name": "e", "securityContext": {"privileged": True}}


def one(**fields: Any) -> Tree:
    """The safe spec, with this in its container."""
    return SAFE | {"containers": [merged(SAFE_CONTAINER, fields)]}


def all_of(**fields: Any) -> Tree:
    """The safe spec, with this in its security context."""
    return SAFE | {"securityContext": SAFE["securityContext"] | fields}


SPECS: list[Tree] = [
    {"containers": [PRIVILEGED]}, SAFE | {"hostUsers": False, "securityContext": {"runAsUser": 0, "seccompProfile": {"type": "RuntimeDefault"}}},
    SAFE | {"os": {"name": "windows"}, "containers": [container()]}, SAFE | {"initContainers": [PRIVILEGED]},
    *(SAFE | {"volumes": [{"name": "v"} | source]} for source in ({"hostPath": {"path": ""}}, {"hostPath": None}, {}, {"image": {"reference": "x"}})),
    one(securityContext={"capabilities": {"drop": ["all"]}}), one(securityContext={"capabilities": {"drop": ["ALL"], "add": ["CAP_SYS_ADMIN"]}}),
    one(ports=[{"containerPort": 80, "hostPort": 0}]), SAFE | {"hostNetwork": True},
    all_of(sysctls=[{"name": "kernel/msgmax", "value": "1"}]), all_of(sysctls=[{"name": "net/ipv4/tcp_syncookies", "value": "1"}]),
    one(livenessProbe={"httpGet": {"port": 80, "host": "169.254.169.254"}}), one(securityContext={"runAsUser": 0}),
    one(securityContext={"procMount": "Unmasked"}), all_of(seLinuxOptions={"type": "spc_t"}), SAFE | {"runtimeClassName": "none"},
]  # fmt: skip


def hook(**client: Any) -> Tree:
    """A webhook at this address."""
    one = {"name": "a.example.com", "clientConfig": client, "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    return named("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "{free}", webhooks=[one])


URLS = [
    "http://127.0.0.1/", "https://127.0.0.1/\r\nX: y", "https://u:p@127.0.0.1/", "https://127.0.0.1/?a=b", "https://127.0.0.1/#x",
    "file:///etc/passwd", "https:///x", "https://%2ftmp%2fx/", "https://127.0.0.1 /x",
]  # fmt: skip

SCENARIOS = [
    scenario(
        "paths", ROWS, USER, [asked(path) for path in PATHS],
        [Call("GET", SECRET, (("fieldSelector", each),), AS_USER, focus=told) for each in SELECTORS],
        Call("GET", SECRET, (("limit", "1"), ("fieldSelector", SELECTORS[0]), ("continue", "x")), AS_USER, focus=told),
        [Call("GET", "/api/v1/secrets", (("fieldSelector", each),), AS_USER, focus=told) for each in ("metadata.namespace={ns}", "metadata.name=only")],
        Call("GET", SECRET, (("watch", "1"), ("fieldSelector", "metadata.name=hidden")), AS_USER, focus=told),
        [call("DELETE", path, headers=AS_USER) for path in (f"{HERE}//secrets/hidden", f"{SECRET}//hidden", "/api/v1//secrets")],
        [call("POST", path, {}, headers=AS_USER) for path in (f"{HERE}//secrets", f"{HERE}/./secrets", "/api/v1//namespaces")],
    ),
    scenario("paths-without-resources", ROWS, USER, [asked(path) for path in OTHERS]),
    scenario("methods", ROWS, USER, [asked(f"{SECRET}/hidden", method) for method in ("HEAD", "OPTIONS", "TRACE", "PATCH", "get", "LIST", "WATCH", "PROPFIND")]),
    scenario("headers", ROWS, USER, [asked(f"{THERE}/secrets/only", headers=headers) for headers in HEADERS], asked(f"{CM}/x", headers=HEADERS[1])),
    scenario(
        "names", ROWS, USER,
        post(SECRET, secret("only"), headers=AS_USER), delete(f"{SECRET}/only", focus=lambda tree: tree["status"]),
        put(f"{SECRET}/only", secret("only"), headers=AS_USER), put(f"{SECRET}/only", secret("hidden"), headers=AS_USER),
        patch(f"{SECRET}/only", named("v1", "Secret", "only"), "apply", fieldManager="x", headers=AS_USER),
        put(f"{CM}/a", configmap("a", namespace="{ns2}"), headers=AS_USER), post(CM, configmap("a", namespace="{ns2}"), headers=AS_USER),
        Call("DELETE", SECRET, (("fieldSelector", "metadata.name=only"),), AS_USER),
        post(f"{SERVICE_ACCOUNT}/m/token", {"spec": {"expirationSeconds": 10}}, headers=AS_USER),
        post(f"{SERVICE_ACCOUNT}/m/token", {"spec": {"expirationSeconds": 1 << 33}}, headers=AS_USER),
        post(f"{SERVICE_ACCOUNT}/default/token", {"spec": {"audiences": ["x"], "expirationSeconds": 600}}, headers=AS_USER),
        patch(f"{NAMESPACE}/{{ns}}", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}, headers=AS_USER),
    ),
    scenario(
        "pod-security", ROWS,
        post(NAMESPACE, namespace("{free}", labels={"pod-security.kubernetes.io/enforce": "restricted"})), post(TIGHT, pod("ok", **SAFE)),
        patch(f"{TIGHT}/ok/ephemeralcontainers", {"spec": {"ephemeralContainers": [PRIVILEGED]}}, "strategic"),
        put(f"{TIGHT}/ok/ephemeralcontainers", pod("ok", **SAFE, ephemeralContainers=[PRIVILEGED])),
        patch(f"{TIGHT}/ok/status", {"spec": {"hostNetwork": True}, "metadata": {"labels": {"a": "b"}}}),
        patch(f"{TIGHT}/ok", {"spec": {"activeDeadlineSeconds": 5}}),
        [post(TIGHT, pod("x", **spec), dryRun="All") for spec in SPECS],
        patch(f"{NAMESPACE}/{{free}}", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "Restricted"}}}),
    ),
    scenario(
        "denied-verbs", "Webhooks, Status errors", DENIAL,
        post(CM, configmap("z")), post(CM, {"metadata": {"generateName": "z"}}, focus=lambda tree: tree["reason"]), post(CM, configmap("z"), dryRun="All"),
        put(f"{CM}/c", configmap("c", {"a": "b"})), put("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/c", named("coordination.k8s.io/v1", "Lease", "c")),
        put(f"{DEPLOYMENT}/d/scale", SCALE), put(f"{DEPLOYMENT}/d/status", deployment("d")),
        post(f"{POD}/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}),
        post(f"{POD}/p/binding", BINDING), post(f"{HERE}/bindings", BINDING),
        call("POST", f"{POD}/p/exec", command="x"), get(f"{POD}/p/attach"), call("POST", f"{POD}/p/portforward"), get(f"{POD}/p/proxy/x"),
        post(f"{SERVICE_ACCOUNT}/a/token", {"spec": {}}), delete(f"{CM}/c"), delete(f"{CM}/c", dryRun="All"), delete(CM),
        post("/apis/authorization.k8s.io/v1/namespaces/{ns}/localsubjectaccessreviews", REVIEW),
        put(f"{HERE}/finalize", {"metadata": {"name": "{ns}"}, "spec": {}}), delete(HERE, dryRun="All"), post(f"{HERE}/events", EVENT),
        [patch(f"{CM}/c", body, kind, fieldManager="x") if kind == "apply" else patch(f"{CM}/c", body, kind) for kind, body in PATCHES],
        [patch(f"{CM}/new", merged(body, {"metadata": {"name": "new"}}) if kind == "apply" else body, kind, fieldManager="x") for kind, body in PATCHES],
        [patch(f"{DEPLOYMENT}/d/scale", [{"op": "replace", "path": "/spec/replicas", "value": 3}] if kind == "json" else {"spec": {"replicas": 3}}, kind) for kind in ("merge", "json", "strategic")],
        [patch(f"{POD}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}]}}, kind) for kind in ("merge", "strategic")],
        ALLOWANCE,
    ),
    scenario(
        "addresses-of-webhooks", "Webhooks, Status errors",
        [post(f"{ADMISSION}/validatingwebhookconfigurations", hook(url=url), dryRun="All") for url in URLS],
        [post(f"{ADMISSION}/validatingwebhookconfigurations", hook(service={"namespace": "a", "name": "b", "path": path}), dryRun="All") for path in ("/a\r\nHost: x", "/a?b", "/../x", "/%2e%2e/x", "//x")],
    ),
]  # fmt: skip
