"""What two parts of the server do together: pages and selectors, versions and watches, admission and apply, endings and writes."""

from __future__ import annotations

import base64
import json
from typing import Any

from conformance.boats import (
    ANYTHING,
    BOAT,
    BOATS,
    CRD,
    CRDS,
    NEWER,
    NUMBER,
    PARTIAL,
    STRING,
    TABLE,
    boat,
    conditions,
    crd,
    obj,
    version,
)
from conformance.bodies import (
    CLUSTER_ROLE,
    CM,
    DEPLOYMENT,
    LEASE,
    NAMESPACE,
    POD,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    configmap,
    deployment,
    named,
    namespace,
    pod,
    service_account,
)
from conformance.scenario import (
    Step,
    Until,
    call,
    delete,
    ends,
    frames,
    get,
    initial,
    patch,
    post,
    put,
    scenario,
    watch,
)
from conformance.scenarios import mutating_policies, webhooks


def token(start: str, revision: int = -1) -> str:
    """A token for the page of a list that begins at a key; -1 is the newest state."""
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def names(tree: Any) -> Any:
    """The names of a list's items, and how it goes on."""
    if not isinstance(tree, dict) or "items" not in tree:
        return tree
    meta = tree["metadata"]
    return [each["metadata"]["name"] for each in tree["items"]], "continue" in meta, meta.get("remainingItemCount")


def kind_of(tree: Any) -> Any:
    return tree["kind"]


def defined(*versions: Any) -> list[Step]:
    """A definition, served in all its versions."""
    paths = [BOATS if each["name"] == "v1" else NEWER for each in versions] or [BOATS]
    return [post(CRDS, crd(*versions), focus=kind_of), *(Until(get(path), 200) for path in paths)]


LABELED: list[Step] = [
    *(post(CM, configmap(name, labels={"a": name, "sort": "x" if name in "bd" else "y"})) for name in "bcde"),
]
STARTS = ["b", "b\0", "/b", "/b\0", "bb", "c", "zz", "b\0\0", "b/", "/", "b\0c", "kube"]
#: Two versions that differ in a field that selectors may name. kube-apiserver takes such fields only if the schemas differ.
SELECTABLE = (
    version("v1", obj(spec=obj(color=STRING, size=NUMBER)), selectableFields=[{"jsonPath": ".spec.color"}]),
    version(
        "v2",
        obj(spec=obj(color=STRING, size=NUMBER, crew=NUMBER)),
        storage=False,
        selectableFields=[{"jsonPath": ".spec.size"}, {"jsonPath": ".spec.color"}],
    ),
)
WAIT = {"finalizers": ["test.steersman.dev/wait"]}
GONE = f"{NAMESPACE}/{{free}}"
FREE = "/api/v1/namespaces/{free}"

