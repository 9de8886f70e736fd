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

from steersman.controller.builder import (
    ControllerBuilder as ControllerBuilder,
    Register as Register,
    controller_for as controller_for,
)
from steersman.controller.causes import Cause as Cause, Causes as Causes, Request as Request
from steersman.controller.channel_source import ChannelSource as ChannelSource
from steersman.controller.claims import claim as claim, claiming as claiming
from steersman.controller.context import (
    NO_EVENTS as NO_EVENTS,
    Context as Context,
    Events as Events,
    ReconcileFunction as ReconcileFunction,
    ReconcileLogger as ReconcileLogger,
    Reconciler as Reconciler,
)
from steersman.controller.events import KindLike as KindLike, ObjectEvent as ObjectEvent, View as View
from steersman.controller.internal_client import InternalClient as InternalClient, internal_client as internal_client
from steersman.controller.mappers import (
    MapFunction as MapFunction,
    Stores as Stores,
    Through as Through,
    owners_through as owners_through,
)
from steersman.controller.outcomes import (
    Done as Done,
    Outcome as Outcome,
    Requeue as Requeue,
    RequeueAfter as RequeueAfter,
    TerminalError as TerminalError,
)
from steersman.controller.plan import ControllerPlan as ControllerPlan, Planned as Planned, WatchedKind as WatchedKind
from steersman.controller.predicates import (
    Predicate as Predicate,
    annotations_changed as annotations_changed,
    generation_changed as generation_changed,
    labelled as labelled,
    labels_changed as labels_changed,
    resource_version_changed as resource_version_changed,
    when as when,
)
from steersman.controller.queue import Queue as Queue, QueueClosed as QueueClosed
from steersman.controller.queue_state import (
    LOW_PRIORITY as LOW_PRIORITY,
    QueueOptions as QueueOptions,
    QueueStatistics as QueueStatistics,
    Taken as Taken,
)
from steersman.controller.reconcile_client import ReconcileClient as ReconcileClient
from steersman.controller.records import (
    ControllerStatistics as ControllerStatistics,
    KeyRecord as KeyRecord,
    KeyState as KeyState,
    Place as Place,
)
from steersman.controller.sources import (
    Emit as Emit,
    KindSource as KindSource,
    Registration as Registration,
    Source as Source,
    SourceStatistics as SourceStatistics,
    Watched as Watched,
)
from steersman.controller.watchdog import Blocked as Blocked, Watchdog as Watchdog
from steersman.controller.watching import CachedKinds as CachedKinds, CacheRecorder as CacheRecorder
from steersman.controller.workers import (
    ClientFor as ClientFor,
    Controller as Controller,
    ControllerOptions as ControllerOptions,
)
from steersman.controller.write_log import Write as Write, WriteLog as WriteLog, WriteObserver as WriteObserver
