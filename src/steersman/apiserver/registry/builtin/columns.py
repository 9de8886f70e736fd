"""The columns of the tables of Kubernetes' own kinds, as ``kubectl get`` shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from operator import itemgetter
from typing import Any

import msgspec

from steersman.apiserver.registry.builtin import cells
from steersman.apiserver.registry.builtin.pod_cells import pod
from steersman.apiserver.registry.builtin.trees import Tree
from steersman.apiserver.registry.definition import Column
from steersman.objects import GroupVersionKind

_Row = Callable[[Tree], list[Any]]

_ROWS: Mapping[str, _Row] = {
    "ClusterRole": cells.created,
    "ClusterRoleBinding": cells.binding,
    "ConfigMap": cells.config_map,
    "ControllerRevision": cells.controller_revision,
    "CronJob": cells.cron_job,
    "CSIStorageCapacity": cells.created,
    "CustomResourceDefinition": cells.created,
    "DaemonSet": cells.daemon_set,
    "Deployment": cells.deployment,
    "Event": cells.event,
    "Job": cells.job,
    "Lease": cells.lease,
    "LimitRange": cells.created,
    "Namespace": cells.namespace,
    "PersistentVolumeClaim": cells.persistent_volume_claim,
    "Pod": pod,
    "PodDisruptionBudget": cells.pod_disruption_budget,
    "PodTemplate": cells.pod_template,
    "PriorityClass": cells.priority_class,
    "ReplicaSet": cells.replica_set,
    "ReplicationController": cells.replica_set,
    "Role": cells.created,
    "RoleBinding": cells.binding,
    "RuntimeClass": cells.runtime_class,
    "Secret": cells.secret,
    "Service": cells.service,
    "ServiceAccount": cells.named,
    "StatefulSet": cells.stateful_set,
}


@cache
def _document() -> dict[str, list[tuple[str, str, str, str, int]]]:
    raw = files("steersman.apiserver.registry.builtin").joinpath("data", "columns.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, list[tuple[str, str, str, str, int]]])


def _cell(row: _Row, position: int) -> Callable[[Tree], Any]:
    pick = itemgetter(position)
    return lambda obj: pick(row(obj))


def builtin_columns() -> dict[GroupVersionKind, tuple[Column, ...]]:
    """The columns of all kinds that have some here."""
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