PAGES = [
    *(
        scenario(f"page-begins-at-{index}", "List chunking", *LABELED, get(CM, continue_=token(start), focus=names), get(CM, continue_=token(start), limit=1, focus=names))
        for index, start in enumerate(STARTS)
    ),
    scenario(
        "page-of-one-name", "List chunking, Selectors",
        *LABELED,
        *(
            get(CM, fieldSelector="metadata.name=c", focus=names, **more)
            for more in (
                {"limit": 1}, {"continue_": token("b\0")}, {"continue_": token("c\0")}, {"continue_": token("d\0"), "limit": 1},
                {"continue_": token("d\0"), "resourceVersion": "0"}, {"continue_": "x"},
            )
        ),
    ),
    scenario(
        "page-of-another-selection", "List chunking, Selectors",
        *LABELED,
        get(CM, limit=1, labelSelector="sort=x", as_="page", focus=names),
        get(CM, limit=1, labelSelector="sort=y", continue_="$continue:page", focus=names),
        get(CM, labelSelector="sort=x", continue_="$continue:page", focus=names),
        get(CM, fieldSelector="metadata.name!=d", continue_="$continue:page", focus=names),
        get("/api/v1/namespaces/{ns2}/configmaps", continue_="$continue:page", focus=names),
        get(SERVICE_ACCOUNT, continue_="$continue:page", focus=names),
        delete(f"{CM}/d"),
        get(CM, limit=5, labelSelector="sort=x", continue_="$continue:page", focus=names),
        get(CM, continue_="$continue:page", resourceVersion="1"),
        get(CM, continue_="$continue:page", resourceVersionMatch="Exact"),
        get(CM, continue_="$continue:page", accept=PARTIAL, limit=2, focus=names),
        delete(CM, continue_="$continue:page", labelSelector="sort=x", dryRun="All", focus=names),
        delete(CM, continue_="$continue:page", limit=1, focus=names),
        get(CM, focus=names),
    ),
    scenario(
        "page-of-another-version", "List chunking, Kinds, Selectors",
        defined(*SELECTABLE),
        *(post(BOATS, boat(name, spec={"color": color, "size": size})) for name, color, size in (("a", "red", 1), ("b", "blue", 2), ("c", "red", 2), ("d", "red", 3))),
        get(BOATS, limit=1, fieldSelector="spec.color=red", as_="page", focus=names),
        get(NEWER, continue_="$continue:page", fieldSelector="spec.size=2", focus=names),
        get(NEWER, continue_="$continue:page", fieldSelector="spec.color=red,spec.size!=2", focus=names),
        get(BOATS, continue_="$continue:page", fieldSelector="spec.size=2"),
        get(NEWER, continue_="$continue:page", limit=1, accept=TABLE, focus=lambda tree: [row["cells"][0] for row in tree["rows"]]),
        delete(NEWER, continue_="$continue:page", fieldSelector="spec.size=3", focus=names),
        get(BOATS, focus=names),
    ),
]  # fmt: skip

