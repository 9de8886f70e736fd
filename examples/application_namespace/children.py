"""The children of an ApplicationNamespace: pure functions, shared by both operators."""

from examples.application_namespace.types import ApplicationNamespace

from steersman import ObjectMeta, Quantity
from steersman.kinds.core_v1 import Namespace, ResourceQuota, ResourceQuotaSpec
from steersman.kinds.meta_v1 import LabelSelector
from steersman.kinds.networking_v1 import (
    NetworkPolicy,
    NetworkPolicyIngressRule,
    NetworkPolicyPeer,
    NetworkPolicySpec,
)
from steersman.kinds.rbac_v1 import RoleBinding, RoleRef, Subject

RBAC = "rbac.authorization.k8s.io"


def namespace(app: ApplicationNamespace) -> Namespace:
    return Namespace(metadata=ObjectMeta(name=app.key.name, labels=app.spec.labels))


def administrators(app: ApplicationNamespace, owners: list[str]) -> RoleBinding:
    return RoleBinding(
        metadata=ObjectMeta(name="owners", namespace=app.key.name),
        role_ref=RoleRef(api_group=RBAC, kind="ClusterRole", name="admin"),
        subjects=[Subject(api_group=RBAC, kind="User", name=name) for name in owners],
    )


def limits(app: ApplicationNamespace, hard: dict[str, Quantity]) -> ResourceQuota:
    return ResourceQuota(
        metadata=ObjectMeta(name="application", namespace=app.key.name), spec=ResourceQuotaSpec(hard=hard)
    )


def isolation(app: ApplicationNamespace) -> NetworkPolicy:
    """Allow connections to Pods only from Pods of the same namespace."""
    here = NetworkPolicyIngressRule(from_=[NetworkPolicyPeer(pod_selector=LabelSelector())])
    return NetworkPolicy(
        metadata=ObjectMeta(name="isolation", namespace=app.key.name),
        spec=NetworkPolicySpec(pod_selector=LabelSelector(), policy_types=["Ingress"], ingress=[here]),
    )
