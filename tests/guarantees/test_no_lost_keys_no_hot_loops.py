"""Guarantee 5: no key is lost, none runs hot, and a converged world makes neither writes nor reconciles."""

import asyncio
import re
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from samples.site import Site, site
from steersman import MergePatch, ObjectMeta
from steersman.cache import KindOptions
from steersman.controller import Done, QueueOptions
from steersman.errors import NotFound
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import Manager

_WRITES = re.compile(
    r'^apiserver_request_total\{.*resource="(sites|configmaps)".*verb="(?!GET|LIST|WATCH)\w+".*\} (\S+)$', re.MULTILINE
)


async def writes_of(client):
    """How many writes of Sites and ConfigMaps the server has counted."""
    text = (await client.request("GET", "/metrics")).decode()
    return sum(float(found[2]) for found in _WRITES.finditer(text))


class Publisher:
    """A ConfigMap and a status for each Site, applied in every run; fails on request."""

    def __init__(self):
        self.broken = set()
        self.attempts = defaultdict(list)
        self.done = Counter()

    async def reconcile(self, ctx, request):
        name = request.key.name
        self.attempts[name].append(asyncio.get_running_loop().time())
        if name in self.broken:
            raise RuntimeError("broken by the test")
        try:
            found = await ctx.client.get(Site, request.key)
        except NotFound:
            return Done()
        metadata = ObjectMeta(name=name, namespace=request.key.namespace)
        await ctx.client.apply(ConfigMap(metadata=metadata, data={"image": found.spec.image}), owner=found)
        if found.status is None or found.status.replicas != found.spec.replicas:
            patch = MergePatch({"status": {"replicas": found.spec.replicas, "readyReplicas": 0}})
            await ctx.client.patch(Site, request.key, patch, subresource="status")
        self.done[name] += 1
        return Done()


def publishing(client, namespace, publisher, **options):
    here = KindOptions(namespaces=(namespace,))
    manager = Manager(client, kinds={Site: here, ConfigMap: here})
    manager.controller(Site).owns(ConfigMap).options(**options).run_with(publisher)
    return manager


async def test_no_lost_keys_no_hot_loops(client, other, namespace, running, until, caplog):
    """A key that fails runs ever more seldom, holds up no other, and is done as soon as it can be, without an event."""
    publisher = Publisher()
    publisher.broken.add("bad")
    manager = publishing(client, namespace, publisher, concurrency=2, queue=QueueOptions(maximum=1.0))
    async with running(manager):
        await other.create(site("bad", namespace))
        await until(lambda: len(publisher.attempts["bad"]) >= 4)
        for number in range(20):
            await other.create(site(f"good-{number}", namespace))
        await until(lambda: sum(publisher.done[f"good-{number}"] for number in range(20)) >= 20)
        # also while events come in: a change may end a wait early, but not make it a loop
        for number in range(30):
            await other.patch(Site, "bad", MergePatch({"metadata": {"labels": {"n": str(number)}}}))
        await until(lambda: len(publisher.attempts["bad"]) >= 8)
        publisher.broken.clear()
        await until(lambda: publisher.done["bad"])
    times = publisher.attempts["bad"]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    # 20 ms, then twice as long each time, less the jitter
    for number, pause in enumerate(pauses[:6]):
        assert pause >= 0.8 * 0.02 * 2**number, pauses
    # on a slow machine the world takes longer, and one more attempt a second is right
    assert len(times) < 20 + times[-1] - times[0]
    assert "broken by the test" in caplog.text


async def test_no_lost_keys(client, other, namespace, running, until):
    """Objects that come while the manager starts, and during every reconcile, are all seen."""
    publisher = Publisher()
    manager = publishing(client, namespace, publisher, concurrency=8)
    names = [f"s{number}" for number in range(200)]

    async def create(part):
        for name in part:
            await other.create(site(name, namespace))

    async with asyncio.TaskGroup() as tasks:
        for part in range(4):
            tasks.create_task(create(names[part::4]))
        await tasks.create_task(_run_until(manager, running, until, lambda: len(publisher.done) == len(names)))
    assert set(publisher.done) == set(names)


async def _run_until(manager, running, until, condition):
    async with running(manager):
        await until(condition)


@pytest.mark.engine_only("metrics of its requests")
async def test_no_hot_loops_in_a_converged_world(client, other, namespace, line, running, until, runs_when_quiet):
    """Nothing changes: no write, no reconcile. Started again: one look at each object, and no write."""
    for number in range(30):
        await other.create(site(f"s{number}", namespace))
    publisher = Publisher()
    manager = publishing(client, namespace, publisher)
    async with running(manager):
        await until(lambda: len(publisher.done) == 30)
        await runs_when_quiet(manager)
        writes, runs = await writes_of(other), sum(publisher.done.values())
        assert writes >= 60
        await asyncio.sleep(2.0)  # what is shown is that nothing happens
        assert await writes_of(other) == writes
        assert sum(publisher.done.values()) == runs
        assert not any(each.queue.delayed or each.queue.ready for each in (manager.controllers[0].statistics(),))
    again = Publisher()
    manager = publishing(client.with_transport(line.wrap), namespace, again)
    async with running(manager):
        await until(lambda: len(again.done) == 30)
        assert await runs_when_quiet(manager) == 30
    assert line.writes == []
    assert await writes_of(other) == writes
