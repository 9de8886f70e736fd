"""The work of a manager with shards: its part of the shared controllers, and the coordinator's work while it leads.

Guarantees
- Every replica runs the controllers that are shared, for the namespaces of its ranges.
- The coordinator alone runs stages of `Manager.while_leading` and controllers that are not shared, as a leader does.
- A replica ends its term when its Lease cannot be renewed, or when its assignment is gone or older than before: it
  cancels its reconciles, and begins a new term under a new identity.
- At a stop, reconciles end first. Then the Lease says that the term has ended, and others take the ranges over at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from steersman.aio import Supervisor, utc_now
from steersman.client import Client
from steersman.controller import Blueprint
from steersman.manager.caches import ManagedCache
from steersman.manager.event_log import EventLog
from steersman.manager.leader import Campaign, Term, campaign_with
from steersman.manager.lease_state import LeaseNotes
from steersman.manager.shards.coordinator import Coordinator
from steersman.manager.shards.kinds import is_shared
from steersman.manager.shards.membership import Membership
from steersman.manager.shards.records import SHARDS_LABEL
from steersman.manager.shards.settings import Shards, membership_of
from steersman.manager.shards.sharded_cache import ShardedCache
from steersman.manager.term_controllers import TermControllers
from steersman.manager.terms.membership_term import MembershipTerm
from steersman.manager.terms.work import Work


class SharedWork(Work):
    """Runs the controllers of one replica until its manager stops."""

    #: Whether this replica is the coordinator now.
    _coordinates = False

    @property
    def _shards(self) -> Shards:
        shards = self._state.shards
        assert shards is not None
        return shards

    async def _work_in_terms(self, cache: ManagedCache, client: Client) -> None:
        assert isinstance(cache, ShardedCache)
        self._state.working = True
        async with Supervisor() as tasks:
            coordinating = tasks.start(self._coordinate(cache, client), name="coordinator of shards")
            tasks.start(self._withdraw(coordinating), name="withdraw from the election of the coordinator")
            await self._share(cache, client)
            await asyncio.wait([coordinating])  # a second cancellation would interrupt the release of its Lease
            tasks.cancel()

    # the coordinator

    async def _coordinate(self, cache: ManagedCache, client: Client) -> None:
        # A candidate of the version before, which elects one leader for all keys, must not lead while replicas work.
        campaign = campaign_with(self._shards.election, client, hesitates=cache.is_stale, reserves=True)
        async with campaign:
            self._state.campaign = campaign
            async for term in campaign:
                self._coordinates = True
                async with term:
                    await self._lead(cache, term)
                self._coordinates = False
                if self._stopping.is_set():
                    return

    async def _withdraw(self, coordinating: asyncio.Task[None]) -> None:
        """Campaign no more after the stop: this replica may drain for long, and the others need a coordinator."""
        await self._stopping.wait()
        if not self._coordinates:
            coordinating.cancel()

    async def _lead(self, cache: ManagedCache, term: Term) -> None:
        self._state.since = utc_now()
        try:
            async with EventLog(self._name).opened(term.client) as events:
                await self._reconcile(cache, term.client, events, fresh=True)
        finally:
            self._state.since = None

    def _led_blueprints(self) -> Iterable[Blueprint]:
        return [blueprint for blueprint in self._blueprints() if not is_shared(blueprint)]

    def _start_duty(self, client: Client, tasks: Supervisor) -> asyncio.Task[None]:
        return tasks.start(Coordinator(self._shards, client).run(), name="assign shards")

    # the replica

    async def _share(self, cache: ShardedCache, client: Client) -> None:
        shards = self._shards
        election = membership_of(shards)
        membership = Membership(shards, election.name, self._name)
        notes = LeaseNotes({SHARDS_LABEL: shards.name}, membership.annotations)
        async with campaign_with(election, client, notes=notes, claim=membership.claim) as campaign:
            self._state.membership = membership
            self._state.member_campaign = campaign
            async for term in campaign:
                async with term:
                    await self._share_in(term, campaign, membership, cache, client)
                membership.begin()  # before any claim: there is no await since the term was left
                if self._stopping.is_set():
                    return

    async def _share_in(
        self, term: Term, campaign: Campaign, membership: Membership, cache: ShardedCache, client: Client
    ) -> None:
        """Work in one term of this replica."""
        if self._stopping.is_set():
            return
        self._leadership.entered(term)
        dedicated = client.dedicated()
        following = MembershipTerm(
            membership,
            self._shards,
            dedicated,
            cache,
            controllers=lambda: self._state.shared.controllers if self._state.shared is not None else (),
            deadline=lambda: term.deadline,
            renew=campaign.renew,
        )
        try:
            async with self._events.opened(term.client) as events, Supervisor() as tasks:
                # Outside of a reconcile: its writes are not those of one key.
                events.open_recorder()
                shared = TermControllers(
                    cache,
                    term.client,
                    tasks,
                    fresh=False,
                    on_record=self._on_record,
                    events=events,
                    registry=self._registry,
                    admits=membership.holdings.admits,
                )
                self._state.shared = shared
                for blueprint in self._blueprints():
                    if is_shared(blueprint):
                        shared.start(blueprint)
                running = tasks.start(following.run(), name="shards of this replica")
                stop = tasks.start(self._stopping.wait(), name="wait for the stop")
                await asyncio.wait([running, stop], return_when=asyncio.FIRST_COMPLETED)
                if not self._stopping.is_set():
                    tasks.cancel()  # the assignment does not hold any more: others may have these ranges now
                shared.stop()
                running.cancel()
                stop.cancel()
        finally:
            self._state.shared = None
            self._leadership.entered(None)
            await following.end()
            await dedicated.close()
