"""A claim that outlives its cluster: the clean-up ends where an earlier one was interrupted.

Sieve (OSDI 2022), https://jira.percona.com/browse/K8SPXC-979, by the plan that reproduces it: the operator dies after it has deleted
the StatefulSet of a cluster that is being deleted. Its successor finds no StatefulSet and takes the clean-up for done.
"""

from __future__ import annotations

from simulation.published.stand_ins import CRASHES, Bug, Cluster, drop, name_of, new_cluster, part

from steersman import Context, Done, ObjectMeta, Requeue
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ScenarioUser

FINALIZER = "published.example.com/clean-up"


async def until_the_set_is_gone(ctx: Context, cluster: Cluster) -> Done | Requeue:
    return await clean_up(ctx, cluster, done=await part(ctx, cluster, "set") is None)


async def until_all_is_gone(ctx: Context, cluster: Cluster) -> Done | Requeue:
    return await clean_up(ctx, cluster, done=False)


async def clean_up(ctx: Context, cluster: Cluster, *, done: bool) -> Done | Requeue:
    if not cluster.deleting:
        return await build(ctx, cluster)
    if not done:
        await drop(ctx, cluster, "set")
        await drop(ctx, cluster, "claim")
    cluster.metadata.finalizers = []
    await ctx.client.save(cluster)
    return Done()


async def build(ctx: Context, cluster: Cluster) -> Done | Requeue:
    if not cluster.metadata.finalizers:
        cluster.metadata.finalizers = [FINALIZER]
        await ctx.client.save(cluster)
        return Requeue()
    for name in ("claim", "set"):
        # Without an owner: data is deleted by the operator alone.
        metadata = ObjectMeta(name=name_of(cluster, name), namespace=cluster.key.namespace)
        await ctx.client.apply(ConfigMap(metadata=metadata, data={"of": cluster.key.name}), force=True)
    return Done()


async def create_and_delete(user: ScenarioUser) -> None:
    await new_cluster(user)
    await user.settled()
    await user.client.delete(Cluster, "data")
    await user.settled()


BUG = Bug(until_the_set_is_gone, until_all_is_gone, create_and_delete, CRASHES)
