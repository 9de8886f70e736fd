"""A Secret that is missing: one of two stands for both.

Sieve (OSDI 2022), https://jira.percona.com/browse/K8SPSMDB-578: the operator makes two Secrets with certificates, and looks
for the first only. After a crash between the two, the second is never made.
"""

from __future__ import annotations

from simulation.published.stand_ins import CRASHES, Bug, Cluster, new_cluster, part, put

from steersman import Context
from steersman.simulation import ScenarioUser


async def one_for_both(ctx: Context, cluster: Cluster) -> None:
    if await part(ctx, cluster, "ssl") is None:
        await put(ctx, cluster, "ssl", certificate="outside")
        await put(ctx, cluster, "ssl-internal", certificate="inside")


async def each_by_itself(ctx: Context, cluster: Cluster) -> None:
    await put(ctx, cluster, "ssl", certificate="outside")
    await put(ctx, cluster, "ssl-internal", certificate="inside")


async def create(user: ScenarioUser) -> None:
    await new_cluster(user)
    await user.settled()


BUG = Bug(one_for_both, each_by_itself, create, CRASHES)
