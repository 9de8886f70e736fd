"""Where a manager stands: what has been started, what runs, who leads.

One object that the manager changes and that its checks, statistics and endpoints read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any

from steersman.aio import Supervisor
from steersman.client import Client
from steersman.controller import Controller
from steersman.manager.caches import ManagedCache
from steersman.manager.leader import Campaign, LeaderElection
from steersman.manager.running import Running
from steersman.manager.statistics import LeaderStatistics, Phase
from steersman.objects import GroupVersionKind, Key


def waits_for(controller: Controller, absent: AbstractSet[GroupVersionKind]) -> bool:
    """Whether a controller cannot work because one of these kinds is not served."""
    return controller.watched is not None and not controller.watched.isdisjoint(absent)


class State:
    """The state of one manager."""

    def __init__(self, election: LeaderElection | None) -> None:
        self.election = election
        self.started: datetime | None = None
        self.ended = False
        #: The task that is in `Manager.run`, and whether it was cancelled by a signal that came while it started.
        self.runner: asyncio.Task[Any] | None = None
        self.aborted = False
        self.stopping = asyncio.Event()
        #: Nothing runs any more, and the lease is given back.
        self.drained = asyncio.Event()
        self.tasks: Supervisor | None = None
        self.cache: ManagedCache | None = None
        self.campaign: Campaign | None = None
        #: Since when this program leads.
        self.since: datetime | None = None
        self.running: Running | None = None
        #: Whether there is something to drain: controllers, or at least a lease to give back.
        self.working = False

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """The controllers that run now; none while another process leads."""
        return self.running.controllers if self.running is not None else ()

    @property
    def phase(self) -> Phase:
        """The state in one word."""
        if self.ended:
            return "stopped"
        if self.stopping.is_set():
            return "draining"
        if self.cache is None:
            return "starting"
        if self.running is not None:
            return "running" if self._works else "syncing"
        held = self.cache.held()
        synced = all(informer.synced or not informer.served for informer in held)
        some = not held or any(informer.synced for informer in held)
        return "candidate" if synced and some and self.election is not None else "syncing"

    @property
    def absent(self) -> frozenset[GroupVersionKind]:
        """The kinds that controllers need and the server does not serve, as far as we have heard."""
        if self.cache is None:
            return frozenset()
        return frozenset(informer.gvk for informer in self.cache.held() if not informer.served)

    @property
    def _works(self) -> bool:
        """Whether a controller reconciles, and every one does that does not wait for a kind that is not served."""
        idle = [each for each in self.controllers if not each.working]
        if not idle:
            return True
        absent = self.absent
        return len(idle) < len(self.controllers) and all(waits_for(each, absent) for each in idle)

    def leader(self, client: Client | None) -> LeaderStatistics | None:
        """Who leads; None without leader election."""
        election, campaign = self.election, self.campaign
        if election is None:
            return None
        namespace = election.namespace or (client.namespace if client is not None else "")
        return LeaderStatistics(
            lease=str(Key(namespace, election.name)),
            identity=campaign.identity if campaign is not None else "",
            leading=campaign is not None and campaign.leading,
            holder=campaign.leader if campaign is not None else "",
            since=self.since,
        )
