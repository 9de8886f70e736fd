"""ResourceQuotas: which are stored, what they count, and what they refuse.

kube-apiserver enforces the limits in the status of a quota, which a controller writes; here, the steps do.
"""

from __future__ import annotations

from typing import Any

from conformance.boats import BOATS, GROUP, boat, installed
from conformance.bodies import (
    CM,
    CORE,
    CRON_JOB,
    DEPLOYMENT,
    EVENT,
    JOB,
    LEASE,
    PDB,
    POD,
    PVC,
    ROLE,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    budget,
    claim,
    configmap,
    container,
    cron_job,
    deployment,
    event,
    job,
    lease,
    merged,
    named,
    pod,
    role,
    secret,
    service,
    service_account,
    template,
)
from conformance.scenario import Step, Until, delete, get, patch, post, put, scenario

QUOTAS = f"{CORE}/resourcequotas"
ROWS = "Quotas, Status errors"
KIND_ROWS = "Quotas, Kinds, Status errors"
CONTROLLER = f"{CORE}/replicationcontrollers"
LIMITS = f"{CORE}/limitranges"
DEVICE_CLAIM = "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims"
#: The resource of the object that asks whether the quotas are enforced.
PROBE = "count/leases.coordination.k8s.io"
EXISTS = {"operator": "Exists"}

Tree = dict[str, Any]


def quota(hard: Any, name: str = "q", **spec: Any) -> Tree:
    """A quota."""
    return named("v1", "ResourceQuota", name, spec={"hard": hard} | spec)


def selecting(scope: str, operator: str = "Exists", *values: str) -> Tree:
    """The spec's field that selects a scope."""
    expression = {"scopeName": scope, "operator": operator} | ({"values": list(values)} if values else {})
    return {"scopeSelector": {"matchExpressions": [expression]}}


def status_of(tree: Any) -> Any:
    return tree["status"]


def used(name: str = "q") -> Step:
    """What a quota has counted."""
    return get(f"{QUOTAS}/{name}", focus=status_of)


def counting(hard: Any, now: Any = None, name: str = "q", **spec: Any) -> list[Step]:
    """Create a quota with its status."""
    known = {"hard": hard, "used": dict.fromkeys(hard, "0") | (now or {})}
    return [
        post(QUOTAS, quota(hard, name, **spec), focus=lambda tree: tree["kind"]),
        patch(f"{QUOTAS}/{name}/status", {"status": known}, focus=status_of),
    ]


#: The API server hears of quotas in order: once this one counts, those before it do.
READY: list[Step] = [
    *counting({PROBE: "0"}, name="ready"),
    Until(post(LEASE, lease("ready"), dryRun="All"), 403),
]


def enforced(hard: Any, now: Any = None, **spec: Any) -> list[Step]:
    """Create a quota, and wait until it counts."""
    return [*counting(hard, now, **spec), *READY]


def asking(name: str = "a", *, requests: Any = None, limits: Any = None, **spec: Any) -> Tree:
    """A Pod with a container that has resources."""
    given = {"requests": requests, "limits": limits}
    resources = {key: value for key, value in given.items() if value}
    return pod(name, **({"containers": [container(resources=resources)]} | spec))


def controller(name: str = "a") -> Tree:
    return named(
        "v1", "ReplicationController", name, spec={"replicas": 0, "selector": {"app": "a"}, "template": template()}
    )


def devices(name: str, *requests: Any) -> Tree:
    """A ResourceClaim."""
    listed = [{"name": f"r{index}", **request} for index, request in enumerate(requests)]
    return named("resource.k8s.io/v1", "ResourceClaim", name, spec={"devices": {"requests": listed}})


def exactly(class_: str, count: int = 0) -> Tree:
    """Devices of a class; all of them without a number."""
    how = {"allocationMode": "ExactCount", "count": count} if count else {"allocationMode": "All"}
    return {"deviceClassName": class_, **how}


