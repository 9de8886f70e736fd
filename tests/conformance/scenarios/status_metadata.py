"""What a writer of a status can change besides it: labels, annotations, finalizers, owners and specs, for each kind with one."""

from __future__ import annotations

from conformance.bodies import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    PDB,
    POD,
    PVC,
    REPLICA_SET,
    SERVICE,
    STATEFUL_SET,
    Tree,
    budget,
    claim,
    cron_job,
    daemon_set,
    deployment,
    job,
    named,
    namespace,
    pod,
    replica_set,
    service,
    stateful_set,
    template,
)
from conformance.scenario import Scenario, delete, get, patch, post, put, scenario

RULE = {"apiGroups": ["none"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
ADMISSION, FLOW = "/apis/admissionregistration.k8s.io/v1", "/apis/flowcontrol.apiserver.k8s.io/v1"
CORE = "/api/v1/namespaces/{ns}"
VOLUME = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "hostPath": {"path": "/a"},
    "storageClassName": "a",
}
SCALED = {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}

#: A collection, a body, and a status of each kind.
KINDS: dict[str, tuple[str, Tree, Tree]] = {
    "namespace": (NAMESPACE, namespace("{free}"), {"phase": "Terminating"}),
    "node": ("/api/v1/nodes", named("v1", "Node", "{free}"), {"capacity": {"cpu": "9"}}),
    "claim": (PVC, claim(), {"phase": "Bound"}),
    "volume": ("/api/v1/persistentvolumes", named("v1", "PersistentVolume", "{free}", spec=VOLUME), {"phase": "Bound"}),
    "pod": (POD, pod(), {"phase": "Running", "podIP": "192.0.2.4"}),
    "controller": (
        f"{CORE}/replicationcontrollers",
        named("v1", "ReplicationController", "a", spec={"selector": {"app": "a"}, "template": template()}),
        {"replicas": 9},
    ),
    "quota": (
        f"{CORE}/resourcequotas",
        named("v1", "ResourceQuota", "a", spec={"hard": {"pods": "1"}}),
        {"hard": {"pods": "99"}, "used": {"pods": "0"}},
    ),
    "service": (SERVICE, service(), {"loadBalancer": {"ingress": [{"ip": "192.0.2.4"}]}}),
    "policy": (
        f"{ADMISSION}/validatingadmissionpolicies",
        named(
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicy",
            "{free}",
            spec={"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}]},
        ),
        {"observedGeneration": 9},
    ),
    "daemonset": (DAEMON_SET, daemon_set(), {"numberReady": 9}),
    "deployment": (DEPLOYMENT, deployment(), {"replicas": 9}),
    "replicaset": (REPLICA_SET, replica_set(), {"replicas": 9}),
    "statefulset": (STATEFUL_SET, stateful_set(), {"replicas": 9}),
    "autoscaler": (
        "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers",
        named("autoscaling/v2", "HorizontalPodAutoscaler", "a", spec={"maxReplicas": 2, "scaleTargetRef": SCALED}),
        {"currentReplicas": 9, "desiredReplicas": 9},
    ),
    "old-autoscaler": (
        "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers",
        named("autoscaling/v1", "HorizontalPodAutoscaler", "a", spec={"maxReplicas": 2, "scaleTargetRef": SCALED}),
        {"currentReplicas": 9, "desiredReplicas": 9},
    ),
    "cronjob": (CRON_JOB, cron_job(), {"lastScheduleTime": "2024-01-02T03:04:05Z"}),
    "job": (JOB, job(), {"succeeded": 1}),
    "flow-schema": (
        f"{FLOW}/flowschemas",
        named(
            "flowcontrol.apiserver.k8s.io/v1",
            "FlowSchema",
            "{free}",
            spec={"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 9999},
        ),
        {"conditions": [{"type": "Odd", "status": "False", "lastTransitionTime": "2024-01-02T03:04:05Z"}]},
    ),
    "ingress": (
        "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses",
        named(
            "networking.k8s.io/v1",
            "Ingress",
            "a",
            spec={"defaultBackend": {"service": {"name": "x", "port": {"number": 1}}}},
        ),
        {"loadBalancer": {"ingress": [{"ip": "192.0.2.4"}]}},
    ),
    "budget": (
        PDB,
        budget(),
        {"disruptionsAllowed": 9, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
    ),
    "attachment": (
        "/apis/storage.k8s.io/v1/volumeattachments",
        named(
            "storage.k8s.io/v1",
            "VolumeAttachment",
            "{free}",
            spec={"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}},
        ),
        {"attached": True},
    ),
    "resource-claim": (
        "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims",
        named("resource.k8s.io/v1", "ResourceClaim", "a", spec={}),
        {"reservedFor": []},
    ),
}
#: What of a status the server itself writes, and so shows at times of its own.
OWN = {"flow-schema", "policy"}
METADATA = {
    "labels": {"by": "status"},
    "annotations": {"by": "status"},
    "finalizers": ["by.example.com/status"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}],
}
SPEC = {"minAvailable": 5, "unschedulable": True, "replicas": 7, "suspend": True, "maxReplicas": 9}


def held(tree: Tree) -> Tree:
    """What an answer shows of the metadata and of the fields that the patches name."""
    if tree["kind"] == "Status":
        return tree
    metadata, spec = tree["metadata"], tree.get("spec", {})
    return {name: metadata.get(name) for name in METADATA} | {name: spec.get(name) for name in SPEC}


def stated(tree: Tree) -> Tree:
    """The same and the status."""
    return tree if tree["kind"] == "Status" else held(tree) | {"status": tree.get("status")}


def _scenario(kind: str) -> Scenario:
    path, body, status = KINDS[kind]
    one, seen = f"{path}/{body['metadata']['name']}", held if kind in OWN else stated
    return scenario(
        kind,
        "Subresources, Metadata",
        post(path, body | {"status": status}, as_="a", focus=seen),
        patch(one, {"status": status}, focus=seen),
        patch(f"{one}/status", {"metadata": METADATA, "spec": SPEC}, focus=seen),
        patch(f"{one}/status", {"metadata": METADATA, "spec": SPEC, "status": status}, focus=seen),
        patch(one, {"metadata": METADATA}, focus=seen),
        patch(f"{one}/status", {"metadata": dict.fromkeys(METADATA), "status": status}, focus=seen),
        put(f"{one}/status", body, focus=seen),
        get(one, focus=seen),
        patch(one, {"metadata": {"finalizers": None}}, focus=seen),
        delete(one, focus=seen),
    )


SCENARIOS = [_scenario(kind) for kind in KINDS]
