"""Which kinds make the round trip, and what may be changed about each of them on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - seeded by the test, which says with what
from typing import Any

from samples import random_objects as objects
from samples.changes import Anew, Change, Items, Set
from samples.random_values import Tree, text, word
from steersman.kinds.admissionregistration_v1 import ValidatingWebhookConfiguration
from steersman.kinds.apiextensions_v1 import CustomResourceDefinition
from steersman.kinds.apps_v1 import ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet
from steersman.kinds.autoscaling_v2 import HorizontalPodAutoscaler
from steersman.kinds.batch_v1 import CronJob, Job
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.core_v1 import (
    ConfigMap,
    LimitRange,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ResourceQuota,
    Secret,
    Service,
    ServiceAccount,
)
from steersman.kinds.discovery_v1 import EndpointSlice
from steersman.kinds.networking_v1 import Ingress, NetworkPolicy
from steersman.kinds.policy_v1 import PodDisruptionBudget
from steersman.kinds.rbac_v1 import ClusterRole, Role, RoleBinding
from steersman.kinds.scheduling_v1 import PriorityClass
from steersman.kinds.storage_v1 import StorageClass
from steersman.objects import Object, Quantity

NAMESPACED, CLUSTER, LIMITED = "namespaced", "cluster", "limited"


@dataclass
class Recipe:
    """A kind: how to make one, and what to change. ``LIMITED`` kinds restrict their namespace, and get their own."""

    cls: type[Object]
    make: Callable[[Random], Tree]
    changes: list[Change] = field(default_factory=list)
    where: str = NAMESPACED
    #: How often it comes, compared with the others.
    weight: int = 4
    #: The server itself writes to it after it was created.
    shared: bool = False

    @property
    def kind(self) -> str:
        return self.cls.__resource__.kind


def number(low: int, high: int) -> Callable[[Random], int]:
    return lambda rng: rng.randint(low, high)


def one_of(*values: Any) -> Callable[[Random], Any]:
    return lambda rng: rng.choice(values)


def amount(path: str) -> Set:
    return Set(path, lambda rng: str(rng.randint(1, 999)), Quantity)


def image(rng: Random) -> str:
    return f"registry.example.com/{word(rng)}"


def variable(rng: Random) -> str:
    return word(rng).replace("-", "_").upper()


def pods(spec: str) -> list[Change]:
    """What may change about the pods of something."""
    return [
        Set(f"{spec}.containers.*.image", image),
        Set(f"{spec}.initContainers.*.image", image),
        Set(f"{spec}.containers.*.workingDir", one_of("/a", "/b")),
        Set(f"{spec}.containers.*.env.*.name", variable, is_key=True),
        Set(f"{spec}.containers.*.livenessProbe.periodSeconds", number(1, 90)),
        Set(f"{spec}.containers.*.securityContext.privileged", one_of(True, False)),
        Set(f"{spec}.containers.*.command", lambda rng: [text(rng), "a"]),
        Set(f"{spec}.nodeSelector", lambda rng: {"zone": word(rng)}),
        Set(f"{spec}.hostname", word),
        Items(f"{spec}.containers", "name"),
        Items(f"{spec}.containers.*.env", "name", variable),
        Items(f"{spec}.containers.*.ports", ways=("reverse", "shuffle", "remove", "anew")),
        Items(f"{spec}.containers.*.volumeMounts", "mountPath", lambda rng: f"/{word(rng)}"),
        Items(f"{spec}.containers.*.envFrom"),
        Items(f"{spec}.volumes", "name", ways=("reverse", "shuffle", "insert", "anew")),
        Items(f"{spec}.tolerations", ways=("reverse", "remove", "anew")),
        Items(f"{spec}.imagePullSecrets", "name"),
        Anew(f"{spec}.containers.*"),
        Anew(f"{spec}.containers.*.securityContext"),
        Anew(f"{spec}.affinity"),
        Anew(f"{spec}.dnsConfig"),
        Anew(spec),
        Anew("spec"),
    ]


RECIPES = [
    Recipe(
        ConfigMap,
        objects.config_map,
        [Set("data", lambda rng: {word(rng): text(rng)}), Set("immutable", one_of(False))],
    ),
    Recipe(Secret, objects.secret, [Set("immutable", one_of(False))]),
    Recipe(
        Service,
        objects.service,
        [
            Set("spec.ports.*.targetPort", one_of(80, 8080, "http", "web")),
            Set("spec.ports.*.name", word),
            Set("spec.selector", lambda rng: {"app": word(rng)}),
            Set("spec.publishNotReadyAddresses", one_of(True)),
            Items("spec.ports", ways=("reverse", "shuffle", "remove", "anew")),
            Anew("spec.ports.*"),
            Anew("spec"),
        ],
    ),
    Recipe(
        ServiceAccount,
        objects.service_account,
        [
            Items("secrets", "name"),
            Items("imagePullSecrets", "name"),
            Set("automountServiceAccountToken", one_of(True, False)),
        ],
    ),
    Recipe(
        Pod,
        objects.pod,
        [Set("spec.containers.*.image", image), Set("spec.activeDeadlineSeconds", one_of(600)), Anew("spec")],
    ),
    Recipe(PersistentVolumeClaim, objects.claim, [Anew("spec")], weight=2),
    Recipe(
        PersistentVolume,
        objects.persistent_volume,
        [
            Set("spec.persistentVolumeReclaimPolicy", one_of("Delete", "Retain")),
            amount("spec.capacity.storage"),
            Items("spec.mountOptions", ways=("reverse", "remove")),
            Anew("spec"),
        ],
        where=CLUSTER,
        weight=2,
    ),
    Recipe(
        ResourceQuota,
        objects.resource_quota,
        [amount("spec.hard.requests.example.com/gpu"), Anew("spec")],
        where=LIMITED,
        weight=2,
    ),
    Recipe(
        LimitRange,
        objects.limit_range,
        [
            Items("spec.limits", ways=("reverse", "shuffle", "remove", "anew")),
            Anew("spec.limits.*"),
        ],
        where=LIMITED,
        weight=2,
    ),
    Recipe(
        Node,
        objects.node,
        [
            Set("spec.unschedulable", one_of(True)),
            Items("spec.taints", "key"),
            Set("spec.taints.*.value", word),
            Anew("spec"),
        ],
        where=CLUSTER,
        weight=2,
    ),
    Recipe(
        Deployment,
        objects.deployment,
        [
            *pods("spec.template.spec"),
            Set("spec.replicas", number(0, 9)),
            Set("spec.strategy.rollingUpdate.maxSurge", one_of(1, 2, "30%")),
            Set("spec.paused", one_of(True)),
            Set("spec.template.metadata.annotations", lambda rng: {word(rng): text(rng)}),
        ],
        weight=6,
    ),
    Recipe(StatefulSet, objects.stateful_set, [*pods("spec.template.spec"), Set("spec.replicas", number(0, 9))]),
    Recipe(DaemonSet, objects.daemon_set, [*pods("spec.template.spec"), Set("spec.minReadySeconds", number(1, 9))]),
    Recipe(ReplicaSet, objects.replica_set, [*pods("spec.template.spec"), Set("spec.replicas", number(0, 9))]),
    Recipe(
        Job,
        objects.job,
        [Set("spec.parallelism", number(0, 9)), Set("spec.activeDeadlineSeconds", number(99, 999)), Anew("spec")],
    ),
    Recipe(
        CronJob,
        objects.cron_job,
        [
            *pods("spec.jobTemplate.spec.template.spec"),
            Set("spec.schedule", one_of("@daily", "1 2 3 4 5")),
            Set("spec.suspend", one_of(True, False)),
        ],
    ),
    Recipe(
        Ingress,
        objects.ingress,
        [
            Set("spec.rules.*.host", lambda rng: f"{word(rng)}.example.org"),
            Set("spec.rules.*.http.paths.*.path", lambda rng: f"/{word(rng)}"),
            Items("spec.rules"),
            Items("spec.rules.*.http.paths"),
            Items("spec.tls.*.hosts", ways=("reverse",)),
            Anew("spec.rules.*.http"),
            Anew("spec"),
        ],
    ),
    Recipe(
        NetworkPolicy,
        objects.network_policy,
        [
            Items("spec.ingress", ways=("reverse", "shuffle", "remove", "anew")),
            Items("spec.ingress.*.from"),
            Items("spec.ingress.*.ports"),
            Set("spec.ingress.*.ports.*.port", number(1, 900)),
            Set("spec.podSelector.matchLabels", lambda rng: {"app": word(rng)}),
            Anew("spec.ingress.*"),
            Anew("spec"),
        ],
    ),
    Recipe(
        Role,
        objects.role,
        [Items("rules"), Set("rules.*.verbs", one_of(["*"], ["get", "watch"])), Anew("rules.*")],
    ),
    Recipe(ClusterRole, objects.cluster_role, [Items("rules"), Anew("rules.*")], where=CLUSTER, weight=2),
    Recipe(
        RoleBinding,
        objects.role_binding,
        [Items("subjects"), Set("subjects.*.name", word), Anew("subjects.*")],
    ),
    Recipe(
        PodDisruptionBudget,
        objects.disruption_budget,
        [
            Set("spec.selector.matchLabels", lambda rng: {"app": word(rng)}),
            Items("spec.selector.matchExpressions"),
            Anew("spec"),
        ],
    ),
    Recipe(
        HorizontalPodAutoscaler,
        objects.autoscaler,
        [
            Set("spec.maxReplicas", number(10, 20)),
            Items("spec.metrics", ways=("reverse", "shuffle", "remove", "anew")),
            Set("spec.metrics.*.pods.metric.name", word),
            Set("spec.metrics.*.pods.target.averageValue", lambda rng: str(rng.randint(1, 99)), Quantity),
            Anew("spec.metrics.*"),
            Anew("spec"),
        ],
    ),
    Recipe(
        Lease,
        objects.lease,
        [Set("spec.holderIdentity", word), Set("spec.leaseTransitions", number(10, 99)), Anew("spec")],
    ),
    Recipe(StorageClass, objects.storage_class, [Items("mountOptions", ways=("reverse",))], where=CLUSTER, weight=2),
    Recipe(PriorityClass, objects.priority_class, [Set("description", text)], where=CLUSTER, weight=2),
    Recipe(
        ValidatingWebhookConfiguration,
        objects.webhooks,
        [
            Items("webhooks", "name", lambda rng: f"{word(rng)}.example.org"),
            Items("webhooks.*.rules"),
            Set("webhooks.*.timeoutSeconds", number(1, 30)),
            Set("webhooks.*.matchConditions.*.expression", one_of("true", "object.kind == 'Y'")),
            Anew("webhooks.*"),
            Anew("webhooks.*.clientConfig"),
        ],
        where=CLUSTER,
        weight=2,
    ),
    Recipe(
        EndpointSlice,
        objects.endpoint_slice,
        [
            Items("endpoints"),
            Items("ports", ways=("reverse", "remove", "anew")),
            Set("endpoints.*.zone", word),
            Anew("endpoints.*"),
        ],
    ),
    Recipe(ControllerRevision, objects.revision, [Set("revision", number(100, 200))], weight=2),
    Recipe(
        CustomResourceDefinition,
        objects.definition,
        [
            Set("spec.versions.*.schema.openAPIV3Schema.description", text),
            Set("spec.names.singular", lambda rng: word(rng).replace("-", "")),
            Anew("spec.versions.*.schema.openAPIV3Schema"),
            Anew("spec.versions.*"),
            Items("spec.versions.*.additionalPrinterColumns", "name", ways=("insert", "anew", "remove")),
        ],
        where=CLUSTER,
        weight=1,
        shared=True,
    ),
]
