"""Status and scale, and the generations that writes count."""

from __future__ import annotations

from conformance.boats import BOATS, NUMBER, boat, installed, obj, version
from conformance.bodies import (
    CM,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    KINDS,
    PDB,
    POD,
    PVC,
    REPLICA_SET,
    SERVICE,
    STATEFUL_SET,
    configmap,
    deployment,
    merged,
    pod,
)
from conformance.scenario import delete, get, patch, post, put, scenario

#: A status of every kind that has one.
STATUSES = {
    "deployment": (
        DEPLOYMENT,
        {
            "observedGeneration": 1,
            "replicas": 2,
            "updatedReplicas": 1,
            "readyReplicas": 1,
            "availableReplicas": 1,
            "unavailableReplicas": 1,
        },
    ),
    "replicaset": (
        REPLICA_SET,
        {"observedGeneration": 1, "replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 1, "availableReplicas": 1},
    ),
    "statefulset": (
        STATEFUL_SET,
        {
            "observedGeneration": 1,
            "replicas": 2,
            "readyReplicas": 1,
            "currentReplicas": 1,
            "updatedReplicas": 1,
            "currentRevision": "a",
            "updateRevision": "b",
        },
    ),
    "daemonset": (
        DAEMON_SET,
        {
            "currentNumberScheduled": 1,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 2,
            "numberReady": 1,
            "observedGeneration": 1,
        },
    ),
    "job": (JOB, {"active": 1, "ready": 0, "startTime": "2024-01-02T03:04:05Z"}),
    "cronjob": (
        CRON_JOB,
        {"lastScheduleTime": "2024-01-02T03:04:05Z", "active": [{"kind": "Job", "name": "x", "namespace": "{ns}"}]},
    ),
    "pod": (
        POD,
        {
            "phase": "Running",
            "podIP": "192.0.2.1",
            "podIPs": [{"ip": "192.0.2.1"}],
            "hostIP": "192.0.2.9",
            "startTime": "2024-01-02T03:04:05Z",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-02T03:04:05Z"}],
        },
    ),
    "claim": (PVC, {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}),
    "budget": (
        PDB,
        {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2},
    ),
    "service": (
        SERVICE,
        {
            "loadBalancer": {},
            "conditions": [
                {
                    "type": "Known",
                    "status": "True",
                    "reason": "Why",
                    "message": "",
                    "lastTransitionTime": "2024-01-02T03:04:05Z",
                }
            ],
        },
    ),
}
SCALED = {"deployment": DEPLOYMENT, "replicaset": REPLICA_SET, "statefulset": STATEFUL_SET}


def _status(kind, path, status):
    body = KINDS[kind][1]
    one = f"{path}/a"
    return [
        # what a creator says of the status is dropped
        post(path, merged(body, {"status": status}), as_="a"),
        patch(one, {"status": status}),
        patch(f"{one}/status", {"status": status}),
        patch(f"{one}/status", {"status": status}),
        get(f"{one}/status"),
        get(one),
        patch(
            f"{one}/status",
            {
                "metadata": {
                    "labels": {"by": "status"},
                    "annotations": {"by": "status"},
                    "finalizers": ["example.com/a"],
                }
            },
        ),
        put(f"{one}/status", merged(body, {"metadata": {"resourceVersion": "$rv:a"}, "status": status})),
        get(one, as_="b"),
        put(f"{one}/status", merged(body, {"metadata": {"resourceVersion": "$rv:b"}, "status": {}})),
        put(f"{one}/status", merged(body, {"metadata": {"name": "other"}})),
        patch(f"{one}/status", {"status": "all well"}),
        patch(f"{one}/status", {"status": {"color": "red"}}, fieldValidation="Strict"),
        patch(f"{one}/status", [{"op": "remove", "path": "/status"}], "json"),
        patch(f"{path}/none/status", {"status": {}}),
        post(f"{one}/status", body),
        delete(f"{one}/status"),
        get(f"{one}/status", accept="application/json;as=Table;v=v1;g=meta.k8s.io"),
        get(one),
    ]


def _scale(path, body):
    one = f"{path}/a"
    scale = f"{one}/scale"
    asked = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "a", "namespace": "{ns}"},
        "spec": {"replicas": 4},
    }
    return [
        post(path, body, as_="a"),
        get(scale),
        put(scale, asked),
        get(scale, as_="s"),
        put(scale, merged(asked, {"spec": {"replicas": 5}, "metadata": {"resourceVersion": "$rv:a"}})),
        put(scale, merged(asked, {"spec": {"replicas": 5}, "metadata": {"resourceVersion": "$rv:s"}})),
        patch(scale, {"spec": {"replicas": 0}}),
        patch(scale, {"spec": {"replicas": -1}}),
        patch(scale, {"spec": {"replicas": "many"}}),
        patch(scale, [{"op": "replace", "path": "/spec/replicas", "value": 6}], "json"),
        patch(scale, {"spec": {"replicas": 7}}, "strategic"),
        patch(scale, {"spec": {"replicas": 7}}),
        patch(scale, {"spec": {"replicas": 8}}, dryRun="All"),
        put(scale, {}),
        put(scale, body),
        put(scale, merged(asked, {"metadata": {"name": "b"}})),
        put(scale, merged(asked, {"kind": "Size"})),
        patch(f"{one}/status", {"status": {"replicas": 3}}),
        get(scale),
        get(scale, accept="application/json;as=Table;v=v1;g=meta.k8s.io"),
        get(f"{path}/none/scale"),
        put(f"{path}/none/scale", merged(asked, {"metadata": {"name": "none"}})),
        patch(f"{path}/none/scale", {"spec": {"replicas": 1}}),
        delete(scale),
        post(scale, asked),
        get(one),
    ]


