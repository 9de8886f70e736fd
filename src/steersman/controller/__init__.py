"""Reconcile loops: from a key to a converged world.

Guarantees
- **Level, not edge.** A reconcile gets a key and reads state. Missed, merged and repeated events are harmless.
- **One at a time per key**, many keys at once. A key added while it is being reconciled runs once more, later.
- **No lost keys, no hot loops.** No key is ever dropped. Failures back off per key, even while events come in. The echo
  of a reconcile's own write causes no further reconcile, so a converged world causes none.
- **Fair.** Namespaces take turns, so one tenant's thousands of keys do not delay another's single key. Low priority
  (objects present at the start, resyncs) yields to current events, but gets its share after waiting long enough.
- **Every reconcile gets its causes**: all that were merged into it, capped, with a count.
- A crash, a timeout or a blocking call is reported with its source line and affects one key only.
- A builder rejects mistakes where they are made, and says what to write instead.
- With OpenTelemetry, every reconcile is a span, linked to the spans that caused it.
- A failing mapper loses no event: it is retried until it succeeds.
"""

from steersman.controller.builder import ControllerBuilder, Register, controller_for
from steersman.controller.causes import Cause, Causes, Request
from steersman.controller.channel_source import ChannelSource
from steersman.controller.claims import claim, claiming
from steersman.controller.context import NO_EVENTS, Context, Events, ReconcileFunction, ReconcileLogger, Reconciler
from steersman.controller.events import KindLike, ObjectEvent, View
from steersman.controller.mappers import MapFunction, Stores, Through, owners_through
from steersman.controller.outcomes import Done, Outcome, Requeue, RequeueAfter, TerminalError
from steersman.controller.plan import ControllerPlan, Planned, WatchedKind
from steersman.controller.predicates import (
    Predicate,
    annotations_changed,
    generation_changed,
    labelled,
    labels_changed,
    resource_version_changed,
    when,
)
from steersman.controller.queue import Queue, QueueClosed
from steersman.controller.queue_state import LOW_PRIORITY, QueueOptions, QueueStatistics, Taken
from steersman.controller.reconcile_client import ReconcileClient
from steersman.controller.records import ControllerStatistics, KeyRecord, KeyState, Place
from steersman.controller.sources import Emit, KindSource, Registration, Source, SourceStatistics, Watched
from steersman.controller.watchdog import Blocked, Watchdog
from steersman.controller.watching import CachedKinds, CacheRecorder
from steersman.controller.workers import ClientFor, Controller, ControllerOptions
from steersman.controller.write_log import Write, WriteLog, WriteObserver

__all__ = [
    "LOW_PRIORITY",
    "NO_EVENTS",
    "Blocked",
    "CacheRecorder",
    "CachedKinds",
    "Cause",
    "Causes",
    "ChannelSource",
    "ClientFor",
    "Context",
    "Controller",
    "ControllerBuilder",
    "ControllerOptions",
    "ControllerPlan",
    "ControllerStatistics",
    "Done",
    "Emit",
    "Events",
    "KeyRecord",
    "KeyState",
    "KindLike",
    "KindSource",
    "MapFunction",
    "ObjectEvent",
    "Outcome",
    "Place",
    "Planned",
    "Predicate",
    "Queue",
    "QueueClosed",
    "QueueOptions",
    "QueueStatistics",
    "ReconcileClient",
    "ReconcileFunction",
    "ReconcileLogger",
    "Reconciler",
    "Register",
    "Registration",
    "Request",
    "Requeue",
    "RequeueAfter",
    "Source",
    "SourceStatistics",
    "Stores",
    "Taken",
    "TerminalError",
    "Through",
    "View",
    "Watchdog",
    "Watched",
    "WatchedKind",
    "Write",
    "WriteLog",
    "WriteObserver",
    "annotations_changed",
    "claim",
    "claiming",
    "controller_for",
    "generation_changed",
    "labelled",
    "labels_changed",
    "owners_through",
    "resource_version_changed",
    "when",
]