VERSIONS = [
    scenario(
        "selectors-of-two-versions", "Watch stream, Selector transitions, Kinds",
        defined(*SELECTABLE),
        watch("old", BOATS, fieldSelector="spec.color=red"),
        watch("new", NEWER, fieldSelector="spec.size=2"),
        watch("both", NEWER, fieldSelector="spec.size!=2,spec.color=red", accept=PARTIAL),
        watch("names", NEWER, fieldSelector="spec.color=red,metadata.name=a", labelSelector="a!=b"),
        post(BOATS, boat(spec={"color": "red", "size": 1})),
        patch(f"{NEWER}/a", {"spec": {"size": 2}}),
        patch(BOAT, {"spec": {"color": "blue"}}),
        patch(f"{NEWER}/a", {"spec": {"color": "red", "size": 3}}),
        patch(BOAT, {"metadata": {"labels": {"a": "b"}}}),
        delete(f"{NEWER}/a"),
        frames("old", 6), frames("new", 3), frames("both", 5), frames("names", 5),
    ),
    scenario(
        "watch-ends-with-its-version", "Watch stream, Kinds",
        defined(version("v1"), version("v2", storage=False)),
        watch("new", NEWER, timeoutSeconds=10), watch("old", BOATS, timeoutSeconds=10),
        patch(CRD, {"spec": crd(version("v1"), version("v2", storage=False, served=False))["spec"]}, focus=kind_of),
        ends("new"), ends("old"), Until(get(NEWER), 404), Until(get(BOATS), 200),
    ),
    scenario(
        "initial-events-of-a-selection", "WatchList, Selectors, Kinds",
        defined(*SELECTABLE),
        post(BOATS, boat(spec={"color": "red", "size": 1})), post(BOATS, boat("b", spec={"color": "blue", "size": 2}), as_="b"),
        *(
            step
            for number, (path, more) in enumerate((
                (NEWER, {"fieldSelector": "spec.size=2"}),
                (BOATS, {"fieldSelector": "spec.color=green"}),
                (NEWER, {"fieldSelector": "metadata.name=a", "accept": PARTIAL}),
                (NEWER, {"labelSelector": "none"}),
            ))
            for step in (
                watch(f"w{number}", path, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true", resourceVersion="$rv:b", **more),
                initial(f"w{number}"),
            )
        ),
    ),
    scenario(
        "managers-of-a-version-that-is-gone", "Apply, Kinds",
        defined(version("v1", obj(spec=obj(color=STRING))), version("v2", obj(spec=obj(color=STRING, size=NUMBER)), storage=False)),
        patch(f"{NEWER}/a", boat(version="v2", spec={"color": "red", "size": 1}), "apply", fieldManager="new"),
        patch(BOAT, boat(spec={"color": "red"}), "apply", fieldManager="old"),
        patch(CRD, {"spec": crd(version("v1", obj(spec=obj(color=STRING, size=NUMBER))))["spec"], "status": None}, focus=kind_of),
        Until(get(NEWER), 404),
        patch(BOAT, boat(spec={"color": "blue"}), "apply", fieldManager="old"),
        patch(BOAT, boat(spec={"color": "blue"}), "apply", fieldManager="new"),
        patch(BOAT, boat(spec={}), "apply", fieldManager="old"),
        get(BOAT),
    ),
    scenario(
        "status-of-one-version", "Subresources, Apply, Kinds",
        defined(
            version("v1", obj(spec=ANYTHING, status=obj(crew=NUMBER)), subresources={"status": {}}),
            version("v2", obj(spec=ANYTHING, status=obj(crew=NUMBER)), storage=False),
        ),
        patch(f"{NEWER}/a", boat(version="v2", spec={"a": 1}, status={"crew": 2}), "apply", fieldManager="m"),
        patch(f"{BOAT}/status", boat(status={"crew": 3}), "apply", fieldManager="m"),
        patch(f"{NEWER}/a", boat(version="v2", spec={"a": 1}), "apply", fieldManager="m"),
        patch(BOAT, boat(spec={"a": 2}, status={"crew": 9}), "apply", fieldManager="m"),
        patch(f"{NEWER}/a/status", boat(version="v2", status={"crew": 4}), "apply", fieldManager="m"),
        get(BOAT),
    ),
]  # fmt: skip

CHANGED = mutating_policies.applied(
    "object.metadata.name == 'ready' ? Object{} : Object{data: Object.data{key: 'set'}, metadata: Object.metadata{labels: Object.metadata.labels{seen: 'yes'}}}"
)
HOOKED = {
    "patch": [{"op": "add", "path": "/data/key", "value": "hook"}, {"op": "add", "path": "/data/more", "value": "hook"}]
}
OWNING: list[Step] = [
    patch(f"{CM}/b", configmap("b", {"key": "mine"}), "apply", fieldManager="one", dryRun="All"),
    patch(f"{CM}/b", configmap("b", {"key": "mine"}), "apply", fieldManager="one"),
    patch(f"{CM}/b", configmap("b", {"key": "mine"}), "apply", fieldManager="one"),
    patch(f"{CM}/b", configmap("b", {"key": "yours"}), "apply", fieldManager="two"),
    patch(f"{CM}/b", configmap("b", {"key": "yours", "more": "x"}), "apply", fieldManager="two", force="true"),
    patch(f"{CM}/b", configmap("b", {"other": "x"}), "apply", fieldManager="one"),
    patch(f"{CM}/b", {"data": {"third": "x"}}, fieldManager="three"),
    get(f"{CM}/b", as_="b"),
    put(f"{CM}/b", "${b..}", fieldManager="four"),
    patch(f"{CM}/b", configmap("b", {"key": "yours"}, labels={"seen": None}), "apply", fieldManager="two", force="true"),
]  # fmt: skip
#: What a webhook makes of the object of a subresource, by the subresource.
PATCHED = {
    "eviction": [
        [{"op": "add", "path": "/deleteOptions", "value": {"dryRun": ["All"]}}],
        [{"op": "add", "path": "/deleteOptions", "value": {"preconditions": {"uid": "other"}}}],
        [{"op": "add", "path": "/deleteOptions", "value": {"propagationPolicy": "Bogus"}}],
        [{"op": "add", "path": "/deleteOptions", "value": {"gracePeriodSeconds": -5}}],
        [{"op": "replace", "path": "/metadata/name", "value": "b"}],
    ],
    "binding": [
        [{"op": "replace", "path": "/target/name", "value": "other"}],
        [{"op": "replace", "path": "/metadata/name", "value": "b"}],
        [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}],
    ],
}