#: Resources that count objects: where they are created, and how.
COUNTED: dict[str, tuple[str, Any]] = {
    "count/configmaps": (CM, configmap),
    "configmaps": (CM, configmap),
    "count/secrets": (SECRET, secret),
    "secrets": (SECRET, secret),
    "count/services": (SERVICE, service),
    "services": (SERVICE, service),
    "count/pods": (POD, pod),
    "pods": (POD, pod),
    "count/persistentvolumeclaims": (PVC, claim),
    "persistentvolumeclaims": (PVC, claim),
    "count/replicationcontrollers": (CONTROLLER, controller),
    "replicationcontrollers": (CONTROLLER, controller),
    "count/serviceaccounts": (SERVICE_ACCOUNT, service_account),
    "count/deployments.apps": (DEPLOYMENT, deployment),
    "count/jobs.batch": (JOB, job),
    "count/cronjobs.batch": (CRON_JOB, cron_job),
    "count/poddisruptionbudgets.policy": (PDB, budget),
    "count/roles.rbac.authorization.k8s.io": (ROLE, role),
    "count/events": (EVENT, event),
    "count/deployments.extensions": (DEPLOYMENT, deployment),
    "count/configmaps.v1": (CM, configmap),
}

TWO = [
    container(name="a", resources={"requests": {"cpu": "400m"}}),
    container(name="b", resources={"requests": {"cpu": "400m"}}),
]
HUGE = {"cpu": "1m", "hugepages-2Mi": "4Mi"}

#: A limit, and Pods that are created under it: the first for good, the others for trial.
COMPUTE: dict[str, tuple[Tree, list[Tree]]] = {
    "cpu": ({"cpu": "1"}, [asking(requests={"cpu": "600m"}), asking("b", requests={"cpu": "401m"}), asking("b", requests={"cpu": "400m"}), asking("b", requests={"cpu": "0"})]),
    "requests-cpu": ({"requests.cpu": "1"}, [asking(limits={"cpu": "1"}), asking("b", requests={"cpu": "1m"}, limits={"cpu": "1"})]),
    "limits-cpu": ({"limits.cpu": "1500m"}, [asking(limits={"cpu": "1"}), asking("b", limits={"cpu": "1"}), asking("b", requests={"cpu": "1"})]),
    "memory": ({"memory": "1Gi", "limits.memory": "2Gi"}, [asking(requests={"memory": "1G"}, limits={"memory": "1Gi"}), asking("b", requests={"memory": "100Mi"}, limits={"memory": "2Gi"})]),
    "ephemeral-storage": ({"requests.ephemeral-storage": "1Gi", "limits.ephemeral-storage": "1Gi"}, [pod(), asking("b", limits={"ephemeral-storage": "2Gi"})]),
    "huge-pages": ({"hugepages-2Mi": "4Mi"}, [asking(requests=HUGE, limits=HUGE), asking("b", requests=HUGE, limits=HUGE), pod("b")]),
    "requests-huge-pages": ({"requests.hugepages-2Mi": "4Mi"}, [asking(requests=HUGE, limits=HUGE), asking("b", requests=HUGE, limits=HUGE)]),
    "extended": ({"requests.example.com/gpu": "1"}, [asking(limits={"example.com/gpu": "1"}), asking("b", limits={"example.com/gpu": "1"}), asking("b", limits={"example.com/other": "1"})]),
    "containers": ({"cpu": "1"}, [pod(containers=TWO), pod("b", containers=TWO)]),
    "init-containers": (
        {"cpu": "1"},
        [
            asking(requests={"cpu": "100m"}, initContainers=[container(name="first", resources={"requests": {"cpu": "700m"}})]),
            asking("b", requests={"cpu": "100m"}, initContainers=[container(name="first", resources={"requests": {"cpu": "301m"}})]),
            asking("b", requests={"cpu": "200m"}, initContainers=[container(name="side", restartPolicy="Always", resources={"requests": {"cpu": "200m"}})]),
            asking("b", requests={"cpu": "100m"}, initContainers=[container(name="side", restartPolicy="Always", resources={"requests": {"cpu": "100m"}})]),
        ],
    ),
    "of-the-pod": (
        {"cpu": "1", "limits.memory": "1Gi"},
        [
            pod(resources={"requests": {"cpu": "600m"}, "limits": {"memory": "1Gi"}}),
            pod("b", resources={"requests": {"cpu": "600m"}}),
            pod("b", resources={"limits": {"memory": "1Mi"}}),
        ],
    ),
    "missing": (
        {"cpu": "9", "limits.memory": "9Gi", "requests.memory": "9Gi", "pods": "9"},
        [
            asking(requests={"cpu": "1m"}, limits={"memory": "1Gi"}),
            pod("b"),
            asking("b", requests={"cpu": "1m"}),
            pod("b", containers=[container(name="z"), container(name="a"), container(name="c", resources={"limits": {"cpu": "1", "memory": "1Gi"}})]),
            asking("b", requests={"cpu": "1m"}, limits={"memory": "1Gi"}, initContainers=[container(name="first")]),
            asking("b", requests={"cpu": "0"}, limits={"memory": "0"}),
        ],
    ),
}  # fmt: skip

