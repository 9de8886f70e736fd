"""What a manager knows about itself, as plain data: for the debug page, for metrics, for ``steersman explain``.

Guarantees
- Everything here is frozen, holds no object of the cluster, and is JSON as it stands (`msgspec.json.encode`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from steersman.cache import InformerStatistics
from steersman.controller import ControllerStatistics, KeyRecord, KeyState
from steersman.objects import Key

#: Where a manager stands: "candidate" waits for leadership, "running" reconciles, if need be without the controllers whose
#: kinds the server does not serve.
Phase: TypeAlias = Literal["starting", "syncing", "candidate", "running", "draining", "stopped"]


class LeaderStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Who leads, as far as this program has seen."""

    #: ``namespace/name`` of the Lease.
    lease: str
    #: What the Lease calls this program.
    identity: str
    leading: bool
    #: Who held the lease when it was last seen; empty if nobody did.
    holder: str = ""
    #: Since when this program leads; None while it does not.
    since: datetime | None = None


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a named check said."""

    name: str
    kind: Literal["health", "ready"]
    ok: bool
    #: Why not; if it is ok, what should be looked at all the same.
    message: str = ""


class BlockedLoop(msgspec.Struct, frozen=True, kw_only=True):
    """A time when the event loop did not turn, as the watchdog saw it."""

    at: datetime
    seconds: float
    task: str
    stack: str


class ManagerStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """All that a page about a manager shows."""

    name: str
    #: Steersman's version.
    version: str
    #: When `run` was called; None before.
    started: datetime | None
    now: datetime
    phase: Phase
    #: None without leader election.
    leader: LeaderStatistics | None = None
    #: In the order in which they were added; none while another process leads.
    controllers: tuple[ControllerStatistics, ...] = ()
    informers: tuple[InformerStatistics, ...] = ()
    #: The last result of every check, those of health first.
    checks: tuple[CheckResult, ...] = ()
    #: The last reports of the watchdog, the newest last.
    blocked: tuple[BlockedLoop, ...] = ()


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What one controller knows about one key."""

    controller: str
    #: The kind it reconciles: ``apps/v1, Kind=Deployment``.
    kind: str
    key: Key
    #: The last run; None if it never ran here, or is no longer remembered.
    record: KeyRecord | None
    state: KeyState
    #: In how many seconds it runs next; None if nothing asks for it, 0 if it is ready or runs.
    next_run: float | None
