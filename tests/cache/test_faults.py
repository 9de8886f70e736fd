"""Informers on an engine that is compacted, killed and restarted under them."""

import asyncio

import pytest

from steersman import MergePatch, ObjectMeta
from steersman.cache import Informer, KindOptions, Settings
from steersman.cache.reflector import State, Woke
from steersman.kinds.core_v1 import ConfigMap
from steersman.testing import Engine

pytestmark = pytest.mark.slow

ONLY = KindOptions(namespaces=("default",))


@pytest.fixture(scope="module")
async def own_engine():
    async with Engine.start() as engine:
        yield engine


@pytest.fixture
async def own_client(own_engine):
    async with own_engine.client(field_manager="tests") as client:
        yield client


def config(name, value="1", namespace="default"):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), data={"a": value})


async def restart(server):
    await server.kill()
    await server.restart()


async def test_a_killed_api_server_is_survived(own_engine, own_client, heard):
    made = await own_client.create(config("survivor"))
    async with Informer(own_client, ConfigMap, options=ONLY) as informer:
        await informer.add_handler(heard).wait_synced()
        await restart(own_engine.api_servers[0])
        await own_engine.wait_ready()
        await own_client.patch(ConfigMap, made.key, MergePatch({"data": {"a": "2"}}))
        await heard.until(lambda each: each.type == "changed" and each.key == made.key, within=60)
        # a restarted server remembers no history: at most one list is needed, and few requests
        assert informer.statistics().scopes[0].lists <= 2
        assert informer.statistics().scopes[0].requests < 10


async def test_compaction_under_a_running_watch_loses_nothing(own_engine, own_client, heard):
    """The server was away, and its history is gone when it comes back: everything is read again."""
    gone = await own_client.create(config("gone"))
    kept = await own_client.create(config("kept"))
    async with Informer(own_client, ConfigMap, options=ONLY) as informer:
        await informer.add_handler(heard).wait_synced()
        async with own_engine.client(field_manager="tests") as other:
            # the informer's stream is held up, so that it misses what happens and resumes from before the compaction
            (scope,) = informer._scopes.values()
            task = informer._running["default"]
            task.cancel()
            await asyncio.wait((task,))
            await other.delete(gone)
            await other.patch(ConfigMap, kept.key, MergePatch({"data": {"a": "2"}}))
            await other.create(config("born"))
        await own_engine.compact()
        await restart(own_engine.api_servers[0])
        await own_engine.wait_ready()
        scope.state = State(version=scope.state.version, phase="waiting", next="watch")
        informer._follow(scope, Woke())
        await heard.until(lambda each: each.type == "vanished" and each.key.name == "gone", within=60)
        await heard.until(lambda each: each.type == "changed" and each.key.name == "kept", within=60)
        await heard.until(lambda each: each.type == "appeared" and each.key.name == "born", within=60)
        assert informer.statistics().scopes[0].lists == 2
    assert not any(each.unbroken for each in heard.notifications if each.type != "appeared")


async def test_a_killed_etcd_is_survived(own_engine, own_client, heard):
    async with Informer(own_client, ConfigMap, options=ONLY) as informer:
        await informer.add_handler(heard).wait_synced()
        await restart(own_engine.etcd[0])
        await own_engine.wait_ready()
        made = await own_client.apply(config("after-etcd"))
        await heard.until(lambda each: each.key == made.key, within=60)


async def test_silent_streams_are_replaced_without_reading_everything_again(client, namespace, heard):
    """On a server that stays up: after a restart, the server may rightly ask for a new list."""
    here = KindOptions(namespaces=(namespace,))
    async with Informer(client, ConfigMap, options=here, settings=Settings(idle_timeout=1.0)) as informer:
        await informer.add_handler(heard).wait_synced()
        before = informer.statistics().scopes[0].requests
        async with asyncio.timeout(30):
            # no event tells of a stream that was replaced
            while informer.statistics().scopes[0].requests < before + 4:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        made = await client.create(config("after-silence", namespace=namespace))
        await heard.until(lambda each: each.key == made.key)
        # Four streams were replaced. The server may ask for a new list once, if its history was compacted meanwhile.
        assert informer.statistics().scopes[0].lists <= 2
