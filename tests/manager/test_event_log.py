"""What reconciles find in their context beside a client: events, metrics and the controller's name."""

from __future__ import annotations

import logging

from samples.site import Site, site
from steersman import Context, Done, Manager, Request
from steersman.controller import NO_EVENTS
from steersman.kinds.events_v1 import Event
from steersman.manager.event_log import EventLog
from steersman.objects.errors import NotFound


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


async def test_what_is_told_before_and_after_nobody_hears(control_plane, caplog):
    client, log = control_plane.client, EventLog("tests")
    found = site("web", control_plane.namespace)
    with caplog.at_level(logging.WARNING):
        log.record(found, "Normal", "TooEarly", "Telling", "nobody listens")
        async with log.opened(client):
            log.record(found, "Normal", "InTime", "Telling", "it is written")
        log.record(found, "Normal", "TooLate", "Telling", "nobody listens any more")
        NO_EVENTS.record(found, "Normal", "Never", "Telling", "nobody ever listens")
    assert [each.reason for each in await client.list(Event, namespace=control_plane.namespace)] == ["InTime"]
    assert caplog.records == []
