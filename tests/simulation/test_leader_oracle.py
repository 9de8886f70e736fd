"""The oracle `leader`: which writes of a process count while another one leads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from simulation.gallery.sites import Site, config_map, create, creation

from steersman import Client, Context, Done, LeaderElection, Manager, ObjectMeta, Request
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation import ScenarioUser, simulate


def operator() -> Manager:
    """Publishes Sites while it leads."""
    manager = Manager(name="publisher", leader=LeaderElection("publisher"))

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is not None and not site.deleting:
            await ctx.client.apply(config_map(site), owner=site, force=True)
        return Done()

    manager.controller(Site).owns(ConfigMap).run_with(reconcile)
    return manager


def registered_operator() -> Manager:
    """The same, and each process writes that it is there before it leads."""
    manager = operator()

    @asynccontextmanager
    async def registered(client: Client) -> AsyncGenerator[None]:
        await client.apply(ConfigMap(metadata=ObjectMeta(name="registered"), data={"by": "publisher"}), force=True)
        yield

    manager.before_leading(registered)
    return manager


def careless_operator() -> Manager:
    """Writes later, with a client that does not end with the term."""
    manager = Manager(name="publisher", leader=LeaderElection("publisher"))
    tasks: list[asyncio.Task[None]] = []

    async def publish_later(site: Site) -> None:
        await asyncio.sleep(20)
        await manager.client.apply(config_map(site), owner=site, force=True)

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is not None and not site.deleting and not tasks:
            tasks.append(asyncio.create_task(publish_later(site)))  # noqa: TID251 - what an operator must not do
        return Done()

    manager.controller(Site).run_with(reconcile)
    return manager


async def creation_and_a_minute(user: ScenarioUser) -> None:
    await create(user)
    await user.sleep(60)
    await user.settled()


def test_a_write_that_outlives_its_term_is_found() -> None:
    report = simulate(careless_operator, creation_and_a_minute, faults=("partition",), replicas=2)
    found = [each.words for finding in report.findings for each in finding.violations if each.oracle == "leader"]
    assert any("apply configmaps default/home" in words for words in found), str(report)


def test_what_runs_before_leading_may_write() -> None:
    report = simulate(registered_operator, creation, faults=("crash-before-sending",), replicas=2)
    assert report.ok, str(report)
    assert "crash before sending" in report.coverage["apply configmaps"]
