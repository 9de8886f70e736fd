"""A new term begins behind caches that are as new as the server was when it began."""

import asyncio
from collections import Counter
from contextlib import suppress

from samples.site import Site, site
from steersman import MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.cache import KindOptions
from steersman.controller import Done
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import LeaderElection, Manager
from steersman.objects import Key
from steersman.objects.errors import NotFound


def manager_of(client, namespace, reconciler):
    here = KindOptions(namespaces=(namespace,))
    leader = LeaderElection("ship", namespace=namespace, identity="us", lease=3.0, renew=2.0, retry=0.5)
    manager = Manager(client, kinds={Site: here, ConfigMap: here}, leader=leader)
    manager.controller(Site).run_with(reconciler)
    return manager


async def steal(client, namespace):
    thief = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 1}}
    await client.patch(Lease, Key(namespace, "ship"), MergePatch(thief))


async def held_by_us(client, namespace):
    async with asyncio.timeout(20):
        while True:
            with suppress(NotFound):
                if (await client.get(Lease, Key(namespace, "ship"))).spec.holder_identity == "us":
                    return
            await asyncio.sleep(0.05)


async def test_a_new_term_reads_nothing_from_before_it(client, other, namespace, line, until):
    """Also not of a kind that a reconcile reads without watching it: its watch may be a term behind."""
    await other.create(ConfigMap(metadata=ObjectMeta(name="settings", namespace=namespace), data={"value": "old"}))
    await other.create(site("s", namespace))
    read = []

    class Reads:
        async def reconcile(self, ctx, request):
            read.append((await ctx.client.get(ConfigMap, (namespace, "settings"))).data["value"])
            return Done()

    manager = manager_of(client.over(line.wrap), namespace, Reads())
    async with asyncio.timeout(40), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await until(lambda: read)
        assert read == ["old"]
        line.holds = lambda request: "configmaps" in request.path
        line.open.clear()
        # what another leader does in between
        await steal(other, namespace)
        await other.patch(ConfigMap, (namespace, "settings"), MergePatch({"data": {"value": "new"}}))
        await held_by_us(other, namespace)
        # the kind that it watches is fresh at once; what it reads is not, and is waited for
        await asyncio.sleep(0.5)
        line.open.set()
        await until(lambda: len(read) > 1)
        manager.stop()
    assert "old" not in read[1:]


async def test_a_term_that_ends_while_caches_are_read_anew_is_followed_by_another(client, namespace, line, until):
    """The watch is dead when the term begins, and the lease is stolen meanwhile."""
    runs = Counter()

    class Reconciler:
        async def reconcile(self, ctx, request):
            runs[request.key.name] += 1
            return Done()

    await client.create(site("s", namespace))
    manager = manager_of(client.over(line.wrap), namespace, Reconciler())
    line.open.clear()
    async with asyncio.timeout(20), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await held_by_us(client, namespace)
        assert not runs
        await steal(client, namespace)
        await held_by_us(client, namespace)
        line.open.set()
        await until(lambda: runs["s"])
        manager.stop()
