"""A node that cannot leave: its state is written after its Pod, once.

Sieve (OSDI 2022), https://github.com/konpyutaika/nifikop/issues/79: the operator creates the Pod of a node, then writes that the
node has joined. After a crash in between, the Pod exists, so the state is never written; and only nodes that have joined are
removed when the cluster shrinks.
"""

from __future__ import annotations

from simulation.published.stand_ins import CRASHES, Bug, Cluster, change, drop, new_cluster, part, put

from steersman import Context
from steersman.simulation import ScenarioUser

NODES_MAX = 3


async def joined_once(ctx: Context, cluster: Cluster) -> None:
    status = cluster.ensure_status()
    states = dict(status.states or {})
    for number in range(cluster.spec.nodes):
        if await part(ctx, cluster, f"pod-{number}") is None:
            await put(ctx, cluster, f"pod-{number}", node=number)
            states[str(number)] = "joined"
    await shrink(ctx, cluster, states)


async def joined_if_there(ctx: Context, cluster: Cluster) -> None:
    states = dict(cluster.ensure_status().states or {})
    for number in range(cluster.spec.nodes):
        await put(ctx, cluster, f"pod-{number}", node=number)
        states[str(number)] = "joined"
    await shrink(ctx, cluster, states)


async def shrink(ctx: Context, cluster: Cluster, states: dict[str, str]) -> None:
    for number in range(cluster.spec.nodes, NODES_MAX):
        if str(number) in states:
            await drop(ctx, cluster, f"pod-{number}")
            del states[str(number)]
    cluster.ensure_status().states = states
    await ctx.client.save(cluster)


async def scale_down(user: ScenarioUser) -> None:
    await new_cluster(user, nodes=2)
    await user.settled()
    await change(user, nodes=1)
    await user.settled()


BUG = Bug(joined_once, joined_if_there, scale_down, CRASHES)
