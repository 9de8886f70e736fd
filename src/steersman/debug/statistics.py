"""A manager's statistics as plain data: for the debug page, metrics and ``steersman explain``.

Guarantees
- Everything here is frozen, holds no Kubernetes object, and encodes to JSON directly (`msgspec.json.encode`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from steersman.cache import InformerStatistics
from steersman.controller import ControllerStatistics, KeyRecord, KeyState
from steersman.objects import Key

#: A cache that may have missed changes for this many seconds makes the program unready.
STALE_AFTER = 120.0

#: The state of a manager. "candidate" waits for leadership. "running" reconciles, possibly without the controllers
#: whose kinds the server does not serve.
Phase: TypeAlias = Literal["starting", "syncing", "candidate", "running", "draining", "stopped"]


class LeaderStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Who leads, as last seen by this program."""

    #: ``namespace/name`` of the Lease.
    lease: str
    #: The identity of this program in the Lease.
    identity: str
    leading: bool
    #: The last holder seen in the Lease; empty if it had none.
    holder: str = ""
    #: Since when this program leads; None while it does not.
    since: datetime | None = None


class ShardStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The ranges of one of the replicas that share the work."""

    #: The identity of this replica's term.
    replica: str
    #: The newest assignment that it has seen; 0 if none.
    generation: int
    #: The terms that own ranges in it.
    replicas: tuple[str, ...] = ()
    #: The ranges in which it reconciles, those that it reads, and those that it gives away.
    working: tuple[str, ...] = ()
    beginning: tuple[str, ...] = ()
    draining: tuple[str, ...] = ()
    #: The parts of all hashes in these, from 0 to 1, by state.
    parts: dict[str, float] = {}


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a named check."""

    name: str
    kind: Literal["health", "ready"]
    ok: bool
    #: Why it failed; for a passing check, a warning.
    message: str = ""


class BlockedLoop(msgspec.Struct, frozen=True, kw_only=True):
    """A period in which the watchdog saw the event loop blocked."""

    at: datetime
    seconds: float
    task: str
    stack: str


class ReadyCondition(msgspec.Struct, frozen=True):
    """The Ready condition of an object."""

    status: str
    reason: str = ""
    message: str = ""
    #: When the status last changed; None if the object does not say.
    since: datetime | None = None

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.status, self.reason))) + (f": {self.message}" if self.message else "")


class UnreadyObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object whose Ready condition is not True."""

    key: Key
    ready: ReadyCondition
    #: Whether it is marked for deletion.
    deleting: bool = False


class UnreadyObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of one controller that are not ready, as the cache has them."""

    controller: str
    #: How many are not ready, and how many objects the kind has.
    count: int
    of: int
    #: The most frequent reasons, each with its count.
    reasons: tuple[tuple[str, int], ...]
    #: Some of them, of every reason if possible.
    shown: tuple[UnreadyObject, ...]


class ManagerStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of a manager."""

    name: str
    #: Steersman's version.
    version: str
    #: When `run` was called; None before that.
    started: datetime | None
    now: datetime
    phase: Phase
    #: None without leader election.
    leader: LeaderStatistics | None = None
    #: None without shards.
    shards: ShardStatistics | None = None
    #: In the order in which they were added; empty while another process leads.
    controllers: tuple[ControllerStatistics, ...] = ()
    informers: tuple[InformerStatistics, ...] = ()
    #: The last result of every check, health checks first.
    checks: tuple[CheckResult, ...] = ()
    #: The last reports of the watchdog, newest last.
    blocked: tuple[BlockedLoop, ...] = ()
    #: The objects that are not ready, for each controller that has some.
    unready: tuple[UnreadyObjects, ...] = ()


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What one controller recorded about one key."""

    controller: str
    #: The kind it reconciles: ``apps/v1, Kind=Deployment``.
    kind: str
    key: Key
    #: The last reconcile; None if there was none here, or it is no longer remembered.
    record: KeyRecord | None
    state: KeyState
    #: Seconds until the next reconcile; None if none is scheduled, 0 if it is ready or running.
    next_run: float | None
    #: The cached Ready condition of the object; None if the object is gone or has no such condition.
    ready: ReadyCondition | None = None
    #: With shards: the replica that has the key, if that is another one than this.
    elsewhere: str = ""
