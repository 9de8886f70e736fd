"""A store that catches up with the server while its watch is behind."""

import asyncio

from steersman import MergePatch, ObjectMeta
from steersman.cache import Informer, KindOptions
from steersman.kinds.core_v1 import ConfigMap


class _Stalled:
    """A watch that delivers nothing more once its line is stalled."""

    def __init__(self, response, line):
        self._response = response
        self._line = line

    def __getattr__(self, name):
        return getattr(self._response, name)

    async def chunks(self, *, idle_timeout=None):
        async for piece in self._response.chunks(idle_timeout=idle_timeout):
            if self._line.stalled:
                await asyncio.Event().wait()
            yield piece

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        await self._response.close()


class Line:
    """The way to the server: its first watch stalls when `stalled` is set, later ones do not."""

    def __init__(self):
        self.stalled = False
        self._watches = 0
        self._inner = None

    def wrap(self, transport):
        self._inner = transport
        return self

    async def send(self, request, *, stream=False, timeout=None, before_send=None):  # noqa: ASYNC109
        response = await self._inner.send(request, stream=stream, timeout=timeout, before_send=before_send)
        self._watches += stream
        return _Stalled(response, self) if stream and self._watches == 1 else response

    async def close(self):
        await self._inner.close()


async def test_a_listed_object_that_is_older_in_the_store_is_waited_for(client, namespace):
    """The store has every object that the server lists, but one in an older version."""
    line = Line()
    made = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace), data={"value": "old"}))
    follower = client.with_transport(line.wrap)
    async with Informer(follower, ConfigMap, options=KindOptions(namespaces=(namespace,))) as informer:
        await informer.wait_synced()
        line.stalled = True
        await client.patch(ConfigMap, made.key, MergePatch({"data": {"value": "new"}}))
        async with asyncio.timeout(60):
            await informer.catch_up()
        assert informer.decode(informer.store.get(made.key)).data == {"value": "new"}
