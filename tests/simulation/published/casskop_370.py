"""A claim that stays: the operator keeps in memory that it removes a node, and writes it down too late.

Sieve (OSDI 2022), https://github.com/Orange-OpenSource/casskop/issues/370: the operator removes the Pod of a node, and notes at
the end of the reconcile that the claim is next. After a crash in between, nothing says that a node was being removed.
"""

from __future__ import annotations

from simulation.published.stand_ins import CRASHES, Bug, Cluster, change, drop, new_cluster, part, put

from steersman import Context, Requeue
from steersman.simulation import ScenarioUser

NODES_MAX = 3


async def noted_late(ctx: Context, cluster: Cluster) -> Requeue | None:
    await nodes_up(ctx, cluster)
    status = cluster.ensure_status()
    if status.phase:
        await drop(ctx, cluster, f"claim-{status.phase}")
        status.phase = ""
    else:
        for number in range(cluster.spec.nodes, NODES_MAX):
            if await part(ctx, cluster, f"pod-{number}") is not None:
                status.phase = str(number)
                await drop(ctx, cluster, f"pod-{number}")
                break
    await ctx.client.save(cluster)
    return Requeue() if status.phase else None


async def nothing_noted(ctx: Context, cluster: Cluster) -> None:
    await nodes_up(ctx, cluster)
    for number in range(cluster.spec.nodes, NODES_MAX):
        await drop(ctx, cluster, f"pod-{number}")
        await drop(ctx, cluster, f"claim-{number}")


async def nodes_up(ctx: Context, cluster: Cluster) -> None:
    for number in range(cluster.spec.nodes):
        await put(ctx, cluster, f"claim-{number}", node=number)
        await put(ctx, cluster, f"pod-{number}", node=number)


async def scale_down(user: ScenarioUser) -> None:
    await new_cluster(user, nodes=2)
    await user.settled()
    await change(user, nodes=1)
    await user.settled()


BUG = Bug(noted_late, nothing_noted, scale_down, CRASHES)
