"""One term of a replica of shards: what it takes and releases. In virtual time."""

from __future__ import annotations

import asyncio

from samples.eventually import eventually
from samples.virtual_time import run_virtual
from steersman.aio import Supervisor
from steersman.controller import Request
from steersman.manager import Shards
from steersman.manager.shards.assignment import Assignment, Part, Released
from steersman.manager.shards.holdings import RangeClaim
from steersman.manager.shards.membership import Membership
from steersman.manager.shards.state import Assigned, Renewed
from steersman.manager.terms.membership_term import MembershipTerm
from steersman.objects import Key
from steersman.wire import HashRange, namespace_hash

LOW, HIGH = HashRange().split(2**63)
LOW_NAME = next(name for name in map(str, range(100)) if LOW.contains(namespace_hash(name)))


class Caches:
    """What the term asks of its cache; a task left behind by a reconcile begins a write while a range is lost."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self.write: RangeClaim | None = None

    async def gain(self, holding):
        await asyncio.sleep(0)

    def show(self, holding):
        pass

    def weights(self, ranges):
        return ()

    async def lose(self, ranges):
        await asyncio.sleep(1)
        request = Request(Key(LOW_NAME, "a"))
        assert self._membership.holdings.may_write(request)
        self.write = RangeClaim(self._membership.holdings, request)
        self.write.begin_write()
        await asyncio.sleep(1)


class NoClient:
    """Its term reads and writes nothing here."""

    namespace = "default"


def test_a_range_is_released_after_the_last_write_in_it():
    """Also one of a task that outlives its reconcile: the next owner would start beside it."""

    async def work():
        membership = Membership(Shards("sharer"), "sharer-a", "program")
        caches = Caches(membership)
        async with Supervisor() as tasks:
            term = MembershipTerm(
                membership,
                Shards("sharer"),
                NoClient(),
                caches,
                controllers=tuple,
                deadline=lambda: 1e9,
                renew=lambda: None,
            )
            term._tasks = tasks
            me = membership.state.identity
            term._observe(Renewed(0.0))
            parts = (Part(range=LOW, owner=me), Part(range=HIGH, owner=me))
            term._observe(Assigned(Assignment(1, parts)))
            await eventually(lambda: membership.holdings.begun)
            term._observe(Assigned(Assignment(2, (Part(range=LOW, owner=me, next="b", since=2), parts[1]))))
            await asyncio.sleep(8)
            assert caches.write is not None
            assert membership.state.released == ()
            caches.write.end_write(answered=True)
            await eventually(lambda: membership.state.released == (Released(LOW, 2),))
            tasks.cancel()

    run_virtual(work())
