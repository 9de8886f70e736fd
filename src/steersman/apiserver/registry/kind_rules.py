"""The rules of Kubernetes' own kinds, by kind: strategies, table columns and selectable fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from steersman.apiserver.registry.builtin.config_map import ConfigMapStrategy
from steersman.apiserver.registry.builtin.event import EventStrategy
from steersman.apiserver.registry.builtin.lease import LeaseStrategy
from steersman.apiserver.registry.builtin.namespace import NamespaceStrategy
from steersman.apiserver.registry.builtin.persistent_volume_claim import PersistentVolumeClaimStrategy
from steersman.apiserver.registry.builtin.pod_disruption_budget import PodDisruptionBudgetStrategy
from steersman.apiserver.registry.builtin.pods.strategy import PodStrategy
from steersman.apiserver.registry.builtin.rbac import BindingStrategy, RoleStrategy
from steersman.apiserver.registry.builtin.secret import SecretStrategy
from steersman.apiserver.registry.builtin.selectable_fields import SELECTABLE
from steersman.apiserver.registry.builtin.service import ServiceStrategy
from steersman.apiserver.registry.builtin.service_account import ServiceAccountStrategy
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.structural_strategy import StructuralStrategy
from steersman.apiserver.registry.builtin.tables.columns import builtin_columns
from steersman.apiserver.registry.builtin.workloads.apps import (
    DaemonSetStrategy,
    DeploymentStrategy,
    ReplicaSetStrategy,
    ReplicationControllerStrategy,
    StatefulSetStrategy,
)
from steersman.apiserver.registry.builtin.workloads.batch import CronJobStrategy, JobStrategy
from steersman.apiserver.registry.crd.strategy import CustomResourceDefinitionStrategy
from steersman.apiserver.registry.definition import Column, Strategy, Tree
from steersman.objects import GroupVersionKind

_VALIDATED: Mapping[tuple[str, str], type[BuiltinStrategy]] = {
    ("v1", "ConfigMap"): ConfigMapStrategy,
    ("v1", "Event"): EventStrategy,
    ("v1", "Namespace"): NamespaceStrategy,
    ("v1", "PersistentVolumeClaim"): PersistentVolumeClaimStrategy,
    ("v1", "Pod"): PodStrategy,
    ("v1", "ReplicationController"): ReplicationControllerStrategy,
    ("v1", "Secret"): SecretStrategy,
    ("v1", "Service"): ServiceStrategy,
    ("v1", "ServiceAccount"): ServiceAccountStrategy,
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): CustomResourceDefinitionStrategy,
    ("apps/v1", "DaemonSet"): DaemonSetStrategy,
    ("apps/v1", "Deployment"): DeploymentStrategy,
    ("apps/v1", "ReplicaSet"): ReplicaSetStrategy,
    ("apps/v1", "StatefulSet"): StatefulSetStrategy,
    ("batch/v1", "CronJob"): CronJobStrategy,
    ("batch/v1", "Job"): JobStrategy,
    ("coordination.k8s.io/v1", "Lease"): LeaseStrategy,
    ("events.k8s.io/v1", "Event"): EventStrategy,
    ("policy/v1", "PodDisruptionBudget"): PodDisruptionBudgetStrategy,
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): RoleStrategy,
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): BindingStrategy,
    ("rbac.authorization.k8s.io/v1", "Role"): RoleStrategy,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): BindingStrategy,
}


def _kind(api_version: str, kind: str) -> GroupVersionKind:
    group, _, version = api_version.rpartition("/")
    return GroupVersionKind(group, version, kind)


#: Kinds with structural checks and common defaults only.
_STRUCTURAL: tuple[tuple[str, str], ...] = tuple(
    (group_version, kind)
    for group_version, kinds in {
        "v1": "Binding ComponentStatus Endpoints LimitRange Node PersistentVolume PodTemplate ResourceQuota",
        "admissionregistration.k8s.io/v1": (
            "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration "
            "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"
        ),
        "apiregistration.k8s.io/v1": "APIService",
        "apps/v1": "ControllerRevision",
        "autoscaling/v1": "HorizontalPodAutoscaler",
        "autoscaling/v2": "HorizontalPodAutoscaler",
        "certificates.k8s.io/v1": "CertificateSigningRequest",
        "discovery.k8s.io/v1": "EndpointSlice",
        "flowcontrol.apiserver.k8s.io/v1": "FlowSchema PriorityLevelConfiguration",
        "networking.k8s.io/v1": "IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR",
        "node.k8s.io/v1": "RuntimeClass",
        "resource.k8s.io/v1": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
        "scheduling.k8s.io/v1": "PriorityClass",
        "storage.k8s.io/v1": (
            "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass"
        ),
    }.items()
    for kind in kinds.split()
)
_WITH_STATUS = frozenset(
    {
        "APIService",
        "CertificateSigningRequest",
        "CronJob",
        "CustomResourceDefinition",
        "DaemonSet",
        "Deployment",
        "FlowSchema",
        "HorizontalPodAutoscaler",
        "Ingress",
        "Job",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "PriorityLevelConfiguration",
        "ReplicaSet",
        "ReplicationController",
        "ResourceClaim",
        "ResourceQuota",
        "Service",
        "ServiceCIDR",
        "StatefulSet",
        "ValidatingAdmissionPolicy",
        "VolumeAttachment",
    }
)


def _strategies() -> dict[GroupVersionKind, Strategy]:
    made: dict[GroupVersionKind, type[BuiltinStrategy]] = {_kind(*named): make for named, make in _VALIDATED.items()}
    made |= {_kind(*named): StructuralStrategy for named in _STRUCTURAL}
    return {kind: make(kind, has_status=kind.kind in _WITH_STATUS) for kind, make in made.items()}


#: The strategy of each kind.
strategies: Mapping[GroupVersionKind, Strategy] = _strategies()
#: The columns of each kind's table; other kinds show their name and creation time.
columns: Mapping[GroupVersionKind, tuple[Column, ...]] = builtin_columns()
#: The fields for field selectors.
selectable: Mapping[GroupVersionKind, Mapping[str, Callable[[Tree], str]]] = SELECTABLE
#: Kinds whose fields are checked only by type.
not_validated: tuple[GroupVersionKind, ...] = tuple(_kind(*named) for named in _STRUCTURAL)