def _subresource(name: str, index: int, operations: Any, body: Any) -> Any:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": [f"pods/{name}"]}
    return scenario(
        f"webhook-changes-{name}-{index}",
        "Webhooks, Subresources, Status errors",
        post(POD, pod("a")), post(POD, pod("b")),
        *webhooks.installed(webhooks.hook(script={"patch": operations}, rules=[rule]), kind="Mutating"),
        post(f"{POD}/a/{name}", body),
        get(f"{POD}/a", focus=lambda tree: (tree.get("spec", {}).get("nodeName"), tree["metadata"].get("annotations"), "deletionTimestamp" in tree["metadata"], tree.get("code"))),
        webhooks.removed("mutating"),
    )  # fmt: skip


ADMISSION = [
    scenario("policy-sets-what-is-applied", "Webhooks, Apply, No-op writes", *mutating_policies.installed(CHANGED), *OWNING, *mutating_policies.REMOVED),
    scenario("webhook-sets-what-is-applied", "Webhooks, Apply, No-op writes", *webhooks.installed(webhooks.hook(script=HOOKED, rules=[webhooks.ANY]), kind="Mutating"), *OWNING, webhooks.removed("mutating")),
    scenario(
        "webhook-sets-the-status-that-is-applied", "Webhooks, Apply, Subresources",
        post(DEPLOYMENT, deployment()),
        *webhooks.installed(
            webhooks.hook(
                script={"patch": [{"op": "add", "path": "/status/replicas", "value": 7}, {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}, {"op": "add", "path": "/spec/replicas", "value": 9}]},
                rules=[{"operations": ["UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments/status"]}],
            ),
            kind="Mutating",
        ),
        patch(f"{DEPLOYMENT}/a/status", named("apps/v1", "Deployment", "a", status={"observedGeneration": 1}), "apply", fieldManager="m"),
        patch(f"{DEPLOYMENT}/a/status", {"status": {"updatedReplicas": 3}}, fieldManager="n"),
        patch(f"{DEPLOYMENT}/a/status", named("apps/v1", "Deployment", "a", status={"replicas": 1}), "apply", fieldManager="m", dryRun="All"),
        webhooks.removed("mutating"),
    ),
    scenario(
        "webhook-sets-the-scale-that-is-applied", "Webhooks, Apply, Subresources",
        post(DEPLOYMENT, deployment(replicas=1)),
        *webhooks.installed(
            webhooks.hook(
                script={"patch": [{"op": "add", "path": "/spec/replicas", "value": 7}, {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]},
                rules=[{"operations": ["UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments/scale"]}],
            ),
            kind="Mutating",
        ),
        patch(f"{DEPLOYMENT}/a/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": 2}), "apply", fieldManager="m", dryRun="All"),
        patch(f"{DEPLOYMENT}/a/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": 2}), "apply", fieldManager="m"),
        patch(f"{DEPLOYMENT}/a/scale", {"spec": {"replicas": 3}}, fieldManager="n"),
        patch(f"{DEPLOYMENT}/a/scale", {"metadata": {"managedFields": []}}, fieldManager="n"),
        get(f"{DEPLOYMENT}/a"),
        webhooks.removed("mutating"),
    ),
    *(
        _subresource(name, index, operations, {"eviction": named("policy/v1", "Eviction", "a"), "binding": named("v1", "Binding", "a", target={"kind": "Node", "name": "here"})}[name])
        for name, changes in PATCHED.items()
        for index, operations in enumerate(changes)
    ),
    *(
        scenario(
            f"webhook-changes-a-token-{index}", "Webhooks, Subresources, Status errors",
            post(SERVICE_ACCOUNT, service_account("a")), post(SERVICE_ACCOUNT, service_account("b")),
            *webhooks.installed(
                webhooks.hook(script={"patch": operations}, rules=[{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["serviceaccounts/token"]}]),
                kind="Mutating",
            ),
            post(f"{SERVICE_ACCOUNT}/a/token", {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {"audiences": ["one"]}}, focus=lambda tree: tree if tree.get("kind") == "Status" else (tree["spec"], tree["metadata"]["name"])),
            webhooks.removed("mutating"),
        )
        for index, operations in enumerate((
            [{"op": "replace", "path": "/spec/audiences", "value": ["two", "two", ""]}],
            [{"op": "replace", "path": "/spec/expirationSeconds", "value": 60}],
            [{"op": "replace", "path": "/spec/expirationSeconds", "value": 9000}],
            [{"op": "add", "path": "/metadata/name", "value": "b"}],
            [{"op": "add", "path": "/spec/boundObjectRef", "value": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}],
            [{"op": "remove", "path": "/spec"}],
        ))
    ),
]  # fmt: skip

