"""What random requests found to differ once, each in the fewest requests that show it."""

from __future__ import annotations

from typing import Any

from conformance.bodies import (
    CLUSTER_KINDS,
    CM,
    DAEMON_SET,
    DEPLOYMENT,
    EVENT,
    JOB,
    KINDS,
    LEASE,
    NAMESPACE,
    NEW_EVENT,
    PDB,
    POD,
    PVC,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE,
    binding,
    budget,
    claim,
    configmap,
    daemon_set,
    deployment,
    event,
    job,
    lease,
    merged,
    named,
    namespace,
    new_event,
    pod,
    role,
    secret,
    service,
)
from conformance.scenario import Scenario, Step, Until, call, delete, frames, get, patch, post, put, scenario, watch

from samples.site import GROUP

SITE = f"/apis/{GROUP}/v1/namespaces/{{ns}}/sites"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
YAML = "application/yaml"
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
EVICTION = {"kind": "Eviction", "apiVersion": "policy/v1"}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "11111111-2222-3333-4444-555555555555"}
FREE = f"{NAMESPACE}/{{free}}"
STORAGE_CLASS = "/apis/storage.k8s.io/v1/storageclasses"


def site(**metadata: Any) -> dict[str, Any]:
    return merged(named(f"{GROUP}/v1", "Site", "a", spec={"image": "x"}), {"metadata": metadata})


def by(user: str) -> dict[str, Any]:
    return {"headers": (("Impersonate-User", f"{user}-{{u}}"),)}


#: Something of every kind that is refused beside its metadata.
_WRONG = {
    "data": {"a/b": "x"},
    "rules": [{"verbs": []}],
    "roleRef": {"name": "other"},
    "spec": {"ports": [], "replicas": -1, "minAvailable": -1, "leaseTransitions": -1, "hostNetwork": True},
}


def _judged_again(path: str, body: dict[str, Any]) -> list[Step]:
    """How often, and in which order, the rules of a kind say what is wrong with metadata."""
    one = f"{path}/{body['metadata']['name']}"
    return [
        post(path, merged(body, {"metadata": {"finalizers": ["example.com/a"]}})),
        patch(one, {"metadata": {"finalizers": ["odd"]}}, dryRun="All"),
        patch(one, {"metadata": {"finalizers": ["odd", "example.com/a"], "labels": {"a": "-"}}}),
        patch(f"{one}/status", {"metadata": {"finalizers": ["odd", "example.com/a"], "labels": {"a": "-"}}}),
        delete(one),
        patch(one, {"metadata": {"finalizers": ["orphan", "foregroundDeletion"]}}),
        patch(one, {"metadata": {"finalizers": ["odd", "x y"], "labels": {"a": "-"}}} | _WRONG),
        post(path, merged(body, {"metadata": {"name": "B", "labels": {"a": "-"}, "finalizers": ["odd"]}})),
    ]


def _all_judged_again() -> list[Scenario]:
    kinds = {**KINDS, "namespace": CLUSTER_KINDS["namespace"], "site": (SITE, site())}
    return [
        scenario(f"metadata-judged-again-of-a-{kind}", "Metadata, Status errors", _judged_again(path, body))
        for kind, (path, body) in kinds.items()
    ]


def _evicted(name: str, *before: Step, **options: Any) -> list[Step]:
    one = f"{POD}/{name}"
    held = merged(pod(name, nodeName="here"), {"metadata": {"finalizers": ["example.com/a"]}})
    body = EVICTION | {"metadata": {"name": name}}
    return [
        post(POD, held),
        *before,
        post(f"{one}/eviction", body, **options),
        get(one),
        post(f"{one}/eviction", body),
        get(one),
    ]


def _asking(name: str, size: str, **options: Any) -> Step:
    return patch(f"{PVC}/{name}", {"spec": {"resources": {"requests": {"storage": size}}}}, **options)


def _bound(name: str) -> Step:
    return patch(f"{PVC}/{name}/status", {"status": {"phase": "Bound"}})


def storage_class(name: str, **fields: Any) -> dict[str, Any]:
    return named("storage.k8s.io/v1", "StorageClass", name, provisioner="example.com/disks", **fields)


