"""One term of a replica: it follows the assignment, takes and drains ranges, and tells the coordinator.

Guarantees
- A range begins when every kind that can be listed is at least as new as the server was when the range was taken, and
  after everything that this replica did in it before has ended.
- A range is released when its reconciles have ended, and none of their writes can take effect any more.
- An assignment that is gone, or older than one already seen, ends the term: it was deleted or restored from a backup, and
  may say something else than what other replicas have seen.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from steersman import aio
from steersman.aio import Supervisor
from steersman.client import Added, Client, Deleted, Modified
from steersman.controller import Controller
from steersman.errors import ApiError, NotFound, ProtocolError
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager.shards.holdings import Holding, is_in
from steersman.manager.shards.membership import Membership
from steersman.manager.shards.records import stored_assignment
from steersman.manager.shards.settings import Shards, assignment_name
from steersman.manager.shards.sharded_cache import ShardedCache
from steersman.manager.shards.state import Assigned, Drained, Observation, Ranges, Renewed, step
from steersman.objects import Key

_log = logging.getLogger("steersman.shards")

#: How often a replica measures the weight of its ranges.
_WEIGH = 30.0


class MembershipTerm:
    """The work of one term: call `run` inside it."""

    def __init__(
        self,
        membership: Membership,
        shards: Shards,
        client: Client,
        cache: ShardedCache,
        *,
        controllers: Callable[[], tuple[Controller, ...]],
        deadline: Callable[[], float],
        renew: Callable[[], None],
    ) -> None:
        self._membership = membership
        self._shards = shards
        self._client = client
        self._key = Key(shards.namespace or client.namespace, assignment_name(shards.name))
        self._cache = cache
        cache.holdings = membership.holdings
        self._controllers = controllers
        self._deadline = deadline
        self._renew = renew
        self._wake = asyncio.Event()
        #: The drains that have not ended, with their ranges.
        self._drains: dict[asyncio.Task[None], Ranges] = {}
        self._weighed_at = float("-inf")
        self._complaint = ""

    async def run(self) -> None:
        """Follow the assignment until cancelled, or until the term must end."""
        self._membership.enter()
        self._renew()
        async with Supervisor() as tasks:
            self._tasks = tasks
            tasks.start(self._follow(), name="watch of the assignment of shards")
            while await self._look():
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._shards.retry / 2):
                        await self._wake.wait()
                self._wake.clear()
            tasks.cancel()

    async def end(self) -> None:
        """Drop all ranges, after the work of the term has ended. The Lease names the term until it is left."""
        holdings = self._membership.holdings
        holdings.drain(holdings.ranges)
        held = holdings.draining
        holdings.drained(held)
        await self._cache.lose(held)

    # observing

    async def _look(self) -> bool:
        """Read the assignment. Returns whether the term may go on."""
        known = self._membership.assignment.generation
        self._observe(Renewed(self._deadline() - self._shards.renew))
        try:
            async with asyncio.timeout(self._shards.renew / 4):
                stored = await self._client.get(ConfigMap, self._key)
            assignment = stored_assignment(stored)
        except NotFound:
            if known:
                _log.warning("the assignment of shards %s is gone: beginning a new term", self._key)
            return not known
        except (ApiError, TimeoutError) as error:
            # Without an answer, the term will end soon. An assignment that no one can read stays until a person acts.
            loud = isinstance(error, ProtocolError) and str(error) != self._complaint
            self._complaint = str(error)
            level = logging.WARNING if loud else logging.DEBUG
            _log.log(level, "cannot read the assignment of shards %s: %s", self._key, error)
            return not self._membership.state.over
        if assignment.generation < known:
            _log.warning("the assignment of shards %s went back: beginning a new term", self._key)
            return False
        self._complaint = ""
        self._observe(Assigned(assignment))
        now = aio.boottime()
        if now - self._weighed_at >= _WEIGH:
            self._weigh(now)
        return not self._membership.state.over

    def _weigh(self, now: float) -> None:
        self._weighed_at = now
        self._membership.weights = self._cache.weights(self._membership.holdings.begun)

    def _observe(self, observation: Observation) -> None:
        membership = self._membership
        before = membership.state
        membership.state, change = step(before, observation, aio.boottime())
        if change.drain:
            self._drain(change.drain)
        if change.take:
            self._take(change.take)
        if membership.state.released != before.released:
            self._renew()

    async def _follow(self) -> None:
        """Watch the assignment, to notice a change at once. Without permission to watch, polling suffices."""
        while True:
            try:
                fields = {"metadata.name": self._key.name}
                async with self._client.watch(ConfigMap, namespace=self._key.namespace, fields=fields) as events:
                    async for event in events:
                        if isinstance(event, Added | Modified | Deleted):
                            self._wake.set()
            except ApiError as error:
                _log.debug("the watch of %s ended: %s", self._key, error)
            await asyncio.sleep(self._shards.retry * (1 + aio.randomness().random()))

    # ranges

    def _take(self, ranges: Ranges) -> None:
        holding = self._membership.holdings.take(ranges)
        _log.info("%s: taking %s", holding.name, _words(ranges))
        self._tasks.start(self._begin(holding), name=f"begin {holding.name}")

    async def _begin(self, holding: Holding) -> None:
        while before := [task for task, ranges in self._drains.items() if _overlap(ranges, holding.ranges)]:
            await asyncio.wait(before)
        if not holding.ranges:
            return
        await self._cache.gain(holding)
        if not holding.ranges:
            return  # lost meanwhile
        holding.begun = True
        self._cache.show(holding)
        self._weigh(aio.boottime())
        _log.info("%s: began %s", holding.name, _words(holding.ranges))

    def _drain(self, ranges: Ranges) -> None:
        self._membership.holdings.drain(ranges)
        _log.info("giving away %s", _words(ranges))
        task = self._tasks.start(self._end(ranges), name="drain shards")
        self._drains[task] = ranges
        task.add_done_callback(lambda task: self._drains.pop(task, None))

    async def _end(self, ranges: Ranges) -> None:
        async with Supervisor() as tasks:
            for controller in self._controllers():
                drained = controller.drain(lambda request: is_in(ranges, request))
                tasks.start(drained, name=f"drain shards of {controller.name}")
        await self._cache.lose(ranges)
        holdings = self._membership.holdings
        await holdings.quiet(ranges)
        # No await from here on: a task that outlives its reconcile may write until now, and never later.
        holdings.drained(ranges)
        for each in ranges:
            self._observe(Drained(each))
        _log.info("gave away %s", _words(ranges))


def _overlap(some: Ranges, others: Ranges) -> bool:
    return any(one.overlaps(other) for one in some for other in others)


def _words(ranges: Ranges) -> str:
    return ", ".join(map(str, ranges)) or "nothing"
