"""Seams between policies, webhooks, apply, dry runs, quotas, namespaces that end, and permissions."""

from __future__ import annotations

from typing import Any

from conformance.boats import (
    BOAT,
    BOATS,
    GROUP,
    NEWER,
    STRING,
    boat,
    installed as boats_installed,
    obj,
    version,
)
from conformance.bodies import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CM,
    CORE,
    DEPLOYMENT,
    NAMESPACE,
    POD,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    binding as role_binding,
    configmap,
    deployment,
    named,
    namespace,
    pod,
    role,
    secret,
    service_account,
)
from conformance.scenario import Step, Until, delete, get, patch, post, put, scenario
from conformance.scenarios import mutating_policies as mutating, policies as validating, webhooks
from conformance.scenarios.mutating_policies import PARAM_KIND, RULE, applied as by_apply, param, patched as by_patch
from conformance.scenarios.webhooks import added, hook, patched

ROWS = "Webhooks, Apply, dryRun, Status errors"
QUOTAS = f"{CORE}/resourcequotas"
CORE_RULE = {
    "operations": ["*"],
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "resources": ["configmaps", "configmaps/*", "deployments", "deployments/*", "pods", "pods/*"],
}


def sent(path: str, body: Any, manager: str = "m", **query: Any) -> Any:
    return patch(path, body, "apply", fieldManager=manager, **query)


def params(**ref: Any) -> dict[str, Any]:
    return {"paramRef": {"parameterNotFoundAction": "Deny"} | ref}


SEEN = by_patch(
    "object.metadata.name == 'ready' ? [] : [JSONPatch{op: 'add', path: '/data/seen', value: params.metadata.annotations.key}]"
)
LABELED = by_apply("Object{metadata: Object.metadata{labels: Object.metadata.labels{seen: 'yes'}}}")
COUNT = by_patch(
    "object.metadata.name == 'ready' ? [] : [JSONPatch{op: 'add', path: '/data/count', value: has(object.data.count) ? object.data.count + 'x' : 'x'}]"
)
DOUBLED = patched(added("/data/hook", "yes"))

RBAC = "rbac.authorization.k8s.io"
ACCOUNT = "system:serviceaccount:{ns}:m"
AS = (("Impersonate-User", ACCOUNT),)


def user(*rules: Any, cluster: bool = False) -> list[Step]:
    """A user with these rules in the namespace, or in all."""
    kind, path, bind = ("ClusterRole", CLUSTER_ROLE, CLUSTER_ROLE_BINDING) if cluster else ("Role", ROLE, ROLE_BINDING)
    name = "{u}" if cluster else "m"
    subject = {"kind": "ServiceAccount", "name": "m", "namespace": "{ns}"}
    return [
        post(path, named(f"{RBAC}/v1", kind, name, rules=list(rules)), focus=lambda tree: tree["kind"]),
        post(
            bind,
            named(
                f"{RBAC}/v1",
                f"{kind}Binding",
                name,
                roleRef={"apiGroup": RBAC, "kind": kind, "name": name},
                subjects=[subject],
            ),
            focus=lambda tree: tree["kind"],
        ),
    ]


def may(verbs: str, resources: str, group: str = "", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split(), **more}


def ready(path: str, status: int = 200) -> Step:
    return Until(get(path, headers=AS), status)


