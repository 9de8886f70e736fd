"""A volume that never grows: the operator dies in the middle of a resize.

Sieve (OSDI 2022), https://github.com/rabbitmq/cluster-operator/issues/782: to grow a volume, the operator deletes the
StatefulSet, grows the claim, and creates the StatefulSet anew. It decides by the size in the StatefulSet: after a crash behind
the deletion, it creates one of the new size, and the claim keeps the old one.
"""

from __future__ import annotations

from simulation.published.stand_ins import CRASHES, Bug, Cluster, change, drop, new_cluster, part, put

from steersman import Context
from steersman.simulation import ScenarioUser


async def by_the_set(ctx: Context, cluster: Cluster) -> None:
    size = cluster.spec.size
    members = await part(ctx, cluster, "set")
    if await part(ctx, cluster, "claim") is None:
        await put(ctx, cluster, "claim", size=size)
    elif members is not None and (members.data or {}).get("size") != str(size):
        await drop(ctx, cluster, "set")
        await put(ctx, cluster, "claim", size=size)
    await put(ctx, cluster, "set", size=size)


async def by_the_claim(ctx: Context, cluster: Cluster) -> None:
    size = cluster.spec.size
    claim = await part(ctx, cluster, "claim")
    if claim is not None and (claim.data or {}).get("size") != str(size):
        await drop(ctx, cluster, "set")
    await put(ctx, cluster, "claim", size=size)
    await put(ctx, cluster, "set", size=size)


async def resize(user: ScenarioUser) -> None:
    await new_cluster(user, size=10)
    await user.settled()
    await change(user, size=15)
    await user.settled()


BUG = Bug(by_the_set, by_the_claim, resize, CRASHES)