_EXTERNAL = {"spec": {"type": "ExternalName", "externalName": "example.com"}}
#: What stays when the namespace of both is gone.
_LEFT = [
    (path.replace("{ns}", "{free}"), body)
    for path, body in ((CM, configmap()), (LEASE, lease()), (SERVICE, service()), (ROLE, role()), (DEPLOYMENT, deployment()), (SITE, site()))
]  # fmt: skip
_ADDRESSES = [
    {"podIP": "10.0.0.1"}, {"podIP": "x"}, {"podIPs": [{"ip": "10.0.0.2"}]}, {"podIP": "10.0.0.3", "podIPs": [{"ip": "10.0.0.2"}]}, {"podIP": None}, {"podIP": "", "podIPs": None},
    {"podIPs": [{"ip": "10.0.0.2"}, {"ip": "10.0.0.3"}]}, {"podIP": "10.0.0.2", "podIPs": [{"ip": "10.0.0.2"}, {"ip": "::1"}]}, {"podIP": "10.0.0.9"}, {"hostIP": "10.0.0.7"},
]  # fmt: skip
_UNADDRESSED: dict[str, dict[str, Any]] = {
    "a": {}, "b": {"type": "NodePort"}, "c": {"type": "LoadBalancer"}, "d": {"type": "ExternalName", "externalName": "example.com"}, "e": {"clusterIP": "None"}, "f": {"clusterIP": "10.0.0.77"}, "h": {"type": "x"},
}  # fmt: skip

