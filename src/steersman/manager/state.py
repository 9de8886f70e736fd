"""The state of a manager: what has started, what runs, who leads.

The manager changes this object; its checks, statistics and endpoints read it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Set as AbstractSet, Sized
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from steersman.aio import Supervisor, utc_now
from steersman.client import Client
from steersman.controller import Blocked, Blueprint, Controller, log_blocked
from steersman.debug import BlockedLoop, LeaderStatistics, Phase
from steersman.manager.caches import ManagedCache
from steersman.manager.leader import Campaign, LeaderElection
from steersman.manager.term_controllers import TermControllers
from steersman.objects import UNSET, GroupVersionKind, Key, UnsetType

if TYPE_CHECKING:
    from steersman.manager.shards.membership import Membership
    from steersman.manager.shards.settings import Shards

_log = logging.getLogger("steersman.manager")

#: How many reports of code that blocked the event loop are kept.
_BLOCKED_KEPT = 20
#: Servers that are no cluster: tests in a Pod start their own.
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


def waits_for(controller: Controller, absent: AbstractSet[GroupVersionKind]) -> bool:
    """Whether a controller cannot work because one of these kinds is not served."""
    return controller.watched is not None and not controller.watched.isdisjoint(absent)


class State:
    """The state of one manager."""

    def __init__(self, leader: LeaderElection | UnsetType | None, shards: Shards | None = None) -> None:
        self.shards = shards
        #: The election of the leader, or of the coordinator of shards.
        self.election = shards.election if shards is not None else None if leader is UNSET else leader
        #: Whether the program decided for or against leader election.
        self._decided = leader is not UNSET or shards is not None
        self.started: datetime | None = None
        self.ended = False
        #: The task that runs `Manager.run`, and whether a signal during startup cancelled it.
        self.runner: asyncio.Task[Any] | None = None
        self.aborted = False
        self.stopping = asyncio.Event()
        #: Set when nothing runs any more and the Lease is released.
        self.drained = asyncio.Event()
        self.tasks: Supervisor | None = None
        self.cache: ManagedCache | None = None
        self.campaign: Campaign | None = None
        #: When this program began to lead.
        self.since: datetime | None = None
        self.running: TermControllers | None = None
        #: With shards: the controllers that all replicas run, the terms of this replica, and its candidacy for its own Lease.
        self.shared: TermControllers | None = None
        self.membership: Membership | None = None
        self.member_campaign: Campaign | None = None
        #: Whether there is something to drain: controllers, or at least a Lease to release.
        self.working = False
        self.blocked: deque[BlockedLoop] = deque(maxlen=_BLOCKED_KEPT)

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """The running controllers; none while another process leads."""
        return tuple(controller for term in self.terms for controller in term.controllers)

    @property
    def terms(self) -> tuple[TermControllers, ...]:
        """The controllers of each running term."""
        return tuple(term for term in (self.shared, self.running) if term is not None)

    def term_of(self, blueprint: Blueprint) -> TermControllers | None:
        """The running term that has to run a controller."""
        if self.shards is None:
            return self.running
        from steersman.manager.shards.kinds import is_shared  # noqa: PLC0415 - few programs have shards

        return self.shared if is_shared(blueprint) else self.running

    @property
    def phase(self) -> Phase:
        """The state in one word."""
        if self.ended:
            return "stopped"
        if self.stopping.is_set():
            return "draining"
        if self.cache is None:
            return "starting"
        if self.terms:
            return "running" if self._works else "syncing"
        held = self.cache.held()
        synced = all(informer.synced or not informer.served for informer in held)
        some = not held or any(informer.synced for informer in held)
        return "candidate" if synced and some and self.election is not None else "syncing"

    @property
    def absent(self) -> frozenset[GroupVersionKind]:
        """The kinds that controllers need and the server does not serve, as of the last answer."""
        if self.cache is None:
            return frozenset()
        return frozenset(informer.gvk for informer in self.cache.held() if not informer.served)

    @property
    def denied(self) -> frozenset[GroupVersionKind]:
        """The kinds that controllers need and this program may not list."""
        if self.cache is None:
            return frozenset()
        return frozenset(informer.gvk for informer in self.cache.held() if informer.denied is not None)

    @property
    def _works(self) -> bool:
        """Whether a controller is working, and every other one waits for a kind that cannot be read."""
        idle = [controller for controller in self.controllers if not controller.working]
        if not idle:
            return True
        unreadable = self.absent | self.denied
        return len(idle) < len(self.controllers) and all(waits_for(controller, unreadable) for controller in idle)

    def note_blocked(self, blocked: Blocked) -> None:
        """Log and keep a report of code that blocked the event loop. Called on the watchdog's thread."""
        log_blocked(blocked)
        self.blocked.append(BlockedLoop(at=utc_now(), seconds=blocked.seconds, task=blocked.task, stack=blocked.stack))

    def warn_unelected(self, name: str, server: str, blueprints: Sized) -> None:
        """Warn if controllers run in a Pod of a cluster, and nothing keeps a second Pod from acting at the same time."""
        from steersman.client import in_pod  # noqa: PLC0415 - few programs need it

        host = urlsplit(server).hostname or "localhost"
        if self._decided or not blueprints or host in _THIS_MACHINE or not in_pod():
            return
        _log.warning(
            "no leader election: while two Pods of this program run, as in a rollout, both act at once; write"
            ' Manager(leader=LeaderElection("%s")), or leader=None if that is intended',
            name or "my-operator",
        )

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
