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
from conformance.scenario import Scenario, Step, Until, delete, frames, get, patch, post, put, scenario, watch

from samples.site import GROUP

SITE = f"/apis/{GROUP}/v1/namespaces/{{ns}}/sites"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
YAML = "application/yaml"
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
EVICTION = {"kind": "Eviction", "apiVersion": "policy/v1"}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "11111111-2222-3333-4444-555555555555"}
FREE = f"{NAMESPACE}/{{free}}"


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
    scenario("form-before-options", "Negotiation, fieldValidation", post(CM, configmap(), content="text/plain", fieldValidation="Loud"), put(f"{CM}/a", configmap(), content="text/plain", fieldValidation="Loud")),
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
        "namespace-nobody-has-to-empty", "Namespaces, Delete",
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
]  # fmt: skip