BALANCER = {"type": "LoadBalancer"}
ONE_PORT = [{"name": "a", "port": 80}]
TWO_PORTS = [*ONE_PORT, {"name": "b", "port": 81}]
PAST_DEADLINE = {"activeDeadlineSeconds": 60}
CRITICAL = {"priorityClassName": "system-cluster-critical"}
TERM: Tree = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}


def affinity(sort: str, *, preferred: bool = False, **term: Any) -> Tree:
    """The affinity of a Pod."""
    if preferred:
        return {"affinity": {sort: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM | term}]}}}  # fmt: skip
    return {"affinity": {sort: {"requiredDuringSchedulingIgnoredDuringExecution": [TERM | term]}}}


#: A scope, and Pods that are created for trial under a quota without room in that scope.
SCOPED: dict[str, tuple[Tree, list[Tree]]] = {
    "terminating": ({"scopes": ["Terminating"]}, [pod(), pod(**PAST_DEADLINE)]),
    "not-terminating": ({"scopes": ["NotTerminating"]}, [pod(), pod(**PAST_DEADLINE)]),
    "best-effort": ({"scopes": ["BestEffort"]}, [pod(), asking(requests={"cpu": "1m"}), asking(limits={"example.com/x": "1"})]),
    "not-best-effort": ({"scopes": ["NotBestEffort"]}, [pod(), asking(requests={"cpu": "1m"}), asking(limits={"cpu": "1", "memory": "1Gi"})]),
    "both": ({"scopes": ["BestEffort", "Terminating"]}, [pod(), pod(**PAST_DEADLINE), asking(requests={"cpu": "1m"}, **PAST_DEADLINE)]),
    "selected-terminating": (selecting("Terminating"), [pod(), pod(**PAST_DEADLINE)]),
    "priority-listed": ({"scopes": ["PriorityClass"]}, [pod(), pod(**CRITICAL)]),
    "priority-exists": (selecting("PriorityClass"), [pod(), pod(**CRITICAL)]),
    "priority-in": (selecting("PriorityClass", "In", "system-cluster-critical", "x"), [pod(), pod(**CRITICAL), pod(priorityClassName="system-node-critical")]),
    "priority-not-in": (selecting("PriorityClass", "NotIn", "system-cluster-critical"), [pod(), pod(**CRITICAL), pod(priorityClassName="system-node-critical")]),
    "priority-absent": (selecting("PriorityClass", "DoesNotExist"), [pod(), pod(**CRITICAL)]),
    "affinity": (
        selecting("CrossNamespacePodAffinity"),
        [
            pod(),
            pod(**affinity("podAffinity")),
            pod(**affinity("podAffinity", namespaces=["x"])),
            pod(**affinity("podAntiAffinity", namespaceSelector={})),
            pod(**affinity("podAffinity", preferred=True, namespaces=["x"])),
            pod(**affinity("podAntiAffinity", preferred=True)),
        ],
    ),
}  # fmt: skip

