"""Watching."""

import asyncio

import pytest

from samples.site import GROUP, Site, site
from steersman import Kind, MergePatch, ObjectMeta, Resource, Spec
from steersman.client import Added, Bookmark, Deleted, Modified, Undecodable
from steersman.errors import Expired
from steersman.kinds.core_v1 import ConfigMap
from steersman.testing import Engine


def config(name, namespace, **labels):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels or None), data={"a": "1"})


async def until(events, kind):
    """Read events up to the first of a kind."""
    seen = []
    async for event in events:
        seen.append(event)
        if isinstance(event, kind):
            return seen
    raise AssertionError(f"the watch ended before a {kind.__name__}: {seen}")


async def test_a_change_is_seen_as_it_happens(client, namespace, sites):
    start = (await client.list(Site, namespace=namespace)).resource_version
    async with client.watch(Site, namespace=namespace, resource_version=start) as events:
        made = await client.create(site("seen", namespace))
        await client.patch(Site, made.key, MergePatch({"spec": {"replicas": 4}}))
        await client.delete(made)
        seen = await until(events, Deleted)
    assert [type(event) for event in seen] == [Added, Modified, Deleted]
    assert [event.object.spec.replicas for event in seen] == [1, 4, 4]


async def test_the_present_objects_come_first(client, namespace):
    for name in ("a", "b"):
        await client.create(config(name, namespace))
    async with client.watch(ConfigMap, namespace=namespace, initial_events=True) as events:
        initial = await until(events, Bookmark)
        assert [event.object.metadata.name for event in initial[:-1]] == ["a", "b"]
        assert initial[-1].initial_events_end
        assert int(initial[-1].resource_version) > 0
        await client.create(config("c", namespace))
        assert [event.object.metadata.name for event in await until(events, Added)] == ["c"]


async def test_leaving_a_selector_is_a_deletion(client, namespace):
    async with client.watch(ConfigMap, namespace=namespace, labels={"in": "yes"}, initial_events=True) as events:
        await until(events, Bookmark)
        await client.create(config("walker", namespace, **{"in": "yes"}))
        await client.patch(ConfigMap, f"{namespace}/walker", MergePatch({"metadata": {"labels": {"in": "no"}}}))
        seen = await until(events, Deleted)
    assert [type(event) for event in seen] == [Added, Deleted]


@pytest.fixture
async def forgetful(api_server):
    """A server of the test's own, and what makes it forget all that was."""
    if not isinstance(api_server, Engine):
        yield api_server, api_server.forget
        return
    async with Engine.start() as engine:

        async def forget():
            await engine.compact()
            # etcd has forgotten, and a restarted server has no memory of its own
            await engine.api_servers[0].restart()

        yield engine, forget


async def test_an_old_version_has_expired(forgetful):
    server, forget = forgetful
    async with server.client() as client:
        old = await client.create(config("old", "default"))
        await client.patch(ConfigMap, old.key, MergePatch({"data": {"a": "2"}}))
        await forget()
        with pytest.raises(Expired, match="List again"):
            async with client.watch(ConfigMap, resource_version=old.metadata.resource_version) as events:
                await until(events, Deleted)


async def test_the_server_ends_a_watch_after_its_timeout(client, namespace):
    async with asyncio.timeout(60):
        async with client.watch(ConfigMap, namespace=namespace, timeout_seconds=1) as events:
            assert [event async for event in events if isinstance(event, Deleted)] == []


async def test_a_kind_without_a_type(client, namespace, sites):
    await client.create(site("untyped", namespace))
    async with client.watch(Kind(f"{GROUP}/v1", "Site"), namespace=namespace, initial_events=True) as events:
        seen = await until(events, Bookmark)
    assert seen[0].object.get("spec", "image") == "nginx:1.27"


async def test_metadata_only(client, namespace):
    await client.create(config("meta", namespace, a="b"))
    async with client.metadata.watch(ConfigMap, namespace=namespace, initial_events=True) as events:
        seen = await until(events, Bookmark)
    assert seen[0].object.metadata.labels == {"a": "b"}


class NumberSpec(Spec):
    image: int  # the server holds a string


class NumberSite(Resource[NumberSpec, None], group=GROUP, version="v1", kind="Site", plural="sites"):
    """A Site as a wrong program has it."""


async def test_an_undecodable_object_does_not_end_the_watch(client, namespace, sites):
    await client.create(site("text", namespace))
    async with client.watch(NumberSite, namespace=namespace, initial_events=True) as events:
        seen = await until(events, Bookmark)
    assert [type(event) for event in seen] == [Undecodable, Bookmark]
    assert seen[0].key == (namespace, "text")


async def test_a_hundred_watches_leave_room_for_requests(client, namespace):
    """A pool shared with watches would be full, and the write would wait for ever."""
    watches = [client.watch(ConfigMap, namespace=namespace, initial_events=True) for _ in range(120)]
    async with asyncio.timeout(60):
        for watch in watches:
            await watch.__aenter__()
        await client.create(config("free", namespace))
        for watch in watches:
            await watch.close()