SCENARIOS = [
    *_all_judged_again(),
    scenario(
        "a-status-as-a-body", "Status errors, Kinds",
        get(f"{CM}/a", as_="none"), put(f"{CM}/a", "${none..}"), put(f"{ROLE}/a", "${none..}"), put(f"{SITE}/a", "${none..}"), put(f"{SITE}/a", "${none..}", fieldValidation="Strict"),
        post(CM, {"kind": "APIGroup", "apiVersion": "v1"}),
    ),
    scenario(
        "a-version-that-is-none", "Update, resourceVersion, dryRun",
        post(CM, configmap(resourceVersion="x")), post(CM, configmap("b", resourceVersion="5")), post(CM, configmap("b", resourceVersion="5"), dryRun="All"),
        put(f"{LEASE}/a", merged(lease(), {"metadata": {"resourceVersion": "x"}})), put(f"{LEASE}/a", merged(lease(), {"metadata": {"resourceVersion": "5"}})),
        put(f"{EVENT}/a", merged(event(), {"metadata": {"resourceVersion": "5"}}), dryRun="All"),
        put(f"{EVENT}/a", merged(event(type="Other"), {"metadata": {"resourceVersion": "x"}, "involvedObject": {"namespace": "b"}})),
        get(f"{EVENT}/a", resourceVersion="x"), get(f"{CM}/a", resourceVersion="x"),
    ),
    scenario(
        "refusals-as-yaml", "Status errors, Negotiation",
        get(f"{CM}/none", accept=YAML), patch(f"{CM}/none", {}, accept=YAML), post(CM, {}, accept=YAML), get(f"{CM}/none", accept=YAML, **by("nobody")),
        patch(f"{CM}/none", {}, accept=f"{YAML},application/json", **by("nobody")), delete(f"{DEPLOYMENT}/none/scale", accept=YAML),
    ),
    scenario(
        "scale-of-what-is-not-there", "Subresources, Status errors",
        *(put(f"{path}/a/scale", {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "a"}, "spec": {"replicas": -1}}) for path in (DEPLOYMENT, SITE)),
    ),
    scenario(
        "custom-lists", "List chunking, deletecollection, Table, Selectors",
        get(SITE), post(SITE, site()), get(SITE, limit=1), get(SITE, fieldSelector="=x"), get(f"{SITE}/a/scale", accept=TABLE), delete(SITE, labelSelector="a=b"), delete(SITE),
    ),
    scenario("custom-finalizers", "Metadata", post(SITE, site(finalizers=["odd", "orphan", "kubernetes", "a/b"])), patch(f"{SITE}/a", {"metadata": {"finalizers": ["odd", "even"]}}), patch(f"{SITE}/a", {"metadata": {"labels": {"a": "b"}}})),
    scenario(
        "fields-of-an-event-in-two-groups", "Patch, Apply",
        post(NEW_EVENT, new_event()), patch(f"{EVENT}/a", {"metadata": {"annotations": {"note": "one"}}}, "strategic"), patch(f"{NEW_EVENT}/a", {"metadata": {"labels": {"app": "x"}}}),
        post(EVENT, event("b")), patch(f"{NEW_EVENT}/b", {"metadata": {"annotations": {"note": "one"}}}), patch(f"{EVENT}/b", {"metadata": {"labels": {"app": "x"}}}),
        post(EVENT, event("c")), patch(f"{NEW_EVENT}/c", {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"labels": {"app": "x"}}}, "apply", fieldManager="m", force="true"),
        patch(f"{EVENT}/c", {"apiVersion": "v1", "kind": "Event", "metadata": {"labels": {"app": "y"}}}, "apply", fieldManager="m", force="true"),
        patch(f"{EVENT}/c", {"apiVersion": "v1", "kind": "Event", "metadata": {"labels": {"app": "z"}}}, "apply", fieldManager="n"),
    ),
    scenario("pages-of-events", "List chunking", post(EVENT, event()), post(EVENT, event("b")), get(EVENT, limit=1, as_="page"), get(EVENT, limit=1, continue_="$continue:page"), get(NEW_EVENT, limit=1)),
    scenario(
        "bookmarks-that-hold-something", "Bookmarks, WatchList, Table",
        watch("d", DAEMON_SET, **INITIAL), frames("d", 1), watch("r", ROLE, accept=TABLE, **INITIAL), frames("r", 1), watch("s", SITE, accept=TABLE, **INITIAL), frames("s", 1),
        get(ROLE, accept=TABLE), get(ROLE_BINDING, accept=TABLE), get(ROLE, accept=TABLE, labelSelector="a=b"),
    ),
    scenario(
        "eviction-tells-the-pod", "Subresources, Delete",
        _evicted("a"), _evicted("b", patch(f"{POD}/b/status", {"status": {"phase": "Running"}})), _evicted("c", patch(f"{POD}/c/status", {"status": {"phase": "Succeeded"}})),
        _evicted("d", delete(f"{POD}/d")), _evicted("e", dryRun="All"),
    ),
    scenario(
        "first-update-of-a-claim", "No-op writes, Watch stream",
        watch("w", PVC), post(PVC, claim()), patch(f"{PVC}/a", {}), patch(f"{PVC}/a", {}), post(PVC, claim("b")), patch(f"{PVC}/b/status", {}), patch(f"{PVC}/b", {}), frames("w", 4),
    ),
    scenario(
        "node-ports-of-a-trial", "dryRun, Kinds",
        post(SERVICE, service(ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81}])), patch(f"{SERVICE}/a", {"spec": {"type": "LoadBalancer"}}, dryRun="All"),
        patch(f"{SERVICE}/a", {"spec": {"type": "NodePort"}}), get(SERVICE, accept=TABLE), post(SERVICE, service("b", clusterIP="None", sessionAffinity="ClientIP")),
    ),
    scenario(
        "patches-that-are-none", "Patch, Status errors, fieldValidation",
        post(CM, configmap()),
        *(
            patch(f"{CM}/a", body, form, fieldValidation=directive)
            for directive in ("Warn", "Ignore")
            for form, body in (
                ("json", [1]), ("json", ["a"]), ("json", {}), ("json", "text"), ("json", b"5"), ("json", b"[null]"), ("json", b"null"), ("json", b"["),
                ("merge", []), ("merge", b"["), ("merge", b"null"), ("merge", "tRue"), ("merge", b'{"a" 1}'), ("merge", b"01"), ("merge", b"{}x"), ("merge", {"apiVersion": 5}),
                ("merge", {"kind": ["a"]}), ("strategic", b"null"), ("strategic", []), ("strategic", {"apiVersion": 5}), ("strategic", {"kind": ["a"]}), ("strategic", {"kind": "Other"}),
            )
        ),
    ),
    scenario(
        "form-before-options", "Negotiation, fieldValidation",
        post(CM, configmap(), content="text/plain", fieldValidation="Loud"), put(f"{CM}/a", configmap(), content="text/plain", fieldValidation="Loud"),
        [post(f"{POD}/a/{name}", EVICTION, content="text/plain", fieldValidation="Loud") for name in ("eviction", "binding")],
    ),
    scenario(
        "selectors-before-options", "Selectors, Status errors",
        get(CM, labelSelector="a==x,,", resourceVersionMatch="x"), get(CM, fieldSelector="a", resourceVersionMatch="x"), get(CM, fieldSelector="=x", resourceVersionMatch="x"),
        get(CM, labelSelector="a in", fieldSelector="a"), watch("w", CM, labelSelector="a==x,,", sendInitialEvents="true"), watch("v", CM, fieldSelector="spec.x=y", sendInitialEvents="true"),
    ),
    scenario("owners-twice-in-a-patch", "Patch, Metadata", post(CM, configmap()), *(patch(f"{CM}/a", {"metadata": {"ownerReferences": [OWNER, OWNER]}}, form) for form in ("merge", "strategic")), put(f"{CM}/a", configmap(ownerReferences=[OWNER, OWNER])), get(f"{CM}/a")),
    scenario("labels-in-a-message", "Kinds, Status errors", post(JOB, job()), patch(f"{JOB}/a", {"spec": {"template": {"metadata": {"annotations": {"b": "1", "a": "2"}}}}})),
    scenario(
        "namespace-deleted-again", "Namespaces, Delete, Propagation",
        post(NAMESPACE, namespace()), delete(FREE, {"propagationPolicy": "Orphan"}), delete(FREE, {"propagationPolicy": "Background"}), delete(FREE, {"propagationPolicy": "Background"}, dryRun="All"),
        put(f"{FREE}/finalize", named("v1", "Namespace", "{free}", spec={})), delete(FREE), get(FREE),
    ),
    scenario(
        "namespace-without-finalizer", "Namespaces, Delete",
        post(NAMESPACE, namespace()), put(f"{FREE}/finalize", named("v1", "Namespace", "{free}", spec={})), delete(FREE, dryRun="All"), delete(FREE), get(FREE), delete(FREE), get(FREE),
    ),
    scenario(
        "in-a-namespace-that-goes", "Namespaces, Update",
        post(NAMESPACE, namespace()), delete(FREE), put(f"{EVENT}/a".replace("{ns}", "{free}"), merged(event(involvedObject={"namespace": "{free}"}), {"metadata": {"resourceVersion": "x"}})),
    ),
    *(
        scenario(f"event-with-{finalizer}-and-{policy}".lower(), "Delete, Propagation", post(EVENT, merged(event(), {"metadata": {"finalizers": [finalizer]}})), delete(f"{EVENT}/a", {"propagationPolicy": policy}), get(f"{EVENT}/a"))
        for finalizer, policy in (("foregroundDeletion", "Foreground"), ("orphan", "Orphan"), ("example.com/a", "Foreground"))
    ),
    scenario(
        "metadata-after-all-else", "Status errors, Metadata",
        post(EVENT, merged(event(involvedObject={"namespace": "b"}), {"metadata": {"labels": {"a": "-"}}})), post(NEW_EVENT, merged(new_event(note="x" * 1025, type="Other"), {"metadata": {"labels": {"a": "-"}}})),
        post(PDB, merged(budget(minAvailable=-1), {"metadata": {"labels": {"a": "-"}}})), post(SECRET, merged(secret(), {"immutable": True})),
        put(f"{SECRET}/a", merged(secret(), {"data": {"a/b": ""}, "metadata": {"labels": {"a": "-"}}})),
    ),
    scenario(
        "users-and-their-roles", "Status errors, Kinds",
        post(ROLE, role(rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "list"]}, {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["*"]}])),
        post(ROLE_BINDING, binding(roleRef={"kind": "Role", "name": "a"}, subjects=[{"kind": "User", "name": "alice-{u}"}])),
        Until(get(CM, **by("alice")), 200),
        post(CM, configmap(), **by("alice")), post(CM, configmap("b"), **by("alice")), get(f"{CM}/a", **by("alice")), get(f"{CM}/b", **by("alice")), patch(f"{CM}/a", {"data": {"k": "1"}}, **by("alice")),
        delete(CM, **by("alice")), get(f"{CM}/a/status", **by("alice")), get(CM.replace("{ns}", "{ns2}"), **by("alice")), get("/api/v1/configmaps", **by("alice")), post(CM, b"{", **by("bob")),
        get(NAMESPACE, fieldSelector="metadata.name=a", **by("alice")), get(FREE, **by("alice")), watch("w", CM, **by("alice")), post(DEPLOYMENT, deployment(), **by("alice")), delete(f"{CM}/a", **by("alice")),
    ),
    scenario("daemon-set-as-it-was", "No-op writes", post(DAEMON_SET, daemon_set(), as_="a"), put(f"{DAEMON_SET}/a", "${a..}"), patch(f"{DAEMON_SET}/a", {"metadata": {"labels": {"a": "b"}}}), put(f"{DAEMON_SET}/a", "${a..}")),
    scenario(
        "strategic-patches-of-other-types", "Patch, Status errors",
        post(SECRET, secret()), post(POD, pod()), post(PDB, budget()), post(DEPLOYMENT, deployment()), post(CM, configmap()),
        *(patch(f"{SECRET}/a", {"data": {"key": value}}, "strategic") for value in ("%", "YQ", 5, {})),
        *(patch(f"{POD}/a/status", {"status": {"phase": value}}, "strategic") for value in (5, 5.5, True, [], {"a": 1})),
        *(patch(f"{POD}/a", {"spec": {"activeDeadlineSeconds": value}}, "strategic") for value in ("x", 1.5, True, {})),
        *(patch(f"{PDB}/a", {"spec": {"minAvailable": value}}, "strategic") for value in ({"a": 1}, [1], True, 1.5, 99999999999)),
        *(patch(f"{DEPLOYMENT}/a", {"spec": {"replicas": value}}, "strategic") for value in ("x", 1.5, True, [])),
        *(patch(f"{CM}/a", {"data": {"k": value}}, "strategic") for value in (5, 1.5, True, [], {})),
        *(patch(f"{CM}/a", {"metadata": {"creationTimestamp": value}}, "strategic") for value in (5, "x", {}, True)),
    ),
    scenario(
        "claims-that-grow", "Kinds, dryRun",
        post(STORAGE_CLASS, storage_class("{free}")), post(STORAGE_CLASS, storage_class("{free2}", allowVolumeExpansion=True)),
        *(
            step
            for name, more in (("a", {}), ("b", {"storageClassName": "none"}), ("c", {"storageClassName": "{free}"}))
            for step in (post(PVC, claim(name, **more)), _asking(name, "2Gi"), _bound(name), _asking(name, "2Gi"), _asking(name, "2Gi", dryRun="All"), _asking(name, "512Mi"))
        ),
        post(PVC, claim("d", storageClassName="{free2}")), _bound("d"), Until(_asking("d", "2Gi"), 200), get(f"{PVC}/d"),
        *(delete(f"{STORAGE_CLASS}/{name}") for name in ("{free}", "{free2}")),
    ),
    scenario(
        "services-that-become-names", "Kinds, Watch stream",
        watch("w", SERVICE), post(SERVICE, service()), post(SERVICE, service("b", internalTrafficPolicy="Local")), post(SERVICE, service("c", type="LoadBalancer")),
        *(step for name in "abc" for step in (patch(f"{SERVICE}/{name}", _EXTERNAL, dryRun="All"), patch(f"{SERVICE}/{name}", _EXTERNAL), get(f"{SERVICE}/{name}"))),
        frames("w", 6), get(SERVICE), patch(f"{SERVICE}/b", {"metadata": {"labels": {"a": "b"}}}), frames("w", 1), patch(f"{SERVICE}/b", {"spec": {"type": "ClusterIP", "externalName": None}}), frames("w", 1),
        post(SERVICE, service("d", type="ExternalName", externalName="example.com", internalTrafficPolicy="Cluster")), frames("w", 1), get(f"{SERVICE}/d"),
    ),
    scenario(
        "finalizers-lost-in-a-trial", "Delete, Propagation, dryRun",
        *(
            step
            for path, body in ((CM, configmap()), (POD, pod()), (SITE, site()), (SERVICE, service()), (DEPLOYMENT, deployment()), (PVC, claim()), (ROLE, role()), (EVENT, event()))
            for step in (
                post(path, merged(body, {"metadata": {"finalizers": ["foregroundDeletion"]}})),
                *(delete(f"{path}/a", {"dryRun": ["All"], "propagationPolicy": policy}) for policy in ("Background", "Orphan", "Foreground")),
                delete(f"{path}/a", {"dryRun": ["All"], "orphanDependents": False}), delete(f"{path}/a", dryRun="All"), delete(path, {"dryRun": ["All"], "propagationPolicy": "Background"}), get(f"{path}/a"),
            )
        ),
        *(delete(f"{path}/a", dryRun="All", propagationPolicy="Background", accept=form) for path, form in ((CM, TABLE), (CM, YAML), (CM, PARTIAL), (SITE, YAML), (SITE, PARTIAL))),
    ),
    scenario(
        "finalizers-lost-at-a-version", "Delete, Propagation",
        *(
            step
            for path, body in ((CM, configmap()), (SITE, site()), (SERVICE, service()), (POD, pod()))
            for step in (
                post(path, merged(body, {"metadata": {"finalizers": ["foregroundDeletion"]}}), as_="a"), delete(f"{path}/a", {"preconditions": {"resourceVersion": "5"}, "propagationPolicy": "Background"}),
                delete(f"{path}/a", {"preconditions": {"resourceVersion": "$rv:a"}, "propagationPolicy": "Background", "dryRun": ["All"]}),
                delete(f"{path}/a", {"preconditions": {"resourceVersion": "$rv:a"}, "propagationPolicy": "Background"}), get(f"{path}/a"),
                delete(f"{path}/a", {"preconditions": {"uid": "$uid:a"}, "propagationPolicy": "Background"}), get(f"{path}/a"),
            )
        ),
        post(CM, merged(configmap("b"), {"metadata": {"finalizers": ["example.com/a", "orphan"]}}), as_="b"), delete(f"{CM}/b", {"preconditions": {"resourceVersion": "$rv:b"}, "propagationPolicy": "Background"}), get(f"{CM}/b"),
    ),
    scenario(
        "left-behind-by-a-namespace", "Namespaces, Update, Patch",
        post(NAMESPACE, namespace()), put(f"{FREE}/finalize", named("v1", "Namespace", "{free}", spec={})),
        *(post(path, body) for path, body in _LEFT), delete(FREE), delete(FREE), get(FREE),
        *(
            step
            for path, body in _LEFT
            for step in (
                put(f"{path}/a", body), patch(f"{path}/a", {"metadata": {"labels": {"a": "b"}}}), patch(f"{path}/a", {}), patch(f"{path}/a", b"{"), patch(f"{path}/a", {"metadata": {"labels": {"a": "-"}}}),
                put(f"{path}/b", merged(body, {"metadata": {"name": "b"}})), post(path, body), get(f"{path}/a"), delete(f"{path}/a"),
            )
        ),
        alone=True,  # a webhook or policy of another scenario that selects namespaces would need the one that is gone
    ),
    scenario(
        "addresses-of-a-pod", "Kinds, Subresources",
        post(POD, pod()), *(patch(f"{POD}/a/status", {"status": status}) for status in _ADDRESSES), get(f"{POD}/a"),
    ),
    scenario(
        "pods-of-a-node", "List chunking, Selectors",
        post(POD, pod(nodeName="here")), post(POD, pod("b", nodeName="here")), post(POD, pod("c", nodeName="there"), as_="c"), post(POD, pod("d")), post(POD, pod("e", nodeName="else")),
        *(get(POD, fieldSelector=f"spec.nodeName={node}", limit=limit) for node in ("here", "there", "", "none") for limit in (1, 2, 3)),
        get(POD, fieldSelector="spec.nodeName=here", limit=1, as_="page"), get(POD, fieldSelector="spec.nodeName=here", limit=1, continue_="$continue:page"),
        *(get(POD, fieldSelector="spec.nodeName=here", limit=2, resourceVersion="$rv:c", **match) for match in ({}, {"resourceVersionMatch": "Exact"}, {"resourceVersionMatch": "NotOlderThan"})),
        *(get(POD, fieldSelector=fields, limit=2) for fields in ("spec.nodeName!=there", "spec.nodeName=here,metadata.name!=b", "spec.nodeName=here,status.phase=Pending", "status.phase=Pending")),
    ),
    scenario(
        "services-made-by-their-status", "Subresources, Update, dryRun",
        *(put(f"{SERVICE}/{name}/status", service(name, **spec)) for name, spec in _UNADDRESSED.items()), *(get(f"{SERVICE}/{name}") for name in _UNADDRESSED),
        put(f"{SERVICE}/m/status", service("m"), dryRun="All"), put(f"{SERVICE}/m/status", merged(service("m"), {"metadata": {"uid": "5"}})), put(f"{SERVICE}/m/status", service("n")), put(f"{SERVICE}/M/status", service("M")), patch(f"{SERVICE}/m/status", {}),
        patch(f"{SERVICE}/c/status", {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}), delete(f"{SERVICE}/a"),
    ),
    scenario(
        "custom-by-another-name", "Kinds, Update, Patch, Status errors",
        post(SITE, site(), as_="a"), *(put(f"{SITE}/a", merged(site(**metadata), {"kind": "Other"})) for metadata in ({}, {"resourceVersion": "5"}, {"resourceVersion": "$rv:a"}, {"uid": "5"}, {"name": "x"}, {"resourceVersion": "$rv:a", "labels": {"a": "-"}})),
        put(f"{SITE}/b", merged(site(name="b"), {"kind": "Other"})), post(SITE.replace("{ns}", "{free}"), merged(site(), {"kind": "Other"})),
        *(post(SITE, merged(site(name=name), {"kind": "Other", "spec": {"image": image}})) for name, image in (("a", "x"), ("c", "x"), ("C", 5))),
        *(patch(f"{SITE}/a", body) for body in ({"kind": "Other"}, {"kind": "Other", "metadata": {"resourceVersion": "5"}}, {"kind": "Other", "spec": {"image": 5}}, {"apiVersion": "v7"}, {"apiVersion": f"{GROUP}/v7"}, {"apiVersion": "v7", "kind": "Other"}, {"apiVersion": "v7", "metadata": {"labels": {"a": "-"}}})),
        patch(f"{SITE}/a/status", {"kind": "Other", "status": {"readyReplicas": "x"}}), patch(f"{SITE}/a/status", {"kind": "Other", "status": {"readyReplicas": 1}}, as_="b"), put(f"{SITE}/a/status", merged(site(resourceVersion="$rv:b"), {"kind": "Other", "status": {"readyReplicas": 2}})), get(f"{SITE}/a"),
    ),
    scenario("custom-patches-of-no-form", "Patch, Negotiation", post(SITE, site()), *(call("PATCH", path, {}, content=content) for path in (f"{SITE}/a", f"{SITE}/b", f"{SITE}/a/status", f"{SITE}/a/scale") for content in ("application/json", "text/plain", "application/yaml", "a/b; x="))),
    scenario(
        "applied-secret-with-null", "Kinds, No-op writes, Apply",
        patch(f"{SECRET}/a", named("v1", "Secret", "a", data={"key": None}), "apply", fieldManager="ada"), get(f"{SECRET}/a", as_="read"), put(f"{SECRET}/a", "${read..}"),
    ),
    scenario(
        "given-empty", "Kinds, dryRun",
        post(SECRET, secret(data={}, immutable=True)), *(put(f"{SECRET}/a", named("v1", "Secret", "a", immutable=True, **more)) for more in ({}, {"data": {}}, {"data": None}, {"stringData": {}})), *(patch(f"{SECRET}/a", {"data": {}}, form) for form in ("merge", "strategic")),
        post(CM, {**configmap(data={}), "immutable": True}), *(put(f"{CM}/a", named("v1", "ConfigMap", "a", immutable=True, **more)) for more in ({}, {"data": {}}, {"binaryData": {}}, {"binaryData": None})), post(SECRET, secret("b", data={})), patch(f"{SECRET}/b", {"data": {}}), get(f"{SECRET}/b"),
        post(PVC, claim()), *(patch(f"{PVC}/a", {"spec": spec}) for spec in ({"accessModes": []}, {"accessModes": None}, {"resources": {"requests": {}}}, {"resources": {"requests": {"storage": None}}}, {"resources": {"requests": None}})),
        post(ROLE, role()), *(patch(f"{ROLE}/a", {"rules": rules}, dryRun="All") for rules in ([], None)), post(ROLE, role("b", rules=[]), dryRun="All"), put(f"{ROLE}/a", role(rules=[]), dryRun="All"),
    ),
    scenario(
        "suspended-job-with-pods", "Kinds, Update, Subresources",
        *(
            step
            for name, status in {"a": {"active": 1}, "b": {"active": 0}, "c": {"active": 1, "startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Suspended", "status": "True"}]}, "d": {}}.items()
            for step in (
                post(JOB, job(name, suspend=True)), patch(f"{JOB}/{name}/status", {"status": status}),
                patch(f"{JOB}/{name}", {"spec": {"template": {"spec": {"nodeSelector": {"disk": "fast"}}}}}), patch(f"{JOB}/{name}", {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
            )
        ),
    ),
]  # fmt: skip