#: Quotas that are created for trial, by theme.
TRIALS: dict[str, list[Tree]] = {
    "names": [
        quota({name: "1"})
        for name in (
            "cpu", "storage", "requests.storage", "limits.storage", "requests.cpu", "x", "X y", "count/pods", "count/a.b.c", "a/b/c",
            "gold.storageclass.storage.k8s.io/requests.storage", "hugepages-2Mi", "requests.hugepages-1Gi", "limits.hugepages-2Mi",
            "requests.example.com/gpu", "example.com/gpu", "services.nodeports", "services.externalips", "", "gpu.deviceclass.resource.k8s.io/devices",
        )
    ],
    "amounts": [
        quota({"pods": amount}) for amount in ("0", "-1", "1.5", "1500m", "2k", "x", "", None, 3)
    ] + [quota({"cpu": amount}) for amount in ("-1", "1.5", "0.0001")] + [quota({"count/pods": "1.5"}), quota({"count/pods": "-1"})],
    "scopes": [
        quota({"pods": "1"}, scopes=scopes)
        for scopes in ([], ["Terminating"], ["Other"], ["Terminating", "NotTerminating"], ["BestEffort", "NotBestEffort", "BestEffort"], ["BestEffort", "Terminating"], ["CrossNamespacePodAffinity"])
    ],
    "scopes-of-resources": [
        quota({name: "1"}, scopes=[scope])
        for scope in ("BestEffort", "NotBestEffort", "PriorityClass", "VolumeAttributesClass", "Other")
        for name in ("cpu", "services", "persistentvolumeclaims", "requests.storage", "count/pods", "requests.ephemeral-storage", "hugepages-2Mi")
    ],
    "selectors": [
        quota({"pods": "1"}, **selector)
        for selector in (
            selecting("Terminating"), selecting("Terminating", "In", "x"), selecting("Other", "In", "x"), selecting("PriorityClass", "In"),
            selecting("PriorityClass", "NotIn", "a", "b"), selecting("PriorityClass", "Exists", "a"), selecting("PriorityClass", "DoesNotExist"),
            selecting("PriorityClass", "Is", "a"), selecting("PriorityClass", ""), selecting("VolumeAttributesClass", "In", "a"), {"scopeSelector": {}},
            {"scopeSelector": {"matchExpressions": [{"scopeName": "BestEffort", **EXISTS}, {"scopeName": "NotBestEffort", **EXISTS}]}},
            {"scopeSelector": {"matchExpressions": [{"scopeName": "Terminating", **EXISTS}, {"scopeName": "NotTerminating", **EXISTS}]}, "scopes": ["BestEffort"]},
            {"scopeSelector": {"matchExpressions": [{}]}},
        )
    ],
    "warnings": [
        quota({"requests.cpu": "2", "limits.cpu": "1"}), quota({"cpu": "2", "limits.cpu": "1"}), quota({"cpu": "1", "limits.cpu": "1"}),
        quota({"requests.memory": "2Gi", "limits.memory": "1Gi", "requests.cpu": "1", "cpu": "5", "limits.cpu": "2"}),
        quota({"requests.ephemeral-storage": "2Gi", "limits.ephemeral-storage": "1Gi"}), quota({"ephemeral-storage": "2Gi", "limits.ephemeral-storage": "1Gi"}),
    ],
    "specs": [named("v1", "ResourceQuota", "q"), quota({}), quota(None), merged(quota({"pods": "1"}), {"status": {"hard": {"pods": "1"}, "used": {"x": "1"}}}), quota({"pods": "1"}, "A_b")],
}  # fmt: skip


def tried(path: str, bodies: list[Tree]) -> list[Step]:
    """Creations that leave nothing behind."""
    return [post(path, body, dryRun="All") for body in bodies]


