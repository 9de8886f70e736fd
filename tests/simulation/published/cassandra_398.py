"""A claim that stays: the operator must see a Pod end.

Sieve (OSDI 2022), https://github.com/instaclustr/cassandra-operator/issues/398: the operator deletes the claim of a Pod that has a
deletion timestamp. If it never sees that state, since the Pod has already gone, the claim stays.
"""

from __future__ import annotations

from simulation.published.stand_ins import UNOBSERVED, Bug, Cluster, change, drop, name_of, new_cluster, part, put

from steersman import Context, MergePatch, ObjectMeta
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ScenarioUser

NODES_MAX = 3


async def seen_ending(ctx: Context, cluster: Cluster) -> None:
    await nodes_up(ctx, cluster)
    for number in range(cluster.spec.nodes, NODES_MAX):
        pod = await part(ctx, cluster, f"pod-{number}")
        if pod is not None and pod.deleting:
            await drop(ctx, cluster, f"claim-{number}")


async def seen_gone(ctx: Context, cluster: Cluster) -> None:
    await nodes_up(ctx, cluster)
    for number in range(cluster.spec.nodes, NODES_MAX):
        if await part(ctx, cluster, f"pod-{number}") is None:
            await drop(ctx, cluster, f"claim-{number}")


async def nodes_up(ctx: Context, cluster: Cluster) -> None:
    await put(ctx, cluster, "set", nodes=cluster.spec.nodes)
    for number in range(cluster.spec.nodes):
        await put(ctx, cluster, f"claim-{number}", node=number)
        if await part(ctx, cluster, f"pod-{number}") is None:
            # A Pod ends when its node says so: the finalizer stands for the kubelet.
            metadata = ObjectMeta(
                name=name_of(cluster, f"pod-{number}"),
                namespace=cluster.key.namespace,
                finalizers=["published.example.com/kubelet"],
            )
            await ctx.client.create(ConfigMap(metadata=metadata), owner=cluster)


async def scale_down(user: ScenarioUser) -> None:
    await new_cluster(user, nodes=2)
    await user.settled()
    await change(user, nodes=1)
    await user.sleep(1)
    # As the controller of StatefulSets does it, then the kubelet.
    await user.client.delete(ConfigMap, "data-pod-1")
    await user.sleep(1)
    await user.client.patch(ConfigMap, "data-pod-1", MergePatch({"metadata": {"finalizers": None}}))
    await user.settled()


BUG = Bug(seen_ending, seen_gone, scale_down, UNOBSERVED)
