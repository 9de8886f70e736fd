"""The small admission plugins: default classes, finalizers of storage, taints, tolerations and priorities."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from conformance.bodies import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    POD,
    PVC,
    Tree,
    binding,
    claim,
    container,
    merged,
    named,
    pod,
    role,
)
from conformance.scenario import Call, Step, Until, delete, get, patch, post, put, scenario

STORAGE = "/apis/storage.k8s.io/v1"
CLASSES, ATTRIBUTES = f"{STORAGE}/storageclasses", f"{STORAGE}/volumeattributesclasses"
INGRESS = "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses"
INGRESS_CLASSES = "/apis/networking.k8s.io/v1/ingressclasses"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
VOLUMES, NODES = "/api/v1/persistentvolumes", "/api/v1/nodes"
DEFAULT = "storageclass.kubernetes.io/is-default-class"
OLD_DEFAULT = "storageclass.beta.kubernetes.io/is-default-class"
DEFAULT_INGRESS = "ingressclass.kubernetes.io/is-default-class"
ROWS = "Kinds, Metadata"


def storage_class(name: str = "{free}") -> Tree:
    return named("storage.k8s.io/v1", "StorageClass", name, provisioner="example.com/disks")


def annotated(body: Tree, annotations: dict[str, str]) -> Tree:
    return merged(body, {"metadata": {"annotations": annotations}})


def marked(body: Tree, mark: str, value: str = "true") -> Tree:
    return annotated(body, {mark: value})


def ingress_class(name: str = "{free}") -> Tree:
    return named("networking.k8s.io/v1", "IngressClass", name, spec={"controller": "example.com/ingress"})


def ingress(name: str = "a", **spec: Any) -> Tree:
    backend = {"service": {"name": "a", "port": {"number": 80}}}
    return named("networking.k8s.io/v1", "Ingress", name, spec={"defaultBackend": backend} | spec)


def priority(name: str = "{free}", value: int = 10, **fields: Any) -> Tree:
    return named("scheduling.k8s.io/v1", "PriorityClass", name, value=value, **fields)


def volume(name: str = "{free}", **metadata: Any) -> Tree:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
    return merged(named("v1", "PersistentVolume", name, spec=spec), {"metadata": metadata})


def node(**spec: Any) -> Tree:
    return named("v1", "Node", "{free}", spec=spec)


def has(*path: str) -> Callable[[Any], bool]:
    """Whether a body has a value at a path."""

    def holds(tree: Any) -> bool:
        for name in path:
            tree = tree.get(name, {})
        return bool(tree)

    return holds


def lacks(*path: str) -> Callable[[Any], bool]:
    found = has(*path)
    return lambda tree: not found(tree)


def by_default(
    path: str, classes: list[Tree], users: str, user: Tree, field: tuple[str, ...], *steps: Step
) -> list[Step]:
    """Steps while these classes exist, once the server fills in the default; afterwards, none is left."""
    return [
        *(post(path, each) for each in classes),
        Until(post(users, user, dryRun="All"), 201, holds=has(*field)),
        *steps,
        *(delete(f"{path}/{each['metadata']['name']}") for each in classes),
        Until(post(users, user, dryRun="All"), 201, holds=lacks(*field)),
    ]


def with_storage(classes: list[Tree], *steps: Step) -> list[Step]:
    return by_default(CLASSES, classes, PVC, claim("probe"), ("spec", "storageClassName"), *steps)


def with_ingress(classes: list[Tree], *steps: Step) -> list[Step]:
    return by_default(INGRESS_CLASSES, classes, INGRESS, ingress("probe"), ("spec", "ingressClassName"), *steps)


def with_priority(classes: list[Tree], *steps: Step) -> list[Step]:
    return by_default(PRIORITIES, classes, POD, pod("probe"), ("spec", "priorityClassName"), *steps)


def tolerating(*tolerations: Tree) -> Tree:
    return pod(tolerations=list(tolerations))


def tried(path: str, *bodies: Tree) -> list[Step]:
    return [post(path, body, dryRun="All") for body in bodies]


def bound(name: str, target: str, **metadata: Any) -> Step:
    binding = named("v1", "Binding", name, target={"kind": "Node", "name": target})
    return post(f"{POD}/{name}/binding", merged(binding, {"metadata": metadata}))


#: A request for a certificate in the group system:masters.
MASTERS = base64.b64encode(b"""-----BEGIN CERTIFICATE REQUEST-----
MIHiMIGJAgEAMCcxDDAKBgNVBAMMA2tpbTEXMBUGA1UECgwOc3lzdGVtOm1hc3Rl
cnMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASyH+VATWEXNAuVETjIi8RkN19a
D6VtKVAGN2L6YaQqEwTHEWXSa1Q6OGftlh10wqOiyy1U3Wlza4GPisrAgvp4oAAw
CgYIKoZIzj0EAwIDSAAwRQIgP6nMxIWs5ntrzVx3MCBabqepSjOyXyTYe2WZZFph
E8MCIQD3GK/wFg1mCZCCX47DYgdp6BOXbYlolp3Hcl+6YxPzAg==
-----END CERTIFICATE REQUEST-----
""").decode()
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
AS_KIM = (("Impersonate-User", "kim-{u}"),)


def csr() -> Tree:
    spec = {"request": MASTERS, "signerName": "example.com/signer", "usages": ["client auth"]}
    return named("certificates.k8s.io/v1", "CertificateSigningRequest", "{free}", spec=spec)


def decided(**options: Any) -> Call:
    """An approval by a user."""
    condition = {"type": "Approved", "status": "True", "reason": "a", "message": "b", "lastTransitionTime": None}
    return patch(
        f"{REQUESTS}/{{free}}/approval",
        {"status": {"conditions": [condition]}},
        headers=AS_KIM,
        focus=result,
        **options,
    )


def signed() -> Call:
    return patch(f"{REQUESTS}/{{free}}/status", {"status": {"certificate": "b2Rk"}}, headers=AS_KIM, focus=result)


def result(tree: Any) -> Any:
    """An answer without the user who made the request, whom both servers name differently."""
    if tree["kind"] == "Status":
        return tree
    conditions = [each["type"] for each in tree["status"].get("conditions", [])]
    return conditions, tree["status"].get("certificate"), tree["metadata"].get("labels")


def allowed(name: str, groups: list[str], resources: list[str], **rule: Any) -> list[Step]:
    """A role for a user."""
    rules = [{"apiGroups": groups, "resources": resources, "verbs": ["*"], **rule}]
    bound_to = {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "kim-{u}"}],
    }
    return [
        post(CLUSTER_ROLE, role(name, "ClusterRole", rules=rules)),
        post(CLUSTER_ROLE_BINDING, binding(name, "ClusterRoleBinding", **bound_to)),
    ]


def sized(name: str) -> Tree:
    """A Pod on a Node, with resources that can be changed."""
    amounts = {"resources": {"requests": {"cpu": "1", "memory": "100Mi"}}}
    return pod(
        nodeName=name, containers=[container(**amounts)], initContainers=[container(**amounts) | {"name": "init"}]
    )


def resized(**requests: str) -> Call:
    return patch(
        f"{POD}/a/resize",
        {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}},
        "strategic",
    )


ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
EVICTS = {"effect": "NoExecute"}
PROTECTED = {"finalizers": ["example.com/mine", "kubernetes.io/pv-protection"]}
GENERATED = {"metadata": {"name": None, "generateName": "a-"}}

SCENARIOS = [
    scenario("storage-default", ROWS, with_storage(
        [marked(storage_class(), DEFAULT)],
        post(PVC, claim()), post(PVC, claim("b", storageClassName="")), post(PVC, claim("c", storageClassName="other")),
        post(PVC, annotated(claim("d"), {"volume.beta.kubernetes.io/storage-class": "old"})), get(f"{PVC}/a"),
        put(f"{PVC}/a", claim()), patch(f"{PVC}/a", claim(), "apply", fieldManager="me", force="true"),
    ), alone=True),
    scenario("storage-default-by-the-old-annotation", ROWS, with_storage([marked(storage_class(), OLD_DEFAULT)], post(PVC, claim())), alone=True),
    scenario("storage-defaults", ROWS, with_storage(
        [marked(storage_class(f"{{free}}-{name}"), DEFAULT) for name in "cba"] + [marked(storage_class("{free}-0"), DEFAULT, "True")],
        post(PVC, claim()),
    ), alone=True),
    scenario("storage-without-a-default", ROWS, post(CLASSES, marked(storage_class(), DEFAULT, "false")), post(PVC, claim())),
    scenario("ingress-default", ROWS, with_ingress(
        [marked(ingress_class(), DEFAULT_INGRESS)],
        post(INGRESS, ingress()), post(INGRESS, ingress("b", ingressClassName="other")),
        put(f"{INGRESS}/a", ingress()),
    ), alone=True),
    scenario("ingress-defaults", ROWS, with_ingress(
        [marked(ingress_class(f"{{free}}-{name}"), DEFAULT_INGRESS) for name in "cba"], post(INGRESS, ingress()),
    ), alone=True),
    scenario("claims-protected", ROWS, post(PVC, claim()), post(PVC, merged(claim("b"), {"metadata": {"finalizers": ["example.com/mine"]}})),
             post(PVC, merged(claim("c"), {"metadata": {"finalizers": ["kubernetes.io/pvc-protection", "example.com/mine"]}})),
             delete(f"{PVC}/a"), patch(f"{PVC}/a", {"metadata": {"finalizers": None}}), get(f"{PVC}/a")),
    scenario("volumes-protected", ROWS, post(VOLUMES, volume()), tried(VOLUMES, volume("{free2}", **PROTECTED)), delete(f"{VOLUMES}/{{free}}"),
             patch(f"{VOLUMES}/{{free}}", {"metadata": {"finalizers": None}}), get(f"{VOLUMES}/{{free}}")),
    scenario("attributes-protected", ROWS, post(ATTRIBUTES, named("storage.k8s.io/v1", "VolumeAttributesClass", "{free}", driverName="example.com", parameters={"a": "b"})),
             delete(f"{ATTRIBUTES}/{{free}}"), patch(f"{ATTRIBUTES}/{{free}}", {"metadata": {"finalizers": None}})),
    scenario("nodes-tainted", ROWS, tried(
        NODES, node(), node(taints=[{"key": "a", "effect": "NoExecute"}]), node(taints=[{"key": NOT_READY, "effect": "NoSchedule"}]),
        node(taints=[{"key": NOT_READY, "effect": "NoExecute"}]), node(taints=[{"key": NOT_READY, "value": "v", "effect": "NoSchedule"}]),
    )),
    scenario("nodes-untainted", ROWS, post(NODES, node()), patch(f"{NODES}/{{free}}", {"spec": {"taints": None}}), delete(f"{NODES}/{{free}}")),
    scenario("tolerations", ROWS, tried(
        POD, pod(), tolerating({"key": NOT_READY, "operator": "Exists", **EVICTS}),
        tolerating({"key": UNREACHABLE, "operator": "Exists", **EVICTS, "tolerationSeconds": 5}),
        tolerating({"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"}), tolerating({"operator": "Exists"}),
        tolerating({"operator": "Exists", "effect": "NoSchedule"}), tolerating({"key": UNREACHABLE, "operator": "Equal", "value": "x"}),
        tolerating({"key": "mine", "operator": "Exists"}),
    )),
    scenario("tolerations-changed", ROWS, post(POD, tolerating({"key": "mine", "operator": "Exists"})), put(f"{POD}/a", pod()),
             put(f"{POD}/a", tolerating({"key": "mine", "operator": "Exists"})),
             patch(f"{POD}/a", {"spec": {"tolerations": None}}), patch(f"{POD}/a/status", {"status": {"phase": "Running"}})),
    scenario("tolerations-of-a-runtime", ROWS,
             post(RUNTIMES, named("node.k8s.io/v1", "RuntimeClass", "{free}", handler="h", scheduling={
                 "nodeSelector": {"runtime": "h"}, "tolerations": [{"key": "runtime", "operator": "Exists", "effect": "NoSchedule"}]})),
             post(POD, pod(runtimeClassName="{free}", nodeSelector={"a": "b"})), post(POD, pod("b", runtimeClassName="{free}", nodeSelector={"runtime": "x"})),
             post(POD, pod("c", runtimeClassName="{free}", tolerations=[{"key": "runtime", "operator": "Exists", "effect": "NoSchedule"}]))),
    scenario("zone-of-a-pod", "Kinds, Subresources", post(NODES, merged(node(), {"metadata": {"labels": {ZONE: "a", REGION: "b", "other": "c"}}})),
             Until(post(POD, pod(nodeName="{free}"), dryRun="All"), 201, holds=has("metadata", "labels", ZONE)),
             post(POD, merged(pod(nodeName="{free}"), {"metadata": {"labels": {ZONE: "mine", "app": "a"}}})), post(POD, pod("b")), bound("b", "{free}"), get(f"{POD}/b"),
             post(POD, pod("c", nodeName="missing")), post(POD, merged(pod("d"), {"metadata": {"labels": {"app": "a"}}})),
             patch(f"{POD}/d/status", {"status": {"nominatedNodeName": "other"}}), bound("d", "missing", labels={"app": "b", "more": "c"}), get(f"{POD}/d"),
             delete(f"{NODES}/{{free}}")),
    scenario("certificate-of-an-administrator", "Kinds, Status errors", tried(
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        named("certificates.k8s.io/v1", "CertificateSigningRequest", "{free}", spec={
            "request": MASTERS, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}),
    )),
    scenario("resized-on-a-node", "Kinds, Subresources", post(NODES, merged(node(), {
                 "metadata": {"labels": {ZONE: "a"}}, "status": {"allocatable": {"cpu": "2", "memory": "1Gi"}}})),
             Until(post(POD, pod(nodeName="{free}"), dryRun="All"), 201, holds=has("metadata", "labels", ZONE)),
             post(POD, sized("{free}")), resized(cpu="1500m"), resized(cpu="3"), resized(cpu="2001m", memory="2Gi"), resized(memory="1Gi"), resized(memory="1073741825"),
             patch(f"{POD}/a/resize", {"spec": {"initContainers": [{"name": "init", "resources": {"requests": {"cpu": "2m"}}}]}}, "strategic"),
             delete(f"{NODES}/{{free}}")),
    scenario("resized-on-another-system", "Kinds, Subresources", post(NODES, merged(node(), {
                 "metadata": {"labels": {ZONE: "a", "kubernetes.io/os": "windows"}}, "status": {"allocatable": {"cpu": "2"}}})),
             Until(post(POD, pod(nodeName="{free}"), dryRun="All"), 201, holds=has("metadata", "labels", ZONE)),
             post(POD, sized("{free}")), resized(cpu="1500m"), delete(f"{NODES}/{{free}}")),
    scenario("resized-without-a-node", "Kinds, Subresources", post(POD, sized("missing")), resized(cpu="1500m"), resized(cpu="1")),
    scenario("signers", "Kinds, Status errors", post(REQUESTS, csr(), focus=result), allowed("{free}", ["certificates.k8s.io"], ["certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"]),
             Until(get(f"{REQUESTS}/{{free}}", headers=AS_KIM), 200), decided(), signed(), patch(f"{REQUESTS}/{{free}}/status", {"metadata": {"labels": {"a": "b"}}}, headers=AS_KIM, focus=result),
             allowed("{free2}", ["certificates.k8s.io"], ["signers"], resourceNames=["example.com/*"]), Until(decided(dryRun="All"), 200), decided(), signed()),
    scenario("refused-before-its-name", "Status errors", tried(
        POD, merged(pod(priorityClassName="missing"), GENERATED), merged(pod(runtimeClassName="missing"), GENERATED),
        merged(pod(priorityClassName="missing"), {"metadata": {"name": None}}),
    )),
    scenario("priority-of-a-pod", ROWS, post(PRIORITIES, priority()), Until(post(POD, pod(priorityClassName="{free}"), dryRun="All"), 201),
             post(POD, pod(priorityClassName="{free}")), tried(
                 POD, pod("b", priorityClassName="{free}", priority=10), pod("b", priorityClassName="{free}", priority=11),
                 pod("b", priorityClassName="{free}", preemptionPolicy="Never"), pod("b", priority=5), pod("b", priority=0),
                 pod("b", priorityClassName="system-node-critical"), pod("b", priorityClassName="system-odd")),
             put(f"{POD}/a", pod(priorityClassName="{free}")), patch(f"{POD}/a", {"spec": {"priority": 11}}),
             put(f"{POD}/a", merged(pod(priorityClassName="{free}"), {"spec": {"preemptionPolicy": "Never"}}))),
    scenario("priority-without-preemption", ROWS, post(PRIORITIES, priority(value=-5, preemptionPolicy="Never", description="low")),
             Until(post(POD, pod(priorityClassName="{free}"), dryRun="All"), 201), post(POD, pod(priorityClassName="{free}")), get(f"{PRIORITIES}/{{free}}")),
    scenario("priority-values", "Status errors", tried(
        PRIORITIES, priority(value=1_000_000_000), priority(value=1_000_000_001), priority(value=-2_147_483_648), priority("system-mine"),
        priority("system-node-critical"), priority("system-cluster-critical", 2_000_000_000, globalDefault=True),
        priority(preemptionPolicy="Odd"), priority(preemptionPolicy=""),
        priority("Odd", 1_000_000_001, preemptionPolicy="Odd"), named("scheduling.k8s.io/v1", "PriorityClass", "{free}"),
    )),
    scenario("priority-changed", "Update, Status errors", post(PRIORITIES, priority()), patch(f"{PRIORITIES}/{{free}}", {"value": 11}),
             patch(f"{PRIORITIES}/{{free}}", {"preemptionPolicy": "Never"}), patch(f"{PRIORITIES}/{{free}}", {"value": None, "preemptionPolicy": "Odd"}),
             patch(f"{PRIORITIES}/{{free}}", {"description": "mine", "metadata": {"labels": {"a": "b"}}}), put(f"{PRIORITIES}/{{free}}", priority(value=12)),
             put(f"{PRIORITIES}/{{free}}", priority()), patch(f"{PRIORITIES}/{{free}}", priority(value=3), "apply", fieldManager="me", force="true"),
             delete(f"{PRIORITIES}/{{free}}")),
    scenario("priority-default", "Kinds, Status errors", with_priority(
        [priority(globalDefault=True)],
        post(POD, pod()), post(POD, pod("b", priorityClassName="system-cluster-critical")), post(POD, pod("c", priority=0)),
        post(PRIORITIES, priority("{free2}", globalDefault=True)), post(PRIORITIES, priority("{free2}")),
        patch(f"{PRIORITIES}/{{free2}}", {"globalDefault": True}), patch(f"{PRIORITIES}/{{free}}", {"description": "still"}),
        patch(f"{PRIORITIES}/{{free}}", {"globalDefault": False}), delete(f"{PRIORITIES}/{{free2}}"),
    ), alone=True),
    scenario("priority-of-the-system-deleted", "Delete, Status errors", delete(f"{PRIORITIES}/system-node-critical"), delete(f"{PRIORITIES}/system-cluster-critical", dryRun="All"),
             post(PRIORITIES, priority("system-cluster-critical", 2_000_000_000)), patch(f"{PRIORITIES}/system-cluster-critical", {"value": 5}, dryRun="All")),
]  # fmt: skip
