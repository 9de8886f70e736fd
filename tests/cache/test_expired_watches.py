"""A server ends the watches of a kind whose definition changes. The next list mends that, so it deserves no warning."""

from __future__ import annotations

import asyncio
import logging

from cache.test_bad_servers import is_initial, is_watch, page, run, saying, status

from samples.eventually import eventually
from steersman import Kind, MergePatch, ObjectMeta, Resource, Spec
from steersman.cache import Cache

DEFINITION = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
CHANGED = MergePatch({"spec": {"names": {"shortNames": ["bo"]}}})


class BoatSpec(Spec):
    sails: int = 1


class Boat(Resource[BoatSpec, None], group="expired.cache.test.steersman.dev", version="v1"):
    """A kind whose definition changes."""


def warnings(caplog):
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "steersman.cache" and record.levelno >= logging.WARNING
    ]


async def test_a_changed_definition_causes_no_warning(control_plane, caplog):
    """A deployment that changes its own definition would otherwise alarm its reader for nothing."""
    caplog.set_level(logging.DEBUG, "steersman.cache")
    client = control_plane.client
    await control_plane.install(Boat)
    async with Cache(client) as cache:
        informer = cache.informer(Boat)
        await informer.wait_synced()
        await client.patch(DEFINITION, "boats.expired.cache.test.steersman.dev", CHANGED)
        await eventually(lambda: informer.statistics().scopes[0].relists)
        created = await client.create(Boat(metadata=ObjectMeta(name="dinghy"), spec=BoatSpec()))
        await informer.wait_reached(created.metadata.resource_version or "")
    assert any("too old resource version" in message for message in caplog.messages), "the watch has not expired"
    assert warnings(caplog) == []


def expiring(times):
    """A server whose first watches have expired, however new their version is."""
    expired = iter([(410, status(410, "Expired"))] * times)

    def answer(query):
        if is_initial(query):
            return 422, status(422, "Invalid")
        return (next(expired, None) or saying()) if is_watch(query) else (200, page(5))

    return answer


async def settled(informer):
    await eventually(lambda: informer.statistics().scopes[0].phase == "watching")


def test_the_third_expired_version_in_a_row_is_a_warning(caplog):
    """Lists do not mend it: without a word, the cache would list again and again."""
    run(expiring(2), settled)
    assert warnings(caplog) == []
    run(expiring(3), settled)
    assert len(warnings(caplog)) == 1
    assert "cannot list or watch ConfigMap; retrying" in warnings(caplog)[0]


def test_a_stream_that_lasted_makes_the_next_failure_a_first_one(caplog):
    """A connection that breaks once an hour is no cause for a warning each hour."""
    streams = iter([saying(50, then="break"), saying(50, then="break"), saying()])

    def answer(query):
        if is_initial(query):
            return 422, status(422, "Invalid")
        return next(streams) if is_watch(query) else (200, page(5))

    async def two_minutes(informer):
        await asyncio.sleep(120)

    server, _ = run(answer, two_minutes)
    assert [is_watch(query) for query in server.queries].count(True) == 4
    assert warnings(caplog) == []
