"""References that come and go at random, on a server whose answers take their time, whose watches break and expire.

In virtual time. At the end, the cache has what is referred to and nothing else, and the events of a handler lead to the
same state: none is lost.
"""

import asyncio
from contextlib import suppress
from random import Random  # noqa: TID251 - seeded
from typing import Unpack

import pytest

from samples import portions
from samples.virtual_time import run_virtual
from steersman import Client, MergePatch, ObjectMeta
from steersman.apiserver import ApiServer
from steersman.cache import Cache, KindOptions
from steersman.errors import ConnectionFailed, NotFound
from steersman.kinds.core_v1 import Namespace, Secret
from steersman.objects import Key
from steersman.transport import InProcessTransport, Response, SendOptions, TransportWrapper
from steersman.wire import HttpRequest

NAMESPACES = ("blue", "green", "red")
KEYS = [Key(namespace, f"s{number}") for namespace in NAMESPACES for number in range(4)]
STEPS = 60
#: Longer than a linger, and than the delays after failures.
QUIET = 600.0


class Slow(TransportWrapper):
    """Delays requests and answers, fails some requests, and breaks watches."""

    def __init__(self, inner, rng):
        super().__init__(inner)
        self._rng = rng
        self.calm = False
        self.watches: list[Response] = []

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        await self._pass()
        if not self.calm and self._rng.random() < 0.05:
            raise ConnectionFailed("cut by the test", sent=True)
        answer = await self._inner.send(request, **options)
        await self._pass()
        if options.get("stream"):
            self.watches.append(answer)
        return answer

    async def _pass(self):
        if not self.calm:
            await asyncio.sleep(self._rng.choice((0.0, 0.001, 0.01, 0.3)))

    async def cut(self):
        if self.watches:
            await self.watches.pop(self._rng.randrange(len(self.watches))).close()

    async def close(self):
        await self._inner.close()


class Run:
    """One random run."""

    def __init__(self, seed, limit):
        self.rng = Random(seed)
        self.limit = limit
        #: How often each key is referred to, and what the handler was told of each.
        self.counts = dict.fromkeys(KEYS, 0)
        self.told = {}
        self.versions = {}
        self.events = 0

    def hear(self, event):
        self.events += 1
        if event.new is None:
            self.told.pop(event.key, None)
        else:
            self.told[event.key] = event.new.resource_version

    async def run(self):
        async with ApiServer(kinds=["v1"]) as server, Client(InProcessTransport(server.handler)) as client:
            slow = Slow(InProcessTransport(server.handler), self.rng)
            for name in NAMESPACES:
                await client.create(Namespace(metadata=ObjectMeta(name=name)))
            options = KindOptions(referenced=True, watches_by_name=self.limit)
            async with Client(slow) as slow_client, Cache(slow_client, kinds={Secret: options}) as cache:
                informer = cache.informer(Secret)
                informer.names.references.linger = self.rng.choice((0.0, 0.5, 5.0))
                informer.add_handler(self.hear, on_left=lambda key: self.told.pop(key, None))
                for _ in range(STEPS):
                    await self.step(server, client, slow, cache, informer)
                slow.calm = True
                await asyncio.sleep(QUIET)
                await self.check(client, cache, informer)

    async def step(self, server, client, slow, cache, informer):
        key = self.rng.choice(KEYS)
        references = informer.names.references
        match self.rng.choice(
            ("refer", "refer", "refer", "end", "end", "write", "write", "write", "read", "cut", "wait", "forget")
        ):
            case "refer":
                keys = self.rng.sample(KEYS, self.rng.randint(1, 3))
                for each in keys:
                    self.counts[each] += 1
                references.begin(keys)
            case "end":
                if self.counts[key]:
                    self.counts[key] -= 1
                    references.end([key])
            case "write":
                await self.write(client, cache, key)
            case "read":
                await self.read(cache, key)
            case "cut":
                await slow.cut()
            case "forget" if self.rng.random() < 0.3:
                await server.forget()
            case _:
                await asyncio.sleep(self.rng.choice((0.01, 0.5, 3.0)))
        if self.rng.random() < 0.3:
            await asyncio.sleep(0)

    async def write(self, client, cache, key):
        ours = self.rng.random() < 0.5
        if key not in self.versions:
            written = await client.create(Secret(metadata=ObjectMeta(name=key.name, namespace=key.namespace)))
        elif self.rng.random() < 0.4:
            uid = (await client.get(Secret, key)).uid
            await client.delete(Secret, key)
            del self.versions[key]
            if ours:
                cache.record_delete(Secret, key, uid)
                with suppress(ConnectionFailed):
                    assert await cache.reader().find(Secret, key) is None
            return
        else:
            value = str(self.rng.random())
            written = await client.patch(Secret, key, MergePatch({"stringData": {"value": value}}))
        self.versions[key] = int(written.metadata.resource_version)
        if ours:
            cache.record_write(written)
            if self.rng.random() < 0.5:
                await self.read(cache, key, at_least=self.versions[key])

    async def read(self, cache, key, *, at_least=0):
        try:
            found = await cache.reader().get(Secret, key)
        except NotFound:
            assert not at_least
        except ConnectionFailed:
            pass
        else:
            assert int(found.metadata.resource_version) >= at_least

    async def check(self, client, cache, informer):
        referred = {key for key, count in self.counts.items() if count}
        there = {key: str(version) for key, version in self.versions.items() if key in referred}
        assert {each.key: each.resource_version for each in informer.store} == there
        assert self.told == there
        assert {*informer.scopes.placed()} == referred
        assert all(informer.has(key) for key in referred)
        assert len([*informer.scopes]) <= max(self.limit, 1)
        before = informer.outside_reads
        for key in referred:
            assert (await cache.reader().find(Secret, key) is not None) == (key in there)
        assert informer.outside_reads == before


@pytest.mark.parametrize("limit", [1, 2, 5, 100])
def test_no_event_is_lost(limit, request):
    start = portions.seed_of(request.node.nodeid)
    for seed in range(start, start + portions.count(sample=8, of=250)):
        run = Run(seed, limit)
        try:
            run_virtual(run.run(), seed=seed)
        except BaseException as error:
            error.add_note(f"seed {seed}, limit {limit}")
            raise
        assert run.events
