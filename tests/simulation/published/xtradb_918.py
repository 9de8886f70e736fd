"""Claims that depend on history: whether a size was seen decides what exists.

Sieve (OSDI 2022), https://jira.percona.com/browse/K8SPXC-918: users scale up and down again. Claims of the larger size stay if the
operator saw it, and do not exist if it did not.
"""

from __future__ import annotations

from simulation.published.stand_ins import UNOBSERVED, Bug, Cluster, change, drop, new_cluster, put

from steersman import Context
from steersman.simulation import ScenarioUser

NODES_MAX = 3


async def claims_stay(ctx: Context, cluster: Cluster) -> None:
    for number in range(cluster.spec.nodes):
        await put(ctx, cluster, f"claim-{number}", node=number)


async def claims_go(ctx: Context, cluster: Cluster) -> None:
    await claims_stay(ctx, cluster)
    for number in range(cluster.spec.nodes, NODES_MAX):
        await drop(ctx, cluster, f"claim-{number}")


async def up_and_down(user: ScenarioUser) -> None:
    await new_cluster(user, nodes=1)
    await user.sleep(2)
    await change(user, nodes=3)
    await user.sleep(2)
    await change(user, nodes=1)
    await user.settled()


BUG = Bug(claims_stay, claims_go, up_and_down, UNOBSERVED)
