"""Guarantee 6 for each range: replicas that share the objects of a program act on each key one at a time.

Replicas are processes that join, leave, are killed, suspended beyond the lease and cut off, with wrong clocks. The server's
record of writes is the witness, with the assignments in it: see `bench.shards_audit`. Nothing is judged by how long it took.
"""

import asyncio

import pytest

from bench.shards_audit import assignments, moved
from bench.shards_world import opened
from steersman.kinds.coordination_v1 import Lease
from steersman.manager.lease_state import RESERVED_HOLDER
from steersman.manager.shards.records import read_member

#: Some of their hashes are close together: they are divided by weight.
NAMESPACES = [f"ns-{number:02}" for number in range(40)]
SERVERS = [
    pytest.param(("embedded", True), id="embedded, gate on"),
    pytest.param(("embedded", False), id="embedded, gate off"),
    pytest.param(("engine", True), id="engine, gate on"),
    pytest.param(("engine", False), id="engine, gate off"),
]


@pytest.fixture(params=SERVERS)
async def world(request):
    server, gate = request.param
    async with asyncio.timeout(600), opened(server, gate=gate, lease=6.0, renew=4.0, retry=0.5) as world:
        await world.fill(NAMESPACES, 1)
        await world.change("one")
        yield world
        assert world.wrong_writes() == []


@pytest.mark.slow
async def test_replicas_that_join_and_leave_share_the_work(world):
    """Each has its part, what has converged is not written again, and a join moves little more than its share."""
    await world.start("a")
    await world.start("b")
    await world.converged("one")
    await world.balanced()
    (_, before) = assignments(world.record.read())[-1]
    since = len(world.record.writes)
    await world.start("c")
    await world.balanced()
    (_, after) = assignments(world.record.read())[-1]
    assert 0 < moved(before, after, NAMESPACES) <= 1.2 * len(NAMESPACES) / 3
    term = next(owner for owner in map(world.owner, NAMESPACES) if owner.startswith("sharer-a."))
    await world.stop("a")
    leases = [
        each for each in world.record.read() if each.name == "sharer-a" and each.resource == "leases" and each.body
    ]
    released = leases[-1]
    assert not released.body["spec"].get("holderIdentity")
    assert read_member(released.body["metadata"]["annotations"]).term == term, "the others wait for a lease"
    await world.divided()
    assert world.unexpected(since) == set()
    await world.change("two")
    await world.converged("two")
    assert {each.user for each in world.record.read()[since:] if each.resource == "secrets"} == {"b", "c"}
    for name in ("b", "c"):
        await world.stop(name)
    left = (await world.client.list(Lease, labels={"steersman.dev/shards": "sharer"})).items
    assert [each.key for each in left if each.spec.holder_identity] == []


@pytest.mark.slow
async def test_replicas_that_are_killed_suspended_and_cut_off_are_replaced(world):
    """With clocks that are hours apart and of different speed; one comes back with nothing of its own."""
    await world.start("a", skew=-7200.0, rate=0.9)
    suspended = await world.start("b", skew=3600.0, rate=1.1)
    killed = await world.start("c")
    await world.converged("one")
    await world.divided()
    term = next(owner for owner in map(world.owner, NAMESPACES) if owner.startswith("sharer-b."))
    suspended.suspend()
    await world.change("two")
    await world.until(lambda: term not in map(world.owner, NAMESPACES))
    suspended.resume()
    await world.converged("two")
    killed.cable.cut()
    await world.until(lambda: not any(owner.startswith("sharer-c.") for owner in map(world.owner, NAMESPACES)))
    await world.change("three")
    await world.converged("three")
    killed.cable.mend()
    await world.divided()
    assert term not in map(world.owner, NAMESPACES)
    await world.kill("c")
    await world.change("four")
    await world.converged("four")
    await world.divided()


@pytest.mark.slow
async def test_a_rolling_update_from_leader_election_has_one_actor_for_each_key(world):
    """A standby of the old version never leads again once replicas share the work, even if their coordinator dies."""
    old = await world.start("old-1", elects=True)
    await world.converged("one")
    standby = await world.start("old-2", elects=True)
    await world.start("new-1")
    await world.change("two")
    await world.converged("two")
    # Whichever leads next, in the end no old one does.
    await world.stop(old.identity)
    while (await standby.status()).leads:
        await world.kill(standby.identity)
        standby = await world.start(f"{standby.identity}-again", elects=True)
    await world.divided("new-1")
    await world.start("new-2")
    await world.balanced("new-1", "new-2")
    await world.change("three")
    await world.converged("three")
    await world.kill("new-1")
    await world.divided("new-2")
    await world.change("four")
    await world.converged("four")
    await world.stop("new-2")
    lease = await world.client.get(Lease, ("default", "sharer"))
    assert lease.spec.holder_identity == RESERVED_HOLDER
    assert not (await standby.status()).leads
