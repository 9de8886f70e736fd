"""A Pod with an old configuration: what is written already needs no restart, it seems.

Sieve (OSDI 2022), https://github.com/konpyutaika/nifikop/issues/49: the operator writes a changed configuration and restarts the
Pod. After a crash in between, the configuration is up to date, so no restart follows.
"""

from __future__ import annotations

from simulation.published.stand_ins import CRASHES, Bug, Cluster, change, drop, new_cluster, part, put

from steersman import Context
from steersman.simulation import ScenarioUser


async def restart_after_a_write(ctx: Context, cluster: Cluster) -> None:
    config = await part(ctx, cluster, "config")
    if config is None or (config.data or {}).get("text") != cluster.spec.config:
        await put(ctx, cluster, "config", text=cluster.spec.config)
        await drop(ctx, cluster, "pod")
        await put(ctx, cluster, "pod", started_with=cluster.spec.config)


async def restart_what_differs(ctx: Context, cluster: Cluster) -> None:
    await put(ctx, cluster, "config", text=cluster.spec.config)
    pod = await part(ctx, cluster, "pod")
    if pod is not None and (pod.data or {}).get("started_with") != cluster.spec.config:
        await drop(ctx, cluster, "pod")
    await put(ctx, cluster, "pod", started_with=cluster.spec.config)


async def new_config(user: ScenarioUser) -> None:
    await new_cluster(user, config="old")
    await user.settled()
    await change(user, config="new")
    await user.settled()


BUG = Bug(restart_after_a_write, restart_what_differs, new_config, CRASHES)
