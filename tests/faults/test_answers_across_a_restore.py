"""Answers that a server sent before it was restored from a backup, and that arrive after the cache has listed it again."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from faults.test_restored_server import Embedded
from faults.workload import until

from steersman import Client, ObjectMeta
from steersman.aio import Supervisor
from steersman.cache import Cache
from steersman.controller import CachedKinds, WriteLog
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import Key
from steersman.transport import TransportWrapper

KEY = Key("default", "web")


def config(name, **data):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=data)


class Holding(TransportWrapper):
    """Holds back the answers that a test chooses."""

    def __init__(self, inner):
        super().__init__(inner)
        self.holds = None
        self.held, self.released = asyncio.Event(), asyncio.Event()

    async def send(self, request, **options):
        holds = self.holds is not None and self.holds(request)
        response = await super().send(request, **options)
        if holds:
            self.holds = None
            self.held.set()
            await self.released.wait()
        return response


class Crossing:
    """An operator's client with its cache, and a server to restore."""

    def __init__(self, server, user, transport, client, cache):
        self._server, self.user, self._transport, self._client, self.cache = server, user, transport, client, cache
        self.log, self.kinds = WriteLog(), CachedKinds(cache)
        self.ours = self.kinds.client_for(client)(self.log)
        self._backup = None

    async def back_up(self):
        """Copy the server; the cache then sees changes that a restore takes back."""
        self._backup = await self._server.back_up()
        for number in range(20):
            last = await self.user.create(config(f"other-{number}"))
        await self.cache.informer(ConfigMap).wait_reached(last.metadata.resource_version)

    async def crosses(self, work, holds):
        """Do some work whose answer arrives after the cache has listed the restored server."""
        self._transport.holds = holds
        async with Supervisor() as tasks:
            task = tasks.start(work, name="the work")
            await self._transport.held.wait()
            await self._server.restore(self._backup)
            await until(lambda: self.cache.epoch == 1, "the cache noticed the restore")
            assert await self.cache.reader().find(ConfigMap, "default/other-0") is None
            self._transport.released.set()
        return task.result()


@pytest.fixture
async def crossing(tmp_path):
    server = Embedded(tmp_path)
    async with AsyncExitStack() as stack:
        await server.start()
        stack.push_async_callback(server.stop)
        transport = Holding(server.gate)
        client = await stack.enter_async_context(Client(transport, field_manager="ours", namespace="default"))
        cache = await stack.enter_async_context(Cache(client))
        crossing = Crossing(server, server.client("user"), transport, client, cache)
        await stack.enter_async_context(crossing.kinds.watched(ConfigMap).listen(lambda event: None))
        await cache.informer(ConfigMap).wait_synced()
        yield crossing


def is_write(request):
    return request.method != "GET"


async def test_an_object_that_the_restore_took_back_is_not_shown(crossing):
    """The operator would work on it forever, and the server would answer each write with 404."""
    await crossing.back_up()
    made = await crossing.crosses(crossing.ours.create(config("web", of="before")), is_write)
    assert await crossing.ours.find(ConfigMap, KEY) is None
    assert len(await crossing.ours.list(ConfigMap, labels={"no": "such"})) == 0
    # An event of the same version now shows the write of another program.
    assert crossing.log.writes == []
    again = await crossing.user.create(config("web", of="after"))
    assert int(again.metadata.resource_version) < int(made.metadata.resource_version)
    await crossing.cache.informer(ConfigMap).wait_reached(again.metadata.resource_version)
    assert (await crossing.ours.get(ConfigMap, KEY)).data == {"of": "after"}


async def test_an_object_that_went_back_is_shown_as_it_is(crossing):
    await crossing.user.create(config("web", of="before"))
    await crossing.back_up()
    await crossing.crosses(crossing.ours.apply(config("web", of="between"), force=True), is_write)
    assert (await crossing.ours.get(ConfigMap, KEY)).data == {"of": "before"}
    # A version of the answer would prove that an apply changes nothing.
    assert len(crossing.kinds.applies) == 0


async def test_an_object_whose_deletion_the_restore_took_back_is_shown(crossing):
    """The operator would never see it again."""
    await crossing.user.create(config("web"))
    await crossing.back_up()
    await crossing.crosses(crossing.ours.delete(ConfigMap, KEY), is_write)
    assert await crossing.ours.find(ConfigMap, KEY) is not None


async def test_a_live_read_from_before_is_repeated(crossing):
    await crossing.back_up()
    await crossing.user.create(config("web"))
    crossing.cache.record_unknown(ConfigMap, KEY)
    read = crossing.ours.find(ConfigMap, KEY)
    await crossing.crosses(read, lambda request: ("fieldSelector", "metadata.name=web") in request.query)
    assert await crossing.ours.find(ConfigMap, KEY) is None
