"""A manager at work while the server, its store, the network and the lease fail under it.

After each fault: every Site has exactly its children, with the newest spec, and its status; then nothing happens any
more, neither a reconcile nor a write. And while a fault lasts no client repeats a request without pause.
"""

import asyncio
from contextlib import asynccontextmanager

import pytest
from faults.storm import storm
from faults.workload import CONCURRENCY, changing, until

from samples.site import Site
from steersman import MergePatch
from steersman.aio import Supervisor, utc_now as wall_clock
from steersman.kinds.coordination_v1 import Lease
from steersman.manager import LeaderElection

pytestmark = pytest.mark.slow

#: Connections of an operator: one for each reconcile, a few for streams, and some that are being replaced.
CONNECTIONS_MAX = 2 * (CONCURRENCY + 4)


def utc_now():
    return asyncio.get_running_loop().time()


async def lasting(seconds):
    """Let a fault last: its length is part of it."""
    await asyncio.sleep(seconds)


async def connected(proxy):
    """Wait until the operator's streams are there, so that there is something to break."""
    await until(lambda: proxy.connections >= 4, "the streams are open again")
    assert proxy.connections <= CONNECTIONS_MAX


async def killed(*parts):
    """Kill parts of the engine, all before any of them is back; when they were away."""
    begun = utc_now()
    for part in parts:
        await part.kill()
    await lasting(1)
    ended = utc_now()
    for part in reversed(parts):
        await part.start()
    return begun, ended


async def test_the_api_server_is_killed(world):
    async with world.operator() as operator:
        async with changing(world) as changes:
            away = await killed(*world.engine.api_servers)
            await changes.more(50)
        await world.settles(operator)
        operator.was_patient(*away)


async def test_etcd_is_killed(world):
    async with world.operator() as operator:
        async with changing(world) as changes:
            away = await killed(*world.engine.etcd)
            await changes.more(50)
        await world.settles(operator)
        operator.was_patient(*away)


async def test_the_api_server_and_etcd_are_killed(world):
    async with world.operator() as operator:
        async with changing(world) as changes:
            away = await killed(*world.engine.api_servers, *world.engine.etcd)
            await changes.more(50)
        await world.settles(operator)
        operator.was_patient(*away)


async def test_history_is_compacted_while_the_connection_is_away(world, proxy):
    """What the watches would go on from is gone: everything is read again, and nothing is missed."""
    async with world.operator(server=proxy.url) as operator:
        lists = operator.lists
        async with changing(world) as changes:
            begun = utc_now()
            proxy.refuse()
            proxy.cut()
            await changes.more(50)
            await world.engine.compact()
            await world.engine.api_servers[0].kill()
            await world.engine.api_servers[0].start()
            ended = utc_now()
            await proxy.heal()
            await changes.more(50)
        await world.settles(operator)
        operator.was_patient(begun, ended)
        assert operator.lists > lists


async def test_connections_are_cut(world, proxy):
    """Again and again, in the middle of requests and of streams; a stream goes on where it was."""
    async with world.operator(server=proxy.url) as operator:
        lists = operator.lists
        async with changing(world) as changes:
            for _ in range(3):
                await connected(proxy)
                await changes.more(10)
                proxy.cut()
        await world.settles(operator)
        assert operator.lists == lists
        assert proxy.connections <= CONNECTIONS_MAX


async def test_the_network_stands_still(world, proxy):
    """Connections stay open, new ones are accepted, and nothing comes; then everything comes."""
    async with world.operator(server=proxy.url, idle_timeout=2.0, timeout=2.0) as operator:
        async with changing(world) as changes:
            begun = utc_now()
            proxy.stall()
            await lasting(4)
            ended = utc_now()
            await proxy.heal()
            await changes.more(20)
        await world.settles(operator)
        operator.was_patient(begun, ended)
        assert proxy.connections <= CONNECTIONS_MAX