#: Patches of a scale that do not fit its type, or have fields that it lacks.
_MISFITS = [
    {"spec": 5}, {"spec": None}, {"spec": {"replicas": "x"}}, {"status": {"replicas": "x"}}, {"metadata": None}, {"metadata": {"labels": {"a": 5}}},
    {"metadata": {"annotations": ["x"]}}, {"apiVersion": "x"}, {"kind": "Size"}, {"spec": {"x": 1}, "y": 2, "metadata": {"z": 3}},
]  # fmt: skip


def _misfits(path, body, kinds):
    scale = f"{path}/a/scale"
    return [
        post(path, body),
        [patch(scale, each, kind, dryRun="All") for each in _MISFITS for kind in kinds],
        [
            patch(scale, each, kind, dryRun="All", fieldValidation=validation)
            for kind, each in (*((kind, _MISFITS[-1]) for kind in kinds), ("json", [{"op": "add", "path": "/spec/x", "value": 1}]))
            for validation in ("Strict", "Ignore")
        ],
        [patch(scale, [{"op": "replace", "path": each, "value": 5}], "json", dryRun="All") for each in ("", "/spec", "/kind", "/metadata")],
    ]  # fmt: skip


def _generations(kind, path):
    body = KINDS[kind][1]
    one = f"{path}/a"
    return [
        post(path, merged(body, {"metadata": {"generation": 5}})),
        patch(one, {"metadata": {"labels": {"a": "b"}}}),
        patch(one, {"metadata": {"annotations": {"a": "b"}}}),
        patch(one, {"metadata": {"generation": 9}}),
        put(one, merged(body, {"metadata": {"generation": 9}})),
        get(one, as_="now"),
        put(one, merged(body, {"metadata": {"generation": 9, "resourceVersion": "$rv:now"}})),
        delete(one, {"propagationPolicy": "Foreground"}),
        get(one),
    ]


SCENARIOS = [
    *(scenario(f"status-of-a-{kind}", "Subresources, generation", _status(kind, path, status)) for kind, (path, status) in STATUSES.items()),
    *(scenario(f"scale-of-a-{kind}", "Subresources", _scale(path, KINDS[kind][1])) for kind, path in SCALED.items()),
    scenario("patches-that-make-no-scale", "Subresources, Patch, fieldValidation", *_misfits(DEPLOYMENT, deployment(), ("merge", "strategic"))),
    scenario("patches-that-make-no-custom-scale", "Subresources, Patch, fieldValidation", installed(version(schema=obj(spec=obj(replicas=NUMBER), status=obj(replicas=NUMBER)), subresources={"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}})), *_misfits(BOATS, boat(spec={"replicas": 1}), ("merge",))),
    *(scenario(f"generations-of-a-{kind}", "generation, Metadata", _generations(kind, path)) for kind, (path, _) in KINDS.items()),
    scenario(
        "generations-of-changes",
        "generation",
        post(DEPLOYMENT, deployment()),
        patch(f"{DEPLOYMENT}/a", {"spec": {"replicas": 2}}),
        patch(f"{DEPLOYMENT}/a", {"spec": {"replicas": 2}}),
        patch(f"{DEPLOYMENT}/a", {"spec": {"paused": True}}),
        patch(f"{DEPLOYMENT}/a", {"spec": {"template": {"metadata": {"labels": {"more": "x"}}}}}),
        patch(f"{DEPLOYMENT}/a", {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "1"}}}),
        patch(f"{DEPLOYMENT}/a/status", {"status": {"replicas": 3}, "spec": {"replicas": 9}}),
        patch(f"{DEPLOYMENT}/a", {"status": {"replicas": 9}}),
        put(f"{DEPLOYMENT}/a", deployment(replicas=7)),
        get(f"{DEPLOYMENT}/a"),
    ),
    scenario("not-there", "Subresources, Status errors", post(CM, configmap()), get(f"{CM}/a/status"), put(f"{CM}/a/status", configmap()), patch(f"{CM}/a/scale", {}), get(f"{DAEMON_SET}/a/scale"), get(f"{POD}/a/nothing"), get(f"{CM}/a/b/c")),
    scenario("status-of-nothing", "Subresources, Status errors", get(f"{POD}/a/status"), put(f"{POD}/a/status", pod()), patch(f"{POD}/a/status", {"status": {"phase": "Running"}}), get(f"{DEPLOYMENT}/a/status")),
    scenario(
        "binding-a-pod",
        "Subresources, Kinds",
        post(POD, pod()),
        post(f"{POD}/a/binding", {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "here"}}),
        get(f"{POD}/a"),
        post(f"{POD}/a/binding", {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "there"}}),
        post(f"{POD}/none/binding", {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "none"}, "target": {"kind": "Node", "name": "there"}}),
        post(f"{POD}/a/binding", {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "a"}, "target": {"kind": "Node"}}),
    ),
    scenario(
        "evicting-a-pod",
        "Subresources, Kinds, Delete",
        post(POD, pod()),
        post(f"{POD}/a/eviction", {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "a"}}, dryRun="All"),
        post(f"{POD}/a/eviction", {"kind": "Eviction", "apiVersion": "policy/v1beta1", "metadata": {"name": "a"}}, dryRun="All"),
        post(f"{POD}/a/eviction", {"kind": "Eviction", "apiVersion": "policy/v1beta2", "metadata": {"name": "a"}}, dryRun="All"),
        post(f"{POD}/a/eviction", {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "other"}}),
        post(f"{POD}/a/eviction", {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "a"}}),
        get(f"{POD}/a"),
        post(f"{POD}/a/eviction", {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "a"}}),
    ),
]  # fmt: skip
