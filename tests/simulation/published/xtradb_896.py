"""A Secret that is missing: an answer that something exists ends the reconcile.

Sieve (OSDI 2022), https://jira.percona.com/browse/K8SPXC-896: the second of two Secrets with certificates is never made after a
crash behind the first, since the operator takes the first for a sign that all is done.
"""

from __future__ import annotations

from contextlib import suppress

from simulation.published.stand_ins import CRASHES, Bug, Cluster, name_of, new_cluster

from steersman import Context, ObjectMeta
from steersman.errors import AlreadyExists
from steersman.kinds.core_v1 import Secret
from steersman.simulation import ScenarioUser


def secret(cluster: Cluster, name: str) -> Secret:
    return Secret(metadata=ObjectMeta(name=name_of(cluster, name), namespace=cluster.key.namespace))


async def all_or_nothing(ctx: Context, cluster: Cluster) -> None:
    with suppress(AlreadyExists):
        await ctx.client.create(secret(cluster, "ssl"), owner=cluster)
        await ctx.client.create(secret(cluster, "ssl-internal"), owner=cluster)


async def one_by_one(ctx: Context, cluster: Cluster) -> None:
    for name in ("ssl", "ssl-internal"):
        with suppress(AlreadyExists):
            await ctx.client.create(secret(cluster, name), owner=cluster)


async def create(user: ScenarioUser) -> None:
    await new_cluster(user)
    await user.settled()


BUG = Bug(all_or_nothing, one_by_one, create, CRASHES)
