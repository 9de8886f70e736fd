"""A new term begins behind caches that are as new as the server was when it began."""

import asyncio
from collections import Counter
from contextlib import suppress

from samples.site import Site, site
from steersman import MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.cache import KindOptions, freshness
from steersman.controller import Done
from steersman.errors import NotFound
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import LeaderElection, Manager
from steersman.objects import Key


def manager_of(client, namespace, reconciler):
    here = KindOptions(namespaces=(namespace,))
    leader = LeaderElection("ship", namespace=namespace, identity="us", lease=30.0, renew=20.0, retry=0.5)
    manager = Manager(client, kinds={Site: here, ConfigMap: here}, leader=leader)
    manager.controller(Site).run_with(reconciler)
    return manager


async def steal(client, namespace):
    thief = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 1}}
    await client.patch(Lease, Key(namespace, "ship"), MergePatch(thief))


async def held_by_us(client, namespace):
    async with asyncio.timeout(60):
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

    manager = manager_of(client.with_transport(line.wrap), namespace, Reads())
    async with asyncio.timeout(90), Supervisor() as tasks:
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
    manager = manager_of(client.with_transport(line.wrap), namespace, Reconciler())
    async with asyncio.timeout(90), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await until(lambda: runs["s"])
        line.open.clear()
        await steal(client, namespace)
        await client.create(site("t", namespace))
        await held_by_us(client, namespace)
        await steal(client, namespace)
        await held_by_us(client, namespace)
        assert not runs["t"]
        line.open.set()
        await until(lambda: runs["t"])
        manager.stop()


async def test_a_process_with_cold_caches_does_not_take_the_lease(client, namespace, line, until):
    """It could not work yet, and the others could."""
    runs = Counter()

    class Reconciler:
        async def reconcile(self, ctx, request):
            runs[request.key.name] += 1
            return Done()

    await client.create(site("s", namespace))
    cold = manager_of(client.with_transport(line.wrap), namespace, Reconciler())
    line.open.clear()
    async with asyncio.timeout(90), Supervisor() as tasks:
        tasks.start(cold.run(), name="cold")
        await until(lambda: cold.informers and cold.informers[0].statistics().scopes[0].requests)
        rival = LeaderElection("ship", namespace=namespace, identity="rival")
        async with rival.campaign(client) as campaign, await anext(campaign) as term:
            assert term.number == 1
            assert cold.phase == "syncing"
            line.open.set()
            await until(lambda: cold.phase == "candidate")
            assert not runs
        await until(lambda: runs["s"])
        cold.stop()


async def test_a_term_begins_without_another_list(client, other, namespace, until):
    """A watch that was healthy all along needs no list of objects: three terms, one list of each kind."""
    began = []

    class Reconciler:
        async def reconcile(self, ctx, request):
            began.append(request)
            await ctx.client.list(ConfigMap, namespace=namespace)
            return Done()

    await other.create(site("s", namespace))
    manager = manager_of(client, namespace, Reconciler())
    async with asyncio.timeout(90), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        for term in (1, 2, 3):
            await until(lambda term=term: len(began) == term)
            await steal(other, namespace)
            await until(lambda: not manager.controllers)
            await until(lambda: manager.controllers)
            await until(lambda term=term: len(began) == term + 1)
        lists = {each.kind: sum(scope.lists for scope in each.scopes) for each in manager.statistics().informers}
        manager.stop()
    assert set(lists.values()) == {1}


async def test_a_large_quiet_kind_catches_up_by_a_short_watch(client, other, namespace, until, monkeypatch):
    """It is too large to compare, and no change tells how new it is: a bookmark of a short watch does."""
    monkeypatch.setattr(freshness, "COMPARED_MAX", 0)
    runs = []

    class Reconciler:
        async def reconcile(self, ctx, request):
            runs.append(request.key.name)
            return Done()

    await other.create(site("s", namespace))
    manager = manager_of(client, namespace, Reconciler())
    async with asyncio.timeout(90), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await until(lambda: runs)
        await steal(other, namespace)
        await until(lambda: not manager.controllers)
        # another kind moves the server's version on
        await other.create(ConfigMap(metadata=ObjectMeta(name="elsewhere", namespace=namespace)))
        await until(lambda: len(runs) == 2)
        (scope,) = manager.informers[0].statistics().scopes
        manager.stop()
    assert scope.lists == 1
    assert scope.requests > 1
