"""A Pod too many: the operator must see each step of a user.

Sieve (OSDI 2022), https://github.com/Orange-OpenSource/casskop/issues/342: users remove one node after the other. The operator
refuses to remove two at once, measured by the last size that it saw, and misses the step between.
"""

from __future__ import annotations

from simulation.published.stand_ins import UNOBSERVED, Bug, Cluster, change, drop, new_cluster, put

from steersman import Context
from steersman.simulation import ScenarioUser

NODES_MAX = 3


async def one_at_a_time(ctx: Context, cluster: Cluster) -> None:
    status = cluster.ensure_status()
    if cluster.spec.nodes < status.nodes - 1:
        return
    await nodes_as_wanted(ctx, cluster)


async def nodes_as_wanted(ctx: Context, cluster: Cluster) -> None:
    for number in range(cluster.spec.nodes):
        await put(ctx, cluster, f"pod-{number}", node=number)
    for number in reversed(range(cluster.spec.nodes, NODES_MAX)):
        await drop(ctx, cluster, f"pod-{number}")
    cluster.ensure_status().nodes = cluster.spec.nodes
    await ctx.client.save(cluster)


async def scale_down_twice(user: ScenarioUser) -> None:
    await new_cluster(user, nodes=2)
    await user.sleep(2)
    await change(user, nodes=1)
    await user.sleep(2)
    await change(user, nodes=0)
    await user.settled()


BUG = Bug(one_at_a_time, nodes_as_wanted, scale_down_twice, UNOBSERVED)
