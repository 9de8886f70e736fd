"""Objects that a server creates at its start: roles, priorities, flow schemas, APIServices, its own Service; and its health."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.bodies import POD, merged, named, pod
from conformance.scenario import Call, Scenario, Step, Until, delete, get, post, scenario

from samples.site import GROUP as SITES

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
SCHEMAS, LEVELS = f"{FLOW}/flowschemas", f"{FLOW}/prioritylevelconfigurations"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
DEFAULTS = "kubernetes.io/bootstrapping=rbac-defaults"
AGGREGATED = {"admin", "edit", "view"}


def unversioned(tree: Any) -> Any:
    """A list without versions: in which order a server creates its objects is its own affair."""
    for one in tree["items"]:
        del one["metadata"]["resourceVersion"]
        if one["metadata"]["name"] in AGGREGATED:
            # a controller fills in these rules
            one.pop("rules", None)
            del one["metadata"]["managedFields"]
    return tree | {"metadata": {}}


def one(path: str) -> Call:
    """An object without its version."""

    def focus(tree: Any) -> Any:
        tree["metadata"].pop("resourceVersion", None)
        return tree

    return get(path, focus=focus)


def kind(tree: Any) -> Any:
    """The kind and the message of an answer: what is listed is not the point."""
    return [tree.get("kind"), tree.get("message")]


def own(*prefixes: str) -> Callable[[Any], Any]:
    """Of a list that others add to, the objects with these prefixes."""

    def focus(tree: Any) -> Any:
        kept = [one for one in tree["items"] if one["metadata"]["name"].startswith(prefixes)]
        return unversioned(tree | {"items": kept})

    return focus


def aggregated(tree: Any) -> Any:
    """A role without what a controller fills in."""
    tree["metadata"].pop("managedFields")
    return {name: value for name, value in tree.items() if name != "rules"}


def service(tree: Any) -> Any:
    """A Service without the port that the server listens on."""
    del tree["spec"]["ports"][0]["targetPort"]
    return tree


def registered(tree: Any) -> Any:
    """An APIService, apart from when it became available."""
    return {"labels": tree["metadata"]["labels"], "spec": tree["spec"]}


def rows(tree: Any) -> Any:
    """The cells of a table, without ages."""
    return {"columns": tree["columnDefinitions"], "rows": [row["cells"][:-1] for row in tree["rows"]]}


def asked(user: str, verb: str, resource: str, *, groups: tuple[str, ...] = (), **more: str) -> Call:
    """Whether a user may do something, and by which binding."""
    group, _, name = resource.rpartition("/")
    attributes = {"verb": verb, "group": group, "resource": name, **more}
    spec = {"user": user, "groups": [*groups, "system:authenticated"], "resourceAttributes": attributes}
    return post(ACCESS, named("authorization.k8s.io/v1", "SubjectAccessReview", "", spec=spec))


def as_user(name: str, *groups: str) -> tuple[tuple[str, str], ...]:
    return (("Impersonate-User", name), *(("Impersonate-Group", group) for group in groups))


def crd(group: str, *versions: str) -> dict[str, Any]:
    """A definition of boats in some versions."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    made = [
        {"name": name, "served": True, "storage": not index, "schema": schema} for index, name in enumerate(versions)
    ]
    names = {"plural": "boats", "kind": "Boat"}
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": made}
    return named("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"boats.{group}", spec=spec)


ROLES = (
    "cluster-admin", "system:aggregate-to-admin", "system:aggregate-to-edit", "system:aggregate-to-view",
    "system:auth-delegator", "system:basic-user", "system:controller:deployment-controller",
    "system:controller:generic-garbage-collector", "system:controller:namespace-controller", "system:discovery",
    "system:heapster", "system:kube-aggregator", "system:kube-controller-manager", "system:kube-dns",
    "system:kube-scheduler", "system:monitoring", "system:node", "system:node-bootstrapper", "system:node-problem-detector",
    "system:node-proxier", "system:persistent-volume-provisioner", "system:public-info-viewer", "system:volume-scheduler",
)  # fmt: skip
CONTROLLER = "system:serviceaccount:kube-system:"
ACCOUNTS = ("system:serviceaccounts", "system:serviceaccounts:kube-system")


def _flows() -> list[Scenario]:
    """Who is classified how: the headers of each answer name a schema and a level that an earlier step showed."""
    known: list[Step] = [one(f"{SCHEMAS}/{name}") for name in ("exempt", "catch-all", "global-default", "probes", "service-accounts", "system-nodes", "kube-controller-manager", "kube-system-service-accounts")]  # fmt: skip
    known += [one(f"{LEVELS}/{name}") for name in ("exempt", "catch-all", "global-default", "workload-low", "workload-high", "system")]  # fmt: skip
    pods = "/api/v1/namespaces/default/pods"
    users = {
        "administrators": (),
        "users": as_user("jane"),
        "members-of-no-group": as_user("jane", "system:unauthenticated"),
        "nodes": as_user("system:node:a", "system:nodes"),
        "controller-managers": as_user("system:kube-controller-manager"),
        "schedulers": as_user("system:kube-scheduler"),
        "system-accounts": as_user(f"{CONTROLLER}deployment-controller"),
        "accounts": as_user("system:serviceaccount:default:a"),
    }
    return [
        scenario(
            f"flow-of-{name}",
            "Kinds",
            known,
            get(pods, headers=headers, focus=kind),
            get(f"{pods}/none/status", headers=headers),
            get("/api/v1/nodes/none", headers=headers),
            get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", headers=headers, focus=kind),
            get("/healthz", headers=headers),
            get("/version", headers=headers, focus=sorted),
            get("/nothing", headers=headers),
        )
        for name, headers in users.items()
    ]


SCENARIOS = [
    scenario("namespaces", "Namespaces", *(one(f"/api/v1/namespaces/{name}") for name in ("default", "kube-node-lease", "kube-public", "kube-system"))),
    scenario("service", "Kinds", get("/api/v1/namespaces/default/services/kubernetes", focus=service), get("/api/v1/namespaces/default/endpoints/kubernetes")),
    scenario("service-address", "Kinds", post("/api/v1/namespaces/{ns}/services", named("v1", "Service", "a", spec={"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}))),
    scenario("service-range", "Kinds", get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes"), get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes/status")),
    scenario("priority-classes", "Kinds", *(one(f"{CLASSES}/{name}") for name in ("system-cluster-critical", "system-node-critical")), get(CLASSES, focus=own("system-"))),
    scenario("priority-of-pods", "Kinds", *(post(POD, merged(pod(name), {"spec": {"priorityClassName": f"system-{name}-critical"}})) for name in ("cluster", "node", "moon"))),
    *(scenario(f"role-{name.replace(':', '-')}", "Kinds", get(f"{CLUSTER_ROLES}/{name}")) for name in ROLES),
    scenario("aggregated-roles", "Kinds", *(get(f"{CLUSTER_ROLES}/{name}", focus=aggregated) for name in sorted(AGGREGATED))),
    scenario("all-cluster-roles", "Kinds", get(CLUSTER_ROLES, labelSelector=DEFAULTS, focus=unversioned)),
    scenario("all-cluster-role-bindings", "Kinds", get(CLUSTER_ROLE_BINDINGS, labelSelector=DEFAULTS, focus=unversioned)),
    scenario("all-roles", "Kinds", *(get(f"{RBAC}/{what}", labelSelector=DEFAULTS, focus=unversioned) for what in ("roles", "rolebindings", "namespaces/kube-system/roles", "namespaces/kube-public/rolebindings"))),
    scenario(
        "permissions",
        "Kinds",
        asked("system:kube-scheduler", "list", "pods"),
        asked("system:kube-scheduler", "create", "pods", subresource="binding", namespace="default"),
        asked("system:kube-scheduler", "delete", "nodes"),
        asked("system:kube-scheduler", "update", "coordination.k8s.io/leases", namespace="kube-system", name="kube-scheduler"),
        asked("system:kube-controller-manager", "create", "serviceaccounts", subresource="token", namespace="kube-system"),
        asked("system:kube-controller-manager", "delete", "pods", namespace="default"),
        asked("system:kube-proxy", "watch", "discovery.k8s.io/endpointslices"),
        asked(f"{CONTROLLER}deployment-controller", "create", "apps/replicasets", groups=ACCOUNTS, namespace="default"),
        asked(f"{CONTROLLER}deployment-controller", "create", "apps/statefulsets", groups=ACCOUNTS, namespace="default"),
        asked(f"{CONTROLLER}namespace-controller", "deletecollection", "example.com/boats", groups=ACCOUNTS, namespace="default"),
        asked(f"{CONTROLLER}job-controller", "create", "pods", groups=ACCOUNTS, namespace="default"),
        asked(f"{CONTROLLER}bootstrap-signer", "update", "configmaps", groups=ACCOUNTS, namespace="kube-public", name="cluster-info"),
        asked("jane", "create", "authorization.k8s.io/selfsubjectaccessreviews"),
        asked("jane", "get", "configmaps", namespace="kube-system", name="extension-apiserver-authentication"),
        asked("jane", "get", "pods", groups=("system:monitoring",)),
    ),
    scenario("api-services", "Kinds", *(one(f"{API_SERVICES}/{name}") for name in ("v1.", "v1.apps", "v2.autoscaling", "v1.apiextensions.k8s.io", "v1.none.example.com"))),
    scenario("all-api-services", "Kinds", get(API_SERVICES, labelSelector="kube-aggregator.kubernetes.io/automanaged=onstart", focus=unversioned)),
    scenario("table-of-api-services", "Table", get(API_SERVICES, labelSelector="kube-aggregator.kubernetes.io/automanaged=onstart", accept=TABLE, focus=rows)),
    scenario("api-service-of-a-definition", "Kinds", Until(get(f"{API_SERVICES}/v1.{SITES}"), 200), get(f"{API_SERVICES}/v1.{SITES}", focus=registered)),
    scenario(
        "api-services-of-new-definitions",
        "Kinds",
        post(CRDS, crd("{free}.example.com", "v1", "v2"), focus=lambda tree: tree["spec"]["names"]["plural"]),
        *(Until(get(f"{API_SERVICES}/{name}.{{free}}.example.com"), 200) for name in ("v1", "v2")),
        *(get(f"{API_SERVICES}/{name}.{{free}}.example.com", focus=registered) for name in ("v1", "v2")),
        delete(f"{CRDS}/boats.{{free}}.example.com", focus=lambda tree: tree["kind"]),
        *(Until(get(f"{API_SERVICES}/{name}.{{free}}.example.com"), 404) for name in ("v1", "v2")),
    ),
    scenario("flow-schemas", "Kinds", *(one(f"{SCHEMAS}/{name}") for name in ("exempt", "catch-all", "probes", "system-leader-election", "endpoint-controller"))),
    scenario("all-flow-schemas", "Kinds", get(SCHEMAS, focus=own("catch-all", "endpoint-", "exempt", "global-", "kube-", "probes", "service-", "system-", "workload-"))),
    scenario("priority-levels", "Kinds", *(one(f"{LEVELS}/{name}") for name in ("exempt", "catch-all", "leader-election", "node-high"))),
    scenario("all-priority-levels", "Kinds", get(LEVELS, focus=own("catch-all", "exempt", "global-", "leader-", "node-", "system", "workload-"))),
    *_flows(),
    *(scenario(f"checks-of-{name}", "Health", get(f"/{name}", verbose=""), get(f"/{name}", verbose="", exclude="etcd"), *(get(f"/{name}/{check}") for check in ("log", "etcd", "poststarthook/rbac/bootstrap-roles", "autoregister-completion", "poststarthook/none"))) for name in ("healthz", "livez", "readyz")),
]  # fmt: skip