async def test_connections_fall_silent_and_are_replaced(world, proxy):
    """Dead connections send nothing: a stream is given up after its idle time, a request after its timeout."""
    async with world.operator(server=proxy.url, idle_timeout=3.0, timeout=2.0) as operator:
        async with changing(world) as changes:
            assert proxy.freeze() >= 3
            accepted = proxy.accepted
            await until(lambda: proxy.accepted >= accepted + 3, "three streams were replaced")
            await changes.more(20)
        await world.settles(operator)
        # until now the proxy kept what was frozen, also where its client was gone
        await proxy.heal()
        await until(lambda: proxy.connections <= CONNECTIONS_MAX, "what was frozen is closed")


async def test_answers_are_lost(world, proxy):
    """The server made the writes, and their answers are lost."""
    async with world.operator(server=proxy.url) as operator:
        async with changing(world) as changes:
            for _ in range(3):
                await connected(proxy)
                await changes.more(10)
                proxy.lose_answers()
        await world.settles(operator)
        assert proxy.connections <= CONNECTIONS_MAX


async def test_the_server_has_too_much_to_do(world, proxy):
    """Every request of the operator is answered 429, also those that would follow the streams that were just cut."""
    async with world.operator(server=proxy.url) as operator:
        async with changing(world) as changes:
            async with storm(world.client):
                begun = utc_now()
                proxy.cut()
                await lasting(4)
                ended = utc_now()
            await changes.more(20)
        await world.settles(operator)
        operator.was_patient(begun, ended)
        assert await world.refusals() > 0


async def test_the_lease_is_stolen(world):
    """The manager stops, writes nothing while another holds the lease, and goes on when that one is gone."""
    election = LeaderElection("sites", namespace=world.namespace, lease=4.0, renew=3.0, retry=0.5)
    async with world.operator(leader=election) as operator:
        holder = (await world.client.get(Lease, f"{world.namespace}/sites")).spec.holder_identity
        async with thief(world):
            async with changing(world):
                await until(lambda: not operator.manager.controllers, "the deposed leader stops", seconds=15)
            written, sent = await world.written(), len(operator.counting.sent)
            for name in world.names[:20]:
                await world.client.patch(Site, f"{world.namespace}/{name}", MergePatch({"spec": {"image": "stolen"}}))
            await lasting(1)
            assert await world.written() - written == 20
            assert {method for _, method, path in operator.counting.sent[sent:] if "/leases/" not in path} <= {"GET"}
            assert not operator.manager.controllers
            assert await world.problems()
        await until(lambda: operator.idle, "the manager leads again")
        await world.settles(operator)
        assert (await world.client.get(Lease, f"{world.namespace}/sites")).spec.holder_identity == holder


@asynccontextmanager
async def thief(world):
    """Hold the operator's lease for the length of a block, however it was got."""

    async def hold():
        while True:
            spec = {"holderIdentity": "thief", "renewTime": wall_clock().isoformat()}
            await world.client.patch(Lease, f"{world.namespace}/sites", MergePatch({"spec": spec}))
            await asyncio.sleep(0.5)

    async with Supervisor() as tasks:
        tasks.start(hold(), name="thief")
        yield
        tasks.cancel()


async def test_etcd_is_restored_from_an_older_backup(world):
    """Versions go back and objects are as they were: what is cached is dropped, and the old state is made true again.

    It is noticed as long as the versions lie behind those that were seen: once others have written as much again as was
    lost, nothing tells. So the test writes only after it was noticed.
    """
    async with world.operator() as operator:
        async with changing(world) as changes:
            backup = await world.engine.back_up()
            await changes.more(50)
        await until(lambda: operator.idle, "all changes were followed")
        seen = max(operator.watermarks)
        lists = operator.lists
        await world.engine.restore(backup)
        await until(lambda: operator.idle and max(operator.watermarks) < seen, "older versions are followed")
        assert operator.lists >= lists + 3
        async with changing(world) as changes:
            await changes.more(50)
        await world.settles(operator)