SCENARIOS = [
    # policies with parameters
    *(
        scenario(
            f"mutating-params-{name}", ROWS,
            post(SERVICE_ACCOUNT, param("p", "one", labels={"param": "yes"})), post(SERVICE_ACCOUNT, param("q", "two", labels={"param": "no"})),
            install(SEEN, bound=mutating.binding(**params(**ref)), paramKind=PARAM_KIND, **more),
            post(CM, configmap("b")), sent(f"{CM}/c", configmap("c", {"own": "1"})), sent(f"{CM}/c", configmap("c", {"own": "2"}), dryRun="All"),
            sent(f"{CM}/c", configmap("c", {"own": "2", "seen": "mine"})), sent(f"{CM}/c", configmap("c", {"own": "3"}), "other"),
            get(f"{CM}/c"),
            *remove,
        )
        for name, ref, more, install, remove in [
            ("by-name", {"name": "p"}, {}, mutating.installed, mutating.REMOVED),
            ("by-selector", {"selector": {"matchLabels": {"param": "yes"}}}, {}, mutating.installed, mutating.REMOVED),
            ("elsewhere", {"name": "p", "namespace": "{ns2}"}, {"because": "no params found"}, mutating.installed, mutating.REMOVED),
            ("elsewhere-allowed", {"name": "p", "namespace": "{ns2}", "parameterNotFoundAction": "Allow"}, {}, mutating.installed_silently, mutating.REMOVED_SILENTLY),
            ("ignored", {"name": "p", "namespace": "{ns2}"}, {"failurePolicy": "Ignore"}, mutating.installed_silently, mutating.REMOVED_SILENTLY),
        ]
    ),
    *(
        scenario(
            f"validating-params-{name}", ROWS,
            post(SERVICE_ACCOUNT, param("p", "b", labels={"param": "yes"})), post(SERVICE_ACCOUNT.replace("{ns}", "{ns2}"), param("p", "c", labels={"param": "yes"})),
            install({"expression": "object == null || object.metadata.name == 'ready' || object.metadata.name != params.metadata.annotations.key", "messageExpression": "'not ' + params.metadata.annotations.key + ' in ' + params.metadata.namespace"}, bound=validating.binding(**params(**ref)), paramKind=PARAM_KIND, **more),
            post(CM, configmap("b")), post(CM, configmap("c")), sent(f"{CM}/b", configmap("b")), sent(f"{CM}/e", configmap("e"), dryRun="All"),
            remove,
        )
        for name, ref, more, install, remove in [
            ("by-name", {"name": "p"}, {}, validating.installed, validating.removed()),
            ("by-selector", {"selector": {"matchLabels": {"param": "yes"}}}, {}, validating.installed, validating.removed()),
            ("elsewhere", {"name": "p", "namespace": "{ns2}"}, {}, validating.installed, validating.removed()),
            ("allowed", {"name": "none", "parameterNotFoundAction": "Allow"}, {}, validating.installed_silently, validating.REMOVED_SILENTLY),
            ("ignored", {"name": "none"}, {"failurePolicy": "Ignore"}, validating.installed_silently, validating.REMOVED_SILENTLY),
        ]
    ),
    # mutating policies, webhooks and reinvocation
    *(
        scenario(
            f"reinvoked-{name}", ROWS,
            mutating.installed(COUNT, reinvocationPolicy=policy_again),
            webhooks.installed(hook("one", DOUBLED if changes else {}, reinvocationPolicy=hook_again, rules=[RULE]), kind="Mutating", name="{free2}"),
            post(CM, configmap("b")), sent(f"{CM}/c", configmap("c")), sent(f"{CM}/c", configmap("c")), sent(f"{CM}/c", configmap("c", {"count": "y"}), dryRun="All"),
            sent(f"{CM}/c", configmap("c", {"count": "y"}), "other"), patch(f"{CM}/c", {"data": {"count": None}}), get(f"{CM}/c"),
            *mutating.REMOVED, webhooks.removed("mutating", "{free2}"),
        )
        for name, policy_again, hook_again, changes in [
            ("never", "Never", "Never", True), ("policy", "IfNeeded", "Never", True), ("hook", "Never", "IfNeeded", True),
            ("both", "IfNeeded", "IfNeeded", True), ("unchanged", "IfNeeded", "IfNeeded", False),
        ]
    ),
    scenario(
        "hook-and-policy-touch-managed-fields", ROWS,
        mutating.installed(LABELED),
        webhooks.installed(hook("one", patched(added("/metadata/managedFields", []), added("/metadata/annotations", {"hook": "yes"})), rules=[RULE]), kind="Mutating", name="{free2}"),
        sent(f"{CM}/c", configmap("c")), patch(f"{CM}/c", {"data": {"x": "y"}}, fieldManager="u"), sent(f"{CM}/c", configmap("c", {"other": "1"})), get(f"{CM}/c"),
        *mutating.REMOVED, webhooks.removed("mutating", "{free2}"),
    ),
    scenario(
        "policy-adds-finalizers-and-owners", ROWS,
        mutating.installed(by_patch("object.metadata.name == 'ready' ? [] : [JSONPatch{op: 'add', path: '/metadata/finalizers', value: ['example.com/x']}, JSONPatch{op: 'add', path: '/metadata/ownerReferences', value: [{'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': 'o', 'uid': 'u'}]}]")),
        post(CM, configmap("b")), delete(f"{CM}/b"), patch(f"{CM}/b", {"metadata": {"finalizers": None}}), sent(f"{CM}/b", configmap("b")), get(f"{CM}/b"),
        *mutating.REMOVED,
    ),
    *(
        scenario(
            f"policy-changes-{name}", ROWS,
            mutating.installed(by_patch(f"object.metadata.name == 'ready' ? [] : [JSONPatch{{op: 'add', path: '{path}', value: {value}}}]")),
            # kube-apiserver stores a renamed object under the name in the path of an apply
            post(CM, configmap("b")), *([] if name == "its-name" else [sent(f"{CM}/c", configmap("c")), get(f"{CM}/c")]), *mutating.REMOVED,
        )
        for name, path, value in [
            ("its-name", "/metadata/name", "'z'"), ("its-namespace", "/metadata/namespace", "'default'"), ("its-uid", "/metadata/uid", "'11111111-2222-3333-4444-555555555555'"),
            ("its-version", "/metadata/resourceVersion", "'5'"), ("its-kind", "/kind", "'Secret'"), ("its-deletion", "/metadata/deletionTimestamp", "'2020-01-01T00:00:00Z'"),
            ("managed-fields", "/metadata/managedFields", "[]"), ("its-generation", "/metadata/generation", "9"), ("immutability", "/immutable", "true"), ("generate-name", "/metadata/generateName", "'g-'"),
        ]
    ),
    # subresources through admission
    *(
        scenario(
            f"{sort}-sees-subresources", ROWS,
            post(DEPLOYMENT, deployment("d")), post(POD, pod("p")),
            webhooks.installed(hook("one", {"echo": True}, rules=[CORE_RULE], matchPolicy=match), name="{free2}"),
            patch(f"{DEPLOYMENT}/d/scale", {"spec": {"replicas": 3}}), sent(f"{DEPLOYMENT}/d/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 5}}),
            sent(f"{DEPLOYMENT}/d/status", named("apps/v1", "Deployment", "d", status={"replicas": 1}), dryRun="All"), patch(f"{DEPLOYMENT}/d/status", {"status": {"replicas": 1}}),
            patch(f"{POD}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}]}}, "strategic"),
            patch(f"{POD}/p/resize", {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}}, "strategic"),
            post(f"{POD}/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}),
            post(f"{POD}/p/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}, dryRun="All"),
            delete(f"{POD}/p", gracePeriodSeconds=0), delete(POD, labelSelector="x=y"), delete(f"{DEPLOYMENT}/d", {"propagationPolicy": "Foreground", "dryRun": ["All"]}),
            webhooks.removed("validating", "{free2}"),
        )
        for sort, match in [("equivalent", "Equivalent"), ("exact", "Exact")]
    ),
    scenario(
        "side-effects-under-dry-run", ROWS,
        webhooks.installed(hook("one", DOUBLED, rules=[RULE], sideEffects="NoneOnDryRun"), kind="Mutating", name="{free2}"),
        sent(f"{CM}/c", configmap("c"), dryRun="All"), post(CM, configmap("b"), dryRun="All"), post(CM, {"metadata": {"generateName": "g-"}, "data": {}}, dryRun="All", focus=lambda tree: tree.get("data")),
        webhooks.removed("mutating", "{free2}"),
    ),
    # namespaces that end
    scenario(
        "quota-in-a-namespace-that-ends", "Quotas, Namespaces, Status errors",
        post(NAMESPACE, namespace("{free}")), put(f"{NAMESPACE}/{{free}}/finalize", named("v1", "Namespace", "{free}", spec={"finalizers": ["kubernetes", "example.com/hold"]})),
        post(f"{NAMESPACE}/{{free}}/resourcequotas", named("v1", "ResourceQuota", "q", spec={"hard": {"count/configmaps": "2"}})),
        patch(f"{NAMESPACE}/{{free}}/resourcequotas/q/status", {"status": {"hard": {"count/configmaps": "2"}, "used": {"count/configmaps": "0"}}}),
        Until(post(f"{NAMESPACE}/{{free}}/configmaps", configmap("a")), 201),
        delete(f"{NAMESPACE}/{{free}}"),
        post(f"{NAMESPACE}/{{free}}/configmaps", configmap("b")), put(f"{NAMESPACE}/{{free}}/configmaps/b", configmap("b")), sent(f"{NAMESPACE}/{{free}}/configmaps/b", configmap("b")), sent(f"{NAMESPACE}/{{free}}/configmaps/b", configmap("b"), dryRun="All"),
        patch(f"{NAMESPACE}/{{free}}/configmaps/a", {"data": {"x": "y"}}), sent(f"{NAMESPACE}/{{free}}/configmaps/a", configmap("a", {"q": "r"})),
        patch(f"{NAMESPACE}/{{free}}/resourcequotas/q", {"spec": {"hard": {"count/configmaps": "5"}}}), patch(f"{NAMESPACE}/{{free}}/resourcequotas/q/status", {"status": {"used": {"count/configmaps": "9"}}}),
        post(f"{NAMESPACE}/{{free}}/serviceaccounts/default/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}),
        post(f"{NAMESPACE}/{{free}}/pods/none/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "none"}}),
        post("/apis/authorization.k8s.io/v1/namespaces/{free}/localsubjectaccessreviews", {"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview", "metadata": {"namespace": "{free}"}, "spec": {"user": "x", "resourceAttributes": {"namespace": "{free}", "verb": "get", "resource": "pods"}}}),
        delete(f"{NAMESPACE}/{{free}}/configmaps/a"), delete(f"{NAMESPACE}/{{free}}/resourcequotas"),
        patch(f"{NAMESPACE}/{{free}}", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}, focus=lambda tree: tree["status"]["phase"]),
        put(f"{NAMESPACE}/{{free}}/finalize", named("v1", "Namespace", "{free}", spec={})), Until(get(f"{NAMESPACE}/{{free}}"), 404),
        get(f"{NAMESPACE}/{{free}}/configmaps", focus=lambda tree: len(tree["items"])), post(f"{NAMESPACE}/{{free}}/configmaps", configmap("c")), sent(f"{NAMESPACE}/{{free}}/configmaps/c", configmap("c"), dryRun="All"),
    ),
    scenario(
        "quotas-of-custom-objects", "Quotas, Kinds, Apply, Status errors",
        boats_installed(version("v1", obj(spec=obj(name=STRING)) ), version("v2", obj(spec=obj(name=STRING)), storage=False)),
        post(QUOTAS, named("v1", "ResourceQuota", "q", spec={"hard": {f"count/boats.{GROUP}": "1", "count/leases.coordination.k8s.io": "0"}})),
        patch(f"{QUOTAS}/q/status", {"status": {"hard": {f"count/boats.{GROUP}": "1", "count/leases.coordination.k8s.io": "0"}, "used": {f"count/boats.{GROUP}": "0", "count/leases.coordination.k8s.io": "0"}}}),
        Until(post("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", named("coordination.k8s.io/v1", "Lease", "l"), dryRun="All"), 403),
        sent(f"{NEWER}/a", boat("a", "v2"), dryRun="All"), get(f"{QUOTAS}/q", focus=lambda tree: tree["status"]["used"]),
        sent(f"{NEWER}/a", boat("a", "v2")), get(f"{QUOTAS}/q", focus=lambda tree: tree["status"]["used"]),
        sent(f"{BOATS}/b", boat("b")), post(NEWER, boat("b", "v2"), dryRun="All"), post(BOATS, boat("a")), put(f"{BOATS}/c", boat("c")),
        sent(BOAT, boat("a", spec={"name": "x"})), delete(BOAT), sent(f"{BOATS}/b", boat("b")), get(f"{QUOTAS}/q", focus=lambda tree: tree["status"]["used"]),
    ),
    scenario(
        "quota-status-by-odd-writers", "Quotas, Status errors",
        post(QUOTAS, named("v1", "ResourceQuota", "q", spec={"hard": {"count/configmaps": "2"}})),
        [patch(f"{QUOTAS}/q/status", {"status": body}) for body in ({"hard": {"count/configmaps": "-1"}}, {"used": {"count/configmaps": "-1"}}, {"hard": {"x y": "1"}}, {"used": {"none": "1"}}, {"hard": {"count/configmaps": "1.5"}}, {"hard": {"count/configmaps": "1e3"}}, {"hard": None, "used": {"count/configmaps": "1"}})],
        sent(f"{QUOTAS}/q/status", named("v1", "ResourceQuota", "q", status={"hard": {"count/configmaps": "3"}}), "s"),
        sent(f"{QUOTAS}/q/status", named("v1", "ResourceQuota", "q", status={}), "s"), get(f"{QUOTAS}/q"),
    ),
    # permissions
    scenario(
        "aggregation-and-escalation", "Status errors, Kinds",
        user(may("*", "clusterroles clusterrolebindings roles rolebindings", RBAC), may("get list", "pods"), cluster=True), ready(CLUSTER_ROLE),
        [
            step
            for body in (
                role("{free}", "ClusterRole", rules=[], aggregationRule={"clusterRoleSelectors": []}),
                role("{free}", "ClusterRole", rules=[], aggregationRule={}),
                role("{free}", "ClusterRole", rules=[], aggregationRule={"clusterRoleSelectors": [{}]}),
                role("{free}", "ClusterRole", rules=[may("get", "pods")], metadata={"labels": {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}}),
                role("{free}", "ClusterRole", rules=[may("get", "pods", resourceNames=["a"])]),
                role("{free}", "ClusterRole", rules=[may("get", "pods/log")]), role("{free}", "ClusterRole", rules=[may("get", "pods/*")]), role("{free}", "ClusterRole", rules=[may("get", "*/log")]),
                role("{free}", "ClusterRole", rules=[{"nonResourceURLs": ["/healthz"], "verbs": ["get"]}]), role("{free}", "ClusterRole", rules=[{"nonResourceURLs": ["/api*"], "verbs": ["get"]}]), role("{free}", "ClusterRole", rules=[{"nonResourceURLs": ["*"], "verbs": ["get"]}]),
                role("{free}", "ClusterRole", rules=[{"apiGroups": ["", "apps"], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}]),
                role("{free}", "ClusterRole", rules=[{"verbs": ["escalate"], "apiGroups": [RBAC], "resources": ["roles"]}]), role("{free}", "ClusterRole", rules=[{"verbs": ["*"], "apiGroups": [RBAC], "resources": ["roles"]}]),
                role("{free}", "ClusterRole", rules=[{"verbs": [], "apiGroups": ["*"], "resources": ["*"]}]), role("{free}", "ClusterRole", rules=[{"verbs": ["get"], "apiGroups": ["*"], "resources": []}]),
            )
            for step in (post(CLUSTER_ROLE, body, headers=AS, dryRun="All"), sent(f"{CLUSTER_ROLE}/{{free}}", body, dryRun="All", headers=AS))
        ],
        post(CLUSTER_ROLE, role("{free}", "ClusterRole", rules=[may("get", "secrets")])),
        patch(f"{CLUSTER_ROLE}/{{free}}", {"metadata": {"labels": {"a": "b"}}}, headers=AS), patch(f"{CLUSTER_ROLE}/{{free}}", {"metadata": {"finalizers": ["example.com/f"]}}, headers=AS),
        patch(f"{CLUSTER_ROLE}/{{free}}", {"metadata": {"finalizers": [], "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}]}}, headers=AS),
        patch(f"{CLUSTER_ROLE}/{{free}}", {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}, headers=AS),
        patch(f"{CLUSTER_ROLE}/{{free}}", {"rules": []}, headers=AS), patch(f"{CLUSTER_ROLE}/{{free}}", {"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}}, headers=AS),
        delete(f"{CLUSTER_ROLE}/{{free}}", headers=AS),
    ),
    scenario(
        "binding-of-aggregated-and-missing-roles", "Status errors, Kinds",
        user(may("*", "rolebindings", RBAC), may("bind", "clusterroles", RBAC, resourceNames=["view"]), may("get", "pods")), ready(f"{POD}/none", 404),
        [
            post(ROLE_BINDING, role_binding("b", roleRef={"apiGroup": RBAC, "kind": kind, "name": name}), headers=AS, dryRun="All")
            for kind, name in [("ClusterRole", "view"), ("ClusterRole", "cluster-admin"), ("ClusterRole", "none"), ("Role", "none"), ("Role", "m"), ("ClusterRole", "system:public-info-viewer"), ("ClusterRole", "system:basic-user")]
        ],
        post(ROLE_BINDING, role_binding("b"), headers=AS), patch(f"{ROLE_BINDING}/b", {"roleRef": {"name": "cluster-admin"}}, headers=AS), patch(f"{ROLE_BINDING}/b", {"roleRef": {"name": "cluster-admin"}}),
        patch(f"{ROLE_BINDING}/b", {"subjects": [{"kind": "User", "name": "x"}]}, headers=AS), sent(f"{ROLE_BINDING}/b", named(f"{RBAC}/v1", "RoleBinding", "b", roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}), headers=AS, force="true"),
        put(f"{ROLE_BINDING}/c", role_binding("c", roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}), headers=AS), sent(f"{ROLE_BINDING}/c", role_binding("c", roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}), headers=AS),
        patch(f"{ROLE_BINDING}/m", {"subjects": [{"kind": "User", "name": "x", "apiGroup": RBAC}]}, headers=AS), patch(f"{ROLE_BINDING}/m", [{"op": "replace", "path": "/subjects/0/name", "value": "n"}], "json", headers=AS),
    ),
    scenario(
        "apply-needs-what-it-does", "Apply, Status errors",
        post(SERVICE_ACCOUNT, service_account("m")), user(may("patch", "configmaps"), may("patch", "secrets", resourceNames=["only"]), may("patch", "deployments/scale", "apps"), may("patch", "pods/status")), Until(sent(f"{CM}/none", configmap("none"), headers=AS, dryRun="All"), 403),
        post(CM, configmap("a")), sent(f"{CM}/a", configmap("a", {"x": "y"}), headers=AS), sent(f"{CM}/b", configmap("b"), headers=AS), sent(f"{CM}/b", configmap("b"), headers=AS, dryRun="All"),
        sent(f"{SECRET}/only", secret("only"), headers=AS), post(SECRET, secret("only"), focus=lambda tree: tree["kind"]), sent(f"{SECRET}/only", secret("only", data={"x": "eQ=="}), headers=AS), sent(f"{SECRET}/other", secret("other"), headers=AS),
        post(DEPLOYMENT, deployment("d")), patch(f"{DEPLOYMENT}/d/scale", {"spec": {"replicas": 2}}, headers=AS), sent(f"{DEPLOYMENT}/d", deployment("d"), headers=AS), patch(f"{DEPLOYMENT}/d/status", {"status": {}}, headers=AS),
        sent(f"{POD}/none/status", named("v1", "Pod", "none", status={}), headers=AS), sent(f"{POD}/none", pod("none"), headers=AS), delete(f"{CM}/a", headers=AS), patch(f"{CM}/a", {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z", "finalizers": ["example.com/f"]}}, headers=AS), patch(f"{CM}/a", {"metadata": {"namespace": "{ns2}"}}, headers=AS),
        patch(f"{CM}/a", {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "{ns}", "uid": "1", "blockOwnerDeletion": True}]}}, headers=AS),
    ),
    scenario(
        "reviews-of-oneself-in-another-name", "Status errors, Kinds",
        post(SERVICE_ACCOUNT, service_account("m")), user(may("get", "pods")), ready(f"{POD}/none", 404),
        post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"namespace": "{ns}", "verb": "get", "resource": "pods"}}}, headers=AS),
        post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"namespace": "{ns2}", "verb": "get", "resource": "pods"}}}, headers=AS, focus=lambda tree: tree["status"]["allowed"]),
        post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "{ns}"}}, headers=AS, focus=lambda tree: tree["status"]["incomplete"] if "status" in tree and isinstance(tree["status"], dict) else tree),
        post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods"}}}, headers=AS),
        [post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}, focus=lambda tree: tree.get("message") or tree["status"]["allowed"]) for spec in (
            {"user": ACCOUNT, "resourceAttributes": {"namespace": "{ns}", "verb": "get", "resource": "pods", "fieldSelector": {"requirements": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}}},
            {"user": ACCOUNT, "resourceAttributes": {"namespace": "{ns}", "verb": "get", "resource": "pods", "labelSelector": {"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "In", "values": ["a"]}]}}},
            {"user": ACCOUNT, "resourceAttributes": {"namespace": "{ns}", "verb": "get", "resource": "pods", "fieldSelector": {"rawSelector": "a=b,"}}},
            {"user": ACCOUNT, "resourceAttributes": {"namespace": "{ns}", "verb": "get", "resource": "pods", "subresource": "log"}}, {"user": ACCOUNT, "resourceAttributes": {"namespace": "{ns}", "verb": "*", "resource": "pods"}}, {"user": ACCOUNT, "resourceAttributes": {"namespace": "{ns}", "verb": "get", "resource": "*"}},
            {"groups": ["system:masters"], "resourceAttributes": {"verb": "*", "resource": "*"}}, {"user": "x", "groups": ["system:masters"], "nonResourceAttributes": {"path": "/x", "verb": "get"}}, {"user": "x"}, {}, {"user": "x", "resourceAttributes": {}, "nonResourceAttributes": {}},
        )],
    ),
]  # fmt: skip