ENDING = [
    scenario(
        "writes-in-a-namespace-that-ends", "Namespaces, Subresources, Apply, dryRun",
        post(NAMESPACE, namespace("{free}")),
        post(f"{FREE}/configmaps", configmap()), post(f"{FREE}/serviceaccounts", service_account("a")), post(f"{FREE}/pods", pod()),
        post(f"{FREE}/resourcequotas", named("v1", "ResourceQuota", "a", spec={"hard": {"count/configmaps": "1"}})),
        delete(GONE, focus=kind_of),
        post(f"{FREE}/configmaps", configmap("b")), post(f"{FREE}/configmaps", configmap("b"), dryRun="All"),
        patch(f"{FREE}/configmaps/b", configmap("b"), "apply", fieldManager="m"),
        patch(f"{FREE}/configmaps/b", configmap("b"), "apply", fieldManager="m", dryRun="All"),
        patch(f"{FREE}/configmaps/a", configmap("a", {"key": "new"}), "apply", fieldManager="m", force="true"),
        put("/apis/coordination.k8s.io/v1/namespaces/{free}/leases/a", named("coordination.k8s.io/v1", "Lease", "a", spec={})),
        post(f"{FREE}/serviceaccounts/a/token", {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}}, focus=lambda tree: tree if tree["kind"] == "Status" else tree["kind"]),
        patch(f"{FREE}/pods/a/status", {"status": {"phase": "Running"}}, focus=lambda tree: tree if tree["kind"] == "Status" else tree["status"]["phase"]),
        post(f"{FREE}/pods/a/binding", named("v1", "Binding", "a", target={"kind": "Node", "name": "x"})),
        post(f"{FREE}/bindings", named("v1", "Binding", "a", target={"kind": "Node", "name": "x"})),
        patch(f"{FREE}/pods/a/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}]}}, focus=lambda tree: tree if tree["kind"] == "Status" else len(tree["spec"]["ephemeralContainers"])),
        post(f"{FREE}/pods/a/eviction", named("policy/v1", "Eviction", "a")),
        post(f"{FREE}/events", named("v1", "Event", "a", involvedObject={"namespace": "{free}", "kind": "Pod", "name": "a"})),
        post("/apis/authorization.k8s.io/v1/namespaces/{free}/localsubjectaccessreviews", {"kind": "LocalSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"user": "x", "resourceAttributes": {"namespace": "{free}", "verb": "get", "resource": "pods"}}}),
        patch(GONE, {"metadata": {"labels": {"a": "b"}}}, focus=lambda tree: tree["metadata"].get("labels", {}).get("a")),
        put(f"{GONE}/finalize", namespace("{free}") | {"spec": {"finalizers": ["example.com/wait", "kubernetes"]}}, focus=lambda tree: tree["spec"]),
        delete(f"{FREE}/configmaps", focus=names),
        delete(f"{FREE}/pods", {"gracePeriodSeconds": 0}, focus=names),
        put(f"{GONE}/finalize", namespace("{free}") | {"spec": {}}, focus=kind_of),
        get(GONE), post(f"{FREE}/configmaps", configmap("b")), post(NAMESPACE, namespace("{free}"), focus=kind_of),
        get(f"{FREE}/resourcequotas", focus=names),
    ),
    scenario(
        "definition-made-again-over-an-instance", "Delete, Kinds",
        defined(), post(BOATS, boat("a", metadata=WAIT), as_="a"), delete(CRD, focus=kind_of),
        Until(post(BOATS, boat("b"), dryRun="All"), 403),
        patch(CRD, {"metadata": {"finalizers": None}}, focus=kind_of), Until(get(CRD), 404), Until(get(BOATS), 404),
        post(CRDS, crd(), focus=kind_of), Until(get(BOATS), 200), Until(post(BOATS, boat("c"), dryRun="All"), 201),
        get(BOATS, focus=names), post(BOATS, boat("fresh")),
        patch(BOAT, {"metadata": {"finalizers": None}}, focus=kind_of), Until(get(BOAT), 404),
        get(f"{BOATS}/fresh", focus=kind_of), delete(f"{BOATS}/fresh"), get(BOATS, focus=names),
        get(CRD, focus=conditions),
    ),
    scenario(
        "definition-mended-while-it-ends", "Delete, Kinds, Webhooks",
        post(CRDS, crd(version(), version("v2", storage=False)), focus=kind_of), Until(get(NEWER), 200),
        post(BOATS, boat("a"), focus=kind_of),
        patch(CRD, {"spec": crd(version(storage=False), version("v2"), conversion={"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/x"}}})["spec"]}, focus=kind_of),
        Until(get(f"{NEWER}/a"), 500), delete(CRD, focus=kind_of),
        Until(post(NEWER, boat("b", "v2"), dryRun="All"), 403),
        patch(CRD, {"spec": {"conversion": {"strategy": "None", "webhook": None}, "names": {"categories": ["boats"]}}}, focus=kind_of),
        # kube-apiserver waits longer after each failure, unless the definition changes
        Until(patch(CRD, [{"op": "add", "path": "/spec/names/categories/-", "value": "boats"}], "json"), 404), Until(get(NEWER), 404),
    ),
    scenario(
        "writes-while-a-definition-ends", "Delete, Kinds, Apply, Subresources",
        defined(version(schema=obj(spec=obj(replicas=NUMBER), status=obj(replicas=NUMBER)), subresources={"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}})),
        post(BOATS, boat("a", spec={"replicas": 1}, metadata=WAIT)), delete(CRD, focus=kind_of),
        Until(post(BOATS, boat("b"), dryRun="All"), 403), Until(get(BOAT, focus=None), 200, holds=lambda tree: "deletionTimestamp" in tree["metadata"]),
        patch(f"{BOATS}/b", boat("b"), "apply", fieldManager="m"),
        patch(f"{BOATS}/b", boat("b"), "apply", fieldManager="m", dryRun="All"),
        patch(BOAT, boat("a", spec={"replicas": 2}), "apply", fieldManager="m", force="true"),
        patch(f"{BOAT}/status", boat("a", status={"replicas": 2}), "apply", fieldManager="m"),
        patch(f"{BOAT}/scale", {"spec": {"replicas": 5}}),
        patch(BOAT, {"metadata": {"finalizers": ["test.steersman.dev/wait", "test.steersman.dev/more"]}}),
        post(CRDS, crd()), put(CRD, crd(), focus=kind_of),
        patch(CRD, {"spec": {"scope": "Cluster"}}), patch(CRD, {"spec": {"names": {"kind": "Ship", "listKind": "ShipList"}}}),
        delete(BOATS, focus=names), delete(BOATS, {"preconditions": {"uid": "x"}}),
        patch(BOAT, {"metadata": {"finalizers": None}}, focus=lambda tree: tree["spec"]), Until(get(CRD), 404), Until(get(BOATS), 404),
    ),
    scenario(
        "collection-with-preconditions", "deletecollection, dryRun",
        post(CM, configmap("a"), as_="a"), post(CM, configmap("b", finalizers=["example.com/wait"]), as_="b"), post(CM, configmap("c"), as_="c"),
        delete(CM, {"preconditions": {"uid": "$uid:a"}}, dryRun="All", fieldSelector="metadata.name!=kube-root-ca.crt"),
        delete(CM, {"preconditions": {"resourceVersion": "$rv:c"}}, fieldSelector="metadata.name=c", focus=names),
        delete(CM, {"preconditions": {"uid": "$uid:b"}, "propagationPolicy": "Orphan"}, fieldSelector="metadata.name=b", focus=names),
        delete(CM, {"preconditions": {"uid": "$uid:a"}}, fieldSelector="metadata.name=b"),
        delete(CM, {"orphanDependents": True, "propagationPolicy": "Orphan"}),
        delete(CM, {"ignoreStoreReadErrorWithClusterBreakingPotential": True}),
        delete(CM, {"gracePeriodSeconds": -1}, fieldSelector="metadata.name=a", focus=names),
        get(CM, focus=names), patch(f"{CM}/b", {"metadata": {"finalizers": None}}, focus=kind_of),
    ),
]  # fmt: skip

ACCOUNT = "system:serviceaccount:{ns}:m"
AS_USER = (("Impersonate-User", ACCOUNT),)
RBAC = "rbac.authorization.k8s.io"


def cluster_role(name: str, *rules: Any, **metadata: Any) -> dict[str, Any]:
    tree = named(f"{RBAC}/v1", "ClusterRole", name, rules=list(rules))
    tree["metadata"].update(metadata)
    return tree


MAPS = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
#: A user who may write roles, may escalate one of them by name, and may impersonate one user.
TRUSTED: list[Step] = [
    post(CLUSTER_ROLE, cluster_role(
        "{u}",
        {"apiGroups": [RBAC], "resources": ["clusterroles", "rolebindings"], "verbs": ["create", "update", "patch", "get", "delete"]},
        {"apiGroups": [RBAC], "resources": ["clusterroles"], "resourceNames": ["{u2}"], "verbs": ["escalate", "bind"]},
        {"apiGroups": [""], "resources": ["users"], "resourceNames": ["{u3}"], "verbs": ["impersonate"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes"], "resourceNames": ["one"], "verbs": ["impersonate"]},
        MAPS,
    )),
    post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", named(f"{RBAC}/v1", "ClusterRoleBinding", "{u}", roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "{u}"}, subjects=[{"kind": "ServiceAccount", "name": "m", "namespace": "{ns}"}])),
    Until(get(CM, headers=AS_USER), 403), Until(get(f"{CM}/none", headers=AS_USER), 404),
]  # fmt: skip


def _bound(name: str, role: str) -> dict[str, Any]:
    return named(f"{RBAC}/v1", "RoleBinding", name, roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": role}, subjects=[{"kind": "User", "apiGroup": RBAC, "name": "{u3}"}])  # fmt: skip


ACCESS = [
    scenario(
        "escalation-by-name", "Status errors, Apply, dryRun",
        *TRUSTED,
        post(CLUSTER_ROLE, cluster_role("{u2}", SECRETS), headers=AS_USER, focus=None),
        post(CLUSTER_ROLE, cluster_role("{u2}", SECRETS), headers=AS_USER, dryRun="All"),
        patch(f"{CLUSTER_ROLE}/{{u2}}", cluster_role("{u2}", SECRETS), "apply", fieldManager="m", headers=AS_USER, dryRun="All"),
        patch(f"{CLUSTER_ROLE}/{{u2}}", cluster_role("{u2}", SECRETS), "apply", fieldManager="m", headers=AS_USER),
        patch(f"{CLUSTER_ROLE}/{{u2}}", {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}, headers=AS_USER),
        patch(f"{CLUSTER_ROLE}/{{u}}", {"rules": [SECRETS]}, headers=AS_USER),
        patch(f"{CLUSTER_ROLE}/{{u}}", {"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}}, headers=AS_USER, dryRun="All"),
        post(ROLE_BINDING, _bound("one", "{u2}"), headers=AS_USER),
        post(ROLE_BINDING, _bound("two", "system:node"), headers=AS_USER, dryRun="All", focus=lambda tree: tree.get("code", tree["kind"])),
        patch(f"{ROLE_BINDING}/three", _bound("three", "{u2}"), "apply", fieldManager="m", headers=AS_USER),
        patch(f"{ROLE_BINDING}/three", {"roleRef": {"name": "system:node"}}, headers=AS_USER),
        put(f"{ROLE_BINDING}/one", _bound("one", "system:node"), headers=AS_USER),
        delete(f"{CLUSTER_ROLE}/{{u2}}", headers=AS_USER),
        delete(f"{CLUSTER_ROLE}/{{u}}"), delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{u}"),
    ),
]  # fmt: skip

EVICTED = [
    scenario(
        "eviction-while-a-policy-denies-deletions", "Subresources, Webhooks",
        post(POD, pod()),
        *webhooks.installed(webhooks.hook(script=webhooks.denied(code=418), rules=[{"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}])),
        delete(f"{POD}/a"), delete(POD), post(f"{POD}/a/eviction", named("policy/v1", "Eviction", "a"), dryRun="All"),
        post(f"{POD}/a/eviction", named("policy/v1", "Eviction", "a")), get(f"{POD}/a", focus=kind_of),
        webhooks.removed(),
    ),
]  # fmt: skip

REQUESTS = [
    scenario("head", "Status errors", post(CM, configmap()), call("HEAD", f"{CM}/a"), call("HEAD", CM), call("HEAD", CM, watch="1"), call("HEAD", CM, limit="1")),
    scenario(
        "lease-made-by-put", "Update, dryRun, Apply",
        put(f"{LEASE}/a", named("coordination.k8s.io/v1", "Lease", "a", spec={"holderIdentity": "x"}), dryRun="All"),
        put(f"{LEASE}/a", named("coordination.k8s.io/v1", "Lease", "a", spec={"holderIdentity": "x"})),
        patch(f"{LEASE}/a", named("coordination.k8s.io/v1", "Lease", "a", spec={"holderIdentity": "y"}), "apply", fieldManager="m"),
        put(f"{LEASE}/b", named("coordination.k8s.io/v1", "Lease", "b", spec={}) | {"metadata": {"name": "b", "uid": "x"}}),
        put(f"{LEASE}/b", named("coordination.k8s.io/v1", "Lease", "b", spec={}) | {"metadata": {"name": "b", "resourceVersion": "5"}}),
        put(f"{LEASE}/b", named("coordination.k8s.io/v1", "Lease", "b", spec={}) | {"metadata": {"name": "b", "finalizers": ["example.com/x"], "deletionTimestamp": "2020-01-01T00:00:00Z"}}),
    ),
]  # fmt: skip

SCENARIOS = [*PAGES, *VERSIONS, *ADMISSION, *ENDING, *ACCESS, *EVICTED, *REQUESTS]
