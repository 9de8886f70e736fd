"""Pods that depend on history: the operator refuses to shrink.

Sieve (OSDI 2022), https://github.com/rabbitmq/cluster-operator/issues/758: users scale up and down again. The operator scales up, and
ignores the way down: what runs depends on whether it saw the larger size.
"""

from __future__ import annotations

from simulation.published.stand_ins import UNOBSERVED, Bug, Cluster, put
from simulation.published.xtradb_918 import up_and_down

from steersman import Context


async def never_less(ctx: Context, cluster: Cluster) -> None:
    status = cluster.ensure_status()
    status.nodes = max(status.nodes, cluster.spec.nodes)
    await put(ctx, cluster, "set", nodes=status.nodes)
    await ctx.client.save(cluster)


async def as_wanted(ctx: Context, cluster: Cluster) -> None:
    await put(ctx, cluster, "set", nodes=cluster.spec.nodes)
    cluster.ensure_status().nodes = cluster.spec.nodes
    await ctx.client.save(cluster)


BUG = Bug(never_less, as_wanted, up_and_down, UNOBSERVED)