SCENARIOS = [
    *[scenario(f"stored-{name}", KIND_ROWS, *tried(QUOTAS, bodies)) for name, bodies in TRIALS.items()],
    scenario(
        "life",
        "Quotas, Kinds, Update, Table, Subresources",
        post(QUOTAS, quota({"pods": "1", "limits.cpu": "2"}, scopes=["NotBestEffort"])),
        put(f"{QUOTAS}/q", quota({"pods": "2", "limits.cpu": "2"}, scopes=["NotBestEffort"])),
        put(f"{QUOTAS}/q", quota({"pods": "2"})),
        put(f"{QUOTAS}/q", quota({"pods": "-2"}, scopes=["Terminating"])),
        patch(
            f"{QUOTAS}/q",
            {"spec": {"scopes": ["NotBestEffort", "NotBestEffort"], "hard": {"limits.cpu": "1", "cpu": "5"}}},
        ),
        patch(
            f"{QUOTAS}/q/status",
            {"status": {"hard": {"pods": "2"}, "used": {"pods": "1"}}, "spec": {"hard": {"pods": "9"}}},
        ),
        patch(f"{QUOTAS}/q/status", {"status": {"hard": {"pods": "1.5"}, "used": {"x": "1"}}}),
        put(
            f"{QUOTAS}/q/status",
            merged(quota({}), {"status": {"hard": {"pods": "3", "limits.cpu": "2"}, "used": {"limits.cpu": "1500m"}}}),
        ),
        get(QUOTAS, accept="application/json;as=Table;v=v1;g=meta.k8s.io"),
        patch(f"{QUOTAS}/q", {"metadata": {"finalizers": ["odd"]}}),
        delete(f"{QUOTAS}/q"),
        put(f"{QUOTAS}/q", quota({"pods": "2"})),
    ),
    *[
        scenario(
            f"counts-{resource.replace('/', '-')}",
            ROWS,
            *enforced({resource: "1"}),
            post(path, made("a")),
            post(path, made("b")),
            used(),
        )
        for resource, (path, made) in COUNTED.items()
    ],
    scenario(
        "counts-resourcequotas",
        ROWS,
        *counting(
            {"resourcequotas": "1", "count/resourcequotas": "5", PROBE: "0"},
            {"resourcequotas": "1", "count/resourcequotas": "1"},
        ),
        Until(post(LEASE, lease("ready"), dryRun="All"), 403),
        post(QUOTAS, quota({}, "other")),
        used(),
    ),
    scenario(
        "counts-custom-resources",
        "Quotas, Status errors",
        *installed(),
        *enforced({f"count/boats.{GROUP}": "2"}, {f"count/boats.{GROUP}": "1"}),
        post(BOATS, boat("a")),
        post(BOATS, boat("b")),
        patch(f"{BOATS}/a", {"spec": {"x": 1}}),
        used(),
    ),
    *[
        scenario(f"pods-{name}", ROWS, *enforced(hard), post(POD, bodies[0]), used(), *tried(POD, bodies[1:]))
        for name, (hard, bodies) in COMPUTE.items()
    ],
    *[
        scenario(
            f"scope-{name}", ROWS, *enforced({"pods": "0"}, **spec), *tried(POD, bodies), *tried(CM, [configmap()])
        )
        for name, (spec, bodies) in SCOPED.items()
    ],
    scenario(
        "scope-entered",
        ROWS,
        *enforced({"pods": "1"}, scopes=["Terminating"]),
        post(POD, pod()),
        post(POD, pod("b")),
        used(),
        patch(f"{POD}/a", {"spec": PAST_DEADLINE}),
        used(),
        patch(f"{POD}/b", {"spec": PAST_DEADLINE}),
        patch(f"{POD}/a", {"spec": {"activeDeadlineSeconds": 30}}),
        used(),
    ),
    scenario(
        "scope-of-volumes",
        ROWS,
        *enforced({"persistentvolumeclaims": "0"}, **selecting("VolumeAttributesClass", "In", "gold")),
        *tried(PVC, [claim(), claim(volumeAttributesClassName="gold"), claim(volumeAttributesClassName="silver")]),
        *tried(POD, [pod()]),
    ),
    scenario(
        "scope-of-all-volumes",
        ROWS,
        *enforced({"requests.storage": "1Mi"}, scopes=["VolumeAttributesClass"]),
        *tried(PVC, [claim(), claim(volumeAttributesClassName="gold"), claim(volumeAttributesClassName="")]),
    ),
    scenario(
        "ports",
        ROWS,
        *enforced({"services.nodeports": "2"}),
        post(SERVICE, service(type="NodePort")),
        post(SERVICE, service("b", type="NodePort", ports=TWO_PORTS)),
        post(SERVICE, service("c", **BALANCER, allocateLoadBalancerNodePorts=False)),
        post(SERVICE, service("d", ports=ONE_PORT)),
        patch(f"{SERVICE}/d", {"spec": {"type": "NodePort"}}),
        used(),
        patch(f"{SERVICE}/d", {"spec": {"ports": TWO_PORTS}}),
        patch(f"{SERVICE}/d", {"spec": {"type": "ClusterIP"}}),
        used(),
    ),
    scenario(
        "load-balancers",
        ROWS,
        *enforced({"services.loadbalancers": "1", "services.nodeports": "5", "services": "3"}),
        post(SERVICE, service(**BALANCER)),
        post(SERVICE, service("b", **BALANCER)),
        post(SERVICE, service("b")),
        patch(f"{SERVICE}/b", {"spec": BALANCER}),
        used(),
    ),
    scenario(
        "storage",
        ROWS,
        *enforced({"requests.storage": "3Gi", "persistentvolumeclaims": "5"}),
        post(PVC, claim(resources={"requests": {"storage": "2Gi"}})),
        post(PVC, claim("b", resources={"requests": {"storage": "1025Mi"}})),
        post(PVC, claim("b", resources={"requests": {"storage": "1G"}})),
        used(),
        post(PVC, claim("c", resources={"requests": {"storage": "1500m"}, "limits": {"storage": "2500m"}})),
        used(),
    ),
    scenario(
        "storage-classes",
        ROWS,
        *enforced(
            {
                f"gold.storageclass.storage.k8s.io/{name}": amount
                for name, amount in {"requests.storage": "2Gi", "persistentvolumeclaims": "2"}.items()
            }
        ),
        post(PVC, claim(storageClassName="gold")),
        post(PVC, claim("b", storageClassName="silver", resources={"requests": {"storage": "9Gi"}})),
        post(
            PVC, merged(claim("c"), {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "gold"}}})
        ),
        post(PVC, claim("d", storageClassName="gold", resources={"requests": {"storage": "1Mi"}})),
        used(),
    ),
    scenario(
        "storage-allocated",
        ROWS,
        *enforced({"requests.storage": "2Gi"}),
        post(PVC, claim()),
        patch(f"{PVC}/a/status", {"status": {"allocatedResources": {"storage": "5Gi"}}}),
        used(),
        patch(f"{PVC}/a", {"metadata": {"labels": {"a": "b"}}}),
        used(),
    ),
    scenario(
        "devices",
        ROWS,
        *enforced({"gpu.deviceclass.resource.k8s.io/devices": "3", "count/resourceclaims.resource.k8s.io": "4"}),
        post(DEVICE_CLAIM, devices("a", {"exactly": exactly("gpu", 2)}, {"exactly": exactly("other", 9)})),
        post(DEVICE_CLAIM, devices("b", {"exactly": exactly("gpu", 1)}, {"exactly": exactly("gpu", 1)})),
        post(DEVICE_CLAIM, devices("b", {"exactly": exactly("gpu")})),
        post(DEVICE_CLAIM, devices("b", {"exactly": exactly("other")})),
        post(
            DEVICE_CLAIM,
            devices("c", {"firstAvailable": [{"name": "x", **exactly("gpu", 2)}, {"name": "y", **exactly("gpu", 3)}]}),
        ),
        used(),
    ),
    scenario(
        "devices-by-default",
        KIND_ROWS,
        *enforced({"gpu.deviceclass.resource.k8s.io/devices": "2"}),
        post(
            DEVICE_CLAIM,
            devices("a", {"exactly": {"deviceClassName": "gpu", "tolerations": [{"key": "a", "value": "b"}]}}),
        ),
        post(
            DEVICE_CLAIM,
            devices(
                "b", {"firstAvailable": [{"name": "x", "deviceClassName": "gpu"}, {"name": "y", **exactly("other")}]}
            ),
        ),
        post(DEVICE_CLAIM, devices("c", {"exactly": {"deviceClassName": "gpu"}})),
        used(),
        post(
            DEVICE_CLAIM.replace("claims", "claimtemplates"),
            named(
                "resource.k8s.io/v1",
                "ResourceClaimTemplate",
                "a",
                spec={"spec": devices("", {"exactly": {"deviceClassName": "gpu"}})["spec"]},
            ),
        ),
    ),
    scenario(
        "dry-run",
        "Quotas, dryRun",
        *enforced({"count/configmaps": "1"}),
        post(CM, configmap(), dryRun="All"),
        used(),
        post(CM, configmap()),
        post(CM, configmap("b"), dryRun="All"),
        used(),
    ),
    scenario(
        "charged-before-it-is-stored",
        ROWS,
        *enforced({"count/configmaps": "5"}),
        post(CM, configmap()),
        post(CM, configmap()),
        used(),
        post(CM, configmap("A_b")),
        used(),
        delete(f"{CM}/a"),
        used(),
    ),
    scenario(
        "updates",
        ROWS,
        *enforced({"count/configmaps": "1", "pods": "1", "services": "1"}),
        post(CM, configmap()),
        put(f"{CM}/a", configmap(data={"other": "x"})),
        post(POD, pod()),
        patch(f"{POD}/a", {"metadata": {"labels": {"a": "b"}}}),
        patch(f"{POD}/a/status", {"status": {"phase": "Running"}}),
        post(
            f"{POD}/a/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}},
        ),
        post(SERVICE, service()),
        patch(f"{SERVICE}/a", {"metadata": {"labels": {"a": "b"}}}),
        used(),
    ),
    scenario(
        "applied",
        "Quotas, Apply",
        *enforced({"count/configmaps": "1"}),
        patch(f"{CM}/a", configmap(), "apply", fieldManager="m"),
        patch(f"{CM}/a", configmap(), "apply", fieldManager="m"),
        patch(f"{CM}/b", configmap("b"), "apply", fieldManager="m"),
        used(),
    ),
    scenario(
        "created-by-put",
        ROWS,
        *enforced({"count/limitranges": "1"}),
        put(f"{LIMITS}/a", named("v1", "LimitRange", "a", spec={"limits": []})),
        put(f"{LIMITS}/b", named("v1", "LimitRange", "b", spec={"limits": []})),
        used(),
    ),
    scenario(
        "usage-unknown",
        ROWS,
        post(QUOTAS, quota({"pods": "5", "cpu": "5", "configmaps": "1"})),
        patch(
            f"{QUOTAS}/q/status",
            {"status": {"hard": {"pods": "5", "cpu": "5", "configmaps": "1"}, "used": {"pods": "0"}}},
        ),
        *READY,
        *tried(CM, [configmap()]),
        *tried(POD, [pod(), asking(requests={"cpu": "1m"})]),
        *tried(SERVICE, [service()]),
    ),
    scenario(
        "limits-unknown",
        ROWS,
        post(QUOTAS, quota({"configmaps": "0"})),
        *READY,
        *tried(CM, [configmap()]),
        patch(f"{QUOTAS}/q/status", {"status": {"used": {"configmaps": "3"}}}),
        *tried(CM, [configmap()]),
    ),
    scenario(
        "used-too-much",
        ROWS,
        *enforced({"cpu": "1", "pods": "2"}, {"cpu": "2", "pods": "1"}),
        post(POD, asking(requests={"cpu": "1m"})),
        post(POD, asking(requests={"cpu": "0"})),
        used(),
    ),
    scenario(
        "two",
        ROWS,
        *counting({"pods": "1"}, name="first"),
        *counting({"count/pods": "5", "configmaps": "1"}, name="second"),
        *READY,
        post(POD, pod()),
        used("first"),
        used("second"),
        post(POD, pod("b")),
        used("second"),
    ),
    scenario(
        "managed-fields",
        "Quotas, Apply",
        *enforced({"count/configmaps": "5"}),
        post(CM, configmap()),
        get(f"{QUOTAS}/q"),
    ),
    scenario(
        "raised",
        ROWS,
        *enforced({"configmaps": "0"}),
        post(CM, configmap()),
        patch(f"{QUOTAS}/q/status", {"status": {"hard": {"configmaps": "1"}}}, focus=status_of),
        Until(post(CM, configmap(), dryRun="All"), 201),
        post(CM, configmap()),
        post(CM, configmap("b")),
        delete(f"{QUOTAS}/q"),
        Until(post(CM, configmap("b"), dryRun="All"), 201),
        post(CM, configmap("b")),
    ),
]
