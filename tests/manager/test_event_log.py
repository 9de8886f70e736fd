"""What reconciles find in their context beside a client: events, metrics and the controller's name."""

from __future__ import annotations

import asyncio
import logging

from samples.site import Site, site
from steersman import Context, Done, Key, LeaderElection, Manager, MergePatch, Request
from steersman.aio import Supervisor
from steersman.controller import NO_EVENTS
from steersman.errors import NotFound
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.events_v1 import Event
from steersman.manager.event_log import EventLog


def telling(*, tells: bool = True) -> Manager:
    manager = Manager(name="Site operator!")

    async def reconcile(ctx: Context, request: Request) -> Done:
        try:
            found = await ctx.client.get(Site, request.key)
        except NotFound:
            return Done()
        assert ctx.registry is not None
        if tells:
            ctx.events.record(found, "Warning", "NoImage", "Deploying", f"{ctx.controller} finds no image")
        return Done()

    manager.controller(Site, name="sites").run_with(reconcile)
    return manager


async def test_what_a_reconcile_tells_is_written_before_the_manager_ends(control_plane):
    client = control_plane.client
    async with control_plane.running(telling()) as operator:
        assert operator.manager.registry.collect()
        await client.create(site("web", control_plane.namespace))
        await operator.drained()
    (event,) = await client.list(Event, namespace=control_plane.namespace)
    assert (event.type, event.reason, event.action, event.note) == (
        "Warning",
        "NoImage",
        "Deploying",
        "sites finds no image",
    )
    # a name that the API does not take is made one that it takes
    assert event.reporting_controller == "Site-operator"
    assert (event.regarding.kind, event.regarding.name) == ("Site", "web")


async def test_without_events_nothing_is_opened(control_plane):
    client = control_plane.client
    async with control_plane.running(telling(tells=False)) as operator:
        await client.create(site("web", control_plane.namespace))
        await operator.drained()
        assert operator.events.idle
        assert list(await client.list(Event, namespace=control_plane.namespace)) == []


async def test_events_before_and_after_the_log_is_open_are_dropped(control_plane, caplog):
    client, log = control_plane.client, EventLog("tests")
    found = site("web", control_plane.namespace)
    with caplog.at_level(logging.WARNING):
        log.record(found, "Normal", "TooEarly", "Telling", "before it opens")
        async with log.opened(client):
            log.record(found, "Normal", "InTime", "Telling", "it is written")
        log.record(found, "Normal", "TooLate", "Telling", "after it closed")
        NO_EVENTS.record(found, "Normal", "Never", "Telling", "without a log")
    assert [each.reason for each in await client.list(Event, namespace=control_plane.namespace)] == ["InTime"]
    assert caplog.records == []


async def test_events_end_with_the_term(client, namespace, sites):
    """A deposed leader writes no events, and neither does a task of its own that outlives the term."""
    deposed, leaked = asyncio.Event(), []
    election = LeaderElection("ship", namespace=namespace, lease=30.0, renew=20.0, retry=0.5)
    manager = Manager(client, name="telling", leader=election, namespaces=(namespace,))

    async def outlive(ctx: Context, found: Site) -> None:
        await deposed.wait()
        ctx.events.record(found, "Normal", "TooLate", "Telling", "recorded after the term")

    async def reconcile(ctx: Context, request: Request) -> Done:
        found = await ctx.client.get(Site, request.key)
        ctx.events.record(found, "Normal", "InTime", "Telling", "recorded in the term")
        leaked.append(asyncio.get_running_loop().create_task(outlive(ctx, found)))
        return Done()

    manager.controller(Site, name="sites").run_with(reconcile)
    web = await client.create(site("web", namespace))
    async with asyncio.timeout(60), Supervisor() as tasks:
        tasks.start(manager.run(signals=False), name="manager")
        while not (leaked and manager.events.idle):  # noqa: ASYNC110 - an event log sets no event
            await asyncio.sleep(0.01)
        thief = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 3600}}
        await client.patch(Lease, Key(namespace, "ship"), MergePatch(thief))
        while manager.controllers:  # noqa: ASYNC110 - nor does a manager
            await asyncio.sleep(0.01)
        deposed.set()
        manager.events.record(web, "Normal", "StandingBy", "Telling", "recorded by a candidate")
        await leaked[0]
        manager.stop()
    assert {each.reason for each in await client.list(Event, namespace=namespace)} == {"InTime"}
