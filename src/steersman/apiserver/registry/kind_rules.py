"""The strategies of Kubernetes' own kinds, by kind.

Guarantees
- The module of a kind is imported by the first request that needs its rules, so a server starts faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.structural_strategy import StructuralStrategy
from steersman.apiserver.registry.strategy import Strategy
from steersman.objects import GroupVersionKind

_ROOM = __name__.rpartition(".")[0]
#: The strategy of each kind with its own: a module of this package, and its class.
_OWN: Mapping[str, str] = {
    "v1 ConfigMap": "builtin.config_map.ConfigMapStrategy",
    "v1 Endpoints": "builtin.networks.endpoints.EndpointsStrategy",
    "v1 Event": "builtin.event.EventStrategy",
    "v1 LimitRange": "builtin.limit_range.LimitRangeStrategy",
    "v1 Namespace": "builtin.namespace.NamespaceStrategy",
    "v1 Node": "builtin.cluster.node.NodeStrategy",
    "v1 PersistentVolume": "builtin.storage.persistent_volume.PersistentVolumeStrategy",
    "v1 PersistentVolumeClaim": "builtin.persistent_volume_claim.PersistentVolumeClaimStrategy",
    "v1 Pod": "builtin.pods.strategy.PodStrategy",
    "v1 PodTemplate": "builtin.workloads.templates.PodTemplateStrategy",
    "v1 ReplicationController": "builtin.workloads.apps.ReplicationControllerStrategy",
    "v1 ResourceQuota": "builtin.resource_quota.ResourceQuotaStrategy",
    "v1 Secret": "builtin.secret.SecretStrategy",
    "v1 Service": "builtin.service.ServiceStrategy",
    "v1 ServiceAccount": "builtin.service_account.ServiceAccountStrategy",
    "admissionregistration.k8s.io/v1 MutatingAdmissionPolicy": "builtin.mutating_policy.MutatingPolicyStrategy",
    "admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding": "builtin.mutating_policy.MutatingPolicyBindingStrategy",
    "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration": "builtin.webhook_configuration.WebhookConfigurationStrategy",
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy": "builtin.admission_policy.PolicyStrategy",
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": "builtin.admission_policy.PolicyBindingStrategy",
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration": "builtin.webhook_configuration.WebhookConfigurationStrategy",
    "apiextensions.k8s.io/v1 CustomResourceDefinition": "crd.strategy.CustomResourceDefinitionStrategy",
    "apps/v1 ControllerRevision": "builtin.workloads.templates.ControllerRevisionStrategy",
    "apps/v1 DaemonSet": "builtin.workloads.apps.DaemonSetStrategy",
    "apps/v1 Deployment": "builtin.workloads.apps.DeploymentStrategy",
    "apps/v1 ReplicaSet": "builtin.workloads.apps.ReplicaSetStrategy",
    "apps/v1 StatefulSet": "builtin.workloads.apps.StatefulSetStrategy",
    "autoscaling/v1 HorizontalPodAutoscaler": "builtin.workloads.autoscaler.AutoscalerStrategy",
    "autoscaling/v2 HorizontalPodAutoscaler": "builtin.workloads.autoscaler.AutoscalerStrategy",
    "batch/v1 CronJob": "builtin.workloads.batch.CronJobStrategy",
    "batch/v1 Job": "builtin.workloads.batch.JobStrategy",
    "certificates.k8s.io/v1 CertificateSigningRequest": "builtin.cluster.certificate_signing_request.CertificateSigningRequestStrategy",
    "certificates.k8s.io/v1 ClusterTrustBundle": "builtin.cluster.cluster_trust_bundle.ClusterTrustBundleStrategy",
    "certificates.k8s.io/v1 PodCertificateRequest": "builtin.cluster.pod_certificate_request.PodCertificateRequestStrategy",
    "coordination.k8s.io/v1 Lease": "builtin.lease.LeaseStrategy",
    "discovery.k8s.io/v1 EndpointSlice": "builtin.networks.endpoints.EndpointSliceStrategy",
    "events.k8s.io/v1 Event": "builtin.event.EventStrategy",
    "flowcontrol.apiserver.k8s.io/v1 FlowSchema": "builtin.cluster.flow_control.FlowSchemaStrategy",
    "flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration": "builtin.cluster.flow_control.PriorityLevelConfigurationStrategy",
    "networking.k8s.io/v1 IPAddress": "builtin.networks.addresses.IPAddressStrategy",
    "networking.k8s.io/v1 Ingress": "builtin.networks.ingress.IngressStrategy",
    "networking.k8s.io/v1 IngressClass": "builtin.networks.ingress.IngressClassStrategy",
    "networking.k8s.io/v1 NetworkPolicy": "builtin.networks.network_policy.NetworkPolicyStrategy",
    "networking.k8s.io/v1 ServiceCIDR": "builtin.networks.addresses.ServiceCIDRStrategy",
    "node.k8s.io/v1 RuntimeClass": "builtin.cluster.runtime_class.RuntimeClassStrategy",
    "policy/v1 PodDisruptionBudget": "builtin.pod_disruption_budget.PodDisruptionBudgetStrategy",
    "rbac.authorization.k8s.io/v1 ClusterRole": "builtin.rbac.RoleStrategy",
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding": "builtin.rbac.BindingStrategy",
    "rbac.authorization.k8s.io/v1 Role": "builtin.rbac.RoleStrategy",
    "rbac.authorization.k8s.io/v1 RoleBinding": "builtin.rbac.BindingStrategy",
    "resource.k8s.io/v1 DeviceTaintRule": "builtin.cluster.device_taint_rule.DeviceTaintRuleStrategy",
    "scheduling.k8s.io/v1 PriorityClass": "builtin.cluster.priority_class.PriorityClassStrategy",
    "storage.k8s.io/v1 CSIDriver": "builtin.storage.csi.CSIDriverStrategy",
    "storage.k8s.io/v1 CSINode": "builtin.storage.csi.CSINodeStrategy",
    "storage.k8s.io/v1 CSIStorageCapacity": "builtin.storage.classes.CSIStorageCapacityStrategy",
    "storage.k8s.io/v1 StorageClass": "builtin.storage.classes.StorageClassStrategy",
    "storage.k8s.io/v1 VolumeAttachment": "builtin.storage.csi.VolumeAttachmentStrategy",
    "storage.k8s.io/v1 VolumeAttributesClass": "builtin.storage.classes.VolumeAttributesClassStrategy",
    "storagemigration.k8s.io/v1 StorageVersionMigration": "builtin.cluster.storage_version_migration.StorageVersionMigrationStrategy",
}


#: Kinds with structural checks and common defaults only.
_STRUCTURAL = frozenset(
    f"{group_version} {kind}"
    for group_version, kinds in {
        "v1": "Binding ComponentStatus",
        "apiregistration.k8s.io/v1": "APIService",
        "resource.k8s.io/v1": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
    }.items()
    for kind in kinds.split()
)
_WITH_STATUS = frozenset(
    """
    APIService CSINode CertificateSigningRequest CronJob CustomResourceDefinition DaemonSet Deployment DeviceTaintRule
    FlowSchema HorizontalPodAutoscaler Ingress Job Namespace Node PersistentVolume PersistentVolumeClaim Pod
    PodCertificateRequest PodDisruptionBudget PriorityLevelConfiguration ReplicaSet ReplicationController ResourceClaim ResourceQuota
    Service ServiceCIDR StatefulSet StorageVersionMigration ValidatingAdmissionPolicy VolumeAttachment
    """.split()  # noqa: SIM905
)


@cache
def strategy_of(kind: GroupVersionKind) -> Strategy | None:
    """The strategy of a kind that has its own."""
    name = str(kind)
    if name in _STRUCTURAL:
        made: type[BuiltinStrategy] = StructuralStrategy
    elif name in _OWN:
        module, _, class_name = _OWN[name].rpartition(".")
        made = getattr(import_module(f"{_ROOM}.{module}"), class_name)
    else:
        return None
    return made(kind, has_status=kind.kind in _WITH_STATUS)


def is_validated(kind: GroupVersionKind) -> bool:
    """Whether a kind has its own checks, besides those of its types."""
    return str(kind) in _OWN
