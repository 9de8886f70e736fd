"""The columns of the tables of Kubernetes' own kinds, as ``kubectl get`` shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from operator import itemgetter
from typing import Any

import msgspec

from steersman.apiserver.registry.builtin.tables import cells, structural_cells
from steersman.apiserver.registry.builtin.tables.pod_cells import pod
from steersman.apiserver.registry.builtin.types.trees import Tree
from steersman.apiserver.registry.definition import Column
from steersman.objects import GroupVersionKind

_Row = Callable[[Tree], list[Any]]

_ROWS: Mapping[str, _Row] = {
    "CertificateSigningRequest": structural_cells.certificate_signing_request,
    "ClusterRole": cells.created,
    "ClusterRoleBinding": cells.binding,
    "ConfigMap": cells.config_map,
    "ControllerRevision": cells.controller_revision,
    "CronJob": cells.cron_job,
    "CSIDriver": structural_cells.csi_driver,
    "CSINode": structural_cells.csi_node,
    "CSIStorageCapacity": cells.created,
    "CustomResourceDefinition": cells.created,
    "DaemonSet": cells.daemon_set,
    "Deployment": cells.deployment,
    "DeviceClass": cells.named,
    "Endpoints": structural_cells.endpoints,
    "EndpointSlice": structural_cells.endpoint_slice,
    "Event": cells.event,
    "FlowSchema": structural_cells.flow_schema,
    "HorizontalPodAutoscaler": structural_cells.autoscaler,
    "Ingress": structural_cells.ingress,
    "IngressClass": structural_cells.ingress_class,
    "IPAddress": structural_cells.ip_address,
    "Job": cells.job,
    "Lease": cells.lease,
    "LimitRange": cells.created,
    "Namespace": cells.namespace,
    "NetworkPolicy": structural_cells.network_policy,
    "Node": structural_cells.node,
    "PersistentVolume": structural_cells.persistent_volume,
    "PersistentVolumeClaim": cells.persistent_volume_claim,
    "Pod": pod,
    "PodDisruptionBudget": cells.pod_disruption_budget,
    "PodTemplate": cells.pod_template,
    "PriorityClass": cells.priority_class,
    "PriorityLevelConfiguration": structural_cells.priority_level,
    "ReplicaSet": cells.replica_set,
    "ReplicationController": cells.replica_set,
    "ResourceClaim": structural_cells.resource_claim,
    "ResourceClaimTemplate": cells.named,
    "ResourceQuota": structural_cells.resource_quota,
    "ResourceSlice": structural_cells.resource_slice,
    "Role": cells.created,
    "RoleBinding": cells.binding,
    "RuntimeClass": cells.runtime_class,
    "Secret": cells.secret,
    "Service": cells.service,
    "ServiceAccount": cells.named,
    "ServiceCIDR": structural_cells.service_cidr,
    "StatefulSet": cells.stateful_set,
    "StorageClass": structural_cells.storage_class,
    "VolumeAttachment": structural_cells.volume_attachment,
    "VolumeAttributesClass": structural_cells.volume_attributes_class,
}


@cache
def _document() -> dict[str, list[tuple[str, str, str, str, int]]]:
    raw = files("steersman.apiserver.registry.builtin").joinpath("data", "columns.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, list[tuple[str, str, str, str, int]]])


def _cell(row: _Row, position: int) -> Callable[[Tree], Any]:
    pick = itemgetter(position)
    return lambda obj: pick(row(obj))


def builtin_columns() -> dict[GroupVersionKind, tuple[Column, ...]]:
    """The columns of all kinds that have their own."""
    found: dict[GroupVersionKind, tuple[Column, ...]] = {}
    for key, rows in _document().items():
        api_version, _, kind = key.partition(" ")
        group, _, version = api_version.rpartition("/")
        found[GroupVersionKind(group, version, kind)] = tuple(
            Column(
                name=name,
                type=type_,
                format=format_,
                description=description,
                priority=priority,
                cell=_cell(_ROWS[kind], position),
            )
            for position, (name, type_, format_, description, priority) in enumerate(rows)
        )
    return found
