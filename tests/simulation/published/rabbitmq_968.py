"""Annotations that stay: what a user removes is merged, not removed.

Acto (SOSP 2023), https://github.com/rabbitmq/cluster-operator/issues/968: the operator adds the annotations of the spec to those that a
Service has. One that the spec no longer has stays. No fault is needed: a check of the state shows it.
"""

from __future__ import annotations

from simulation.published.stand_ins import Bug, Cluster, change, new_cluster, part, put

from steersman import Context
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import Objects, ScenarioUser, at_rest


async def added(ctx: Context, cluster: Cluster) -> None:
    service = await part(ctx, cluster, "service")
    present = (service.data or {}) if service is not None else {}
    await put(ctx, cluster, "service", **(present | (cluster.spec.labels or {})))


async def as_wanted(ctx: Context, cluster: Cluster) -> None:
    await put(ctx, cluster, "service", **(cluster.spec.labels or {}))


async def other_label(user: ScenarioUser) -> None:
    await new_cluster(user, labels={"first": "1"})
    await user.settled()
    await change(user, labels={"first": None, "second": "2"})
    await user.settled()


def labels_as_wanted(objects: Objects) -> bool:
    service, cluster = objects.get(ConfigMap, "default/data-service"), objects.get(Cluster, "default/data")
    return service is None or cluster is None or (service.data or {}) == (cluster.spec.labels or {})


BUG = Bug(added, as_wanted, other_label, checks=(at_rest(labels_as_wanted),))
