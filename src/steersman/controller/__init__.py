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

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.cache import ObjectEvent as ObjectEvent
from steersman.controller.blueprint import (
    Blueprint as Blueprint,
    SupportsBlueprint as SupportsBlueprint,
    WatchedKind as WatchedKind,
)
from steersman.controller.builder import (
    ControllerBuilder as ControllerBuilder,
    Register as Register,
    controller_for as controller_for,
)
from steersman.controller.cached_kinds import CachedKinds as CachedKinds, CacheRecorder as CacheRecorder
from steersman.controller.causes import Cause as Cause, Causes as Causes, Request as Request
from steersman.controller.context import (
    NO_EVENTS as NO_EVENTS,
    Context as Context,
    Events as Events,
    ReconcileFunction as ReconcileFunction,
    ReconcileLogger as ReconcileLogger,
    Reconciler as Reconciler,
    current_context as current_context,
)
from steersman.controller.controller import ClientFor as ClientFor, Controller as Controller
from steersman.controller.former_names import check_formerly as check_formerly
from steersman.controller.internals import InternalClient as InternalClient, internal_client as internal_client
from steersman.controller.mistakes import explanation_of as explanation_of
from steersman.controller.options import ControllerOptions as ControllerOptions
from steersman.controller.outcomes import (
    Done as Done,
    Outcome as Outcome,
    Requeue as Requeue,
    RequeueAfter as RequeueAfter,
    TerminalError as TerminalError,
    no_timedelta as no_timedelta,
)
from steersman.controller.queue.queue import Queue as Queue, QueueClosed as QueueClosed
from steersman.controller.queue.state import (
    LOW_PRIORITY as LOW_PRIORITY,
    QueueOptions as QueueOptions,
    QueueStatistics as QueueStatistics,
    Taken as Taken,
)
from steersman.controller.records import (
    FAILURES as FAILURES,
    ControllerStatistics as ControllerStatistics,
    KeyRecord as KeyRecord,
    KeyState as KeyState,
    QueuePlace as QueuePlace,
    ResultLabel as ResultLabel,
)
from steersman.controller.results import is_race as is_race
from steersman.controller.sources.mappers import (
    Labels as Labels,
    MapFunction as MapFunction,
    Owners as Owners,
    Stores as Stores,
    Through as Through,
    check_kind as check_kind,
    owners_through as owners_through,
)
from steersman.controller.sources.predicates import (
    Predicate as Predicate,
    annotations_changed as annotations_changed,
    generation_changed as generation_changed,
    labeled as labeled,
    labels_changed as labels_changed,
    resource_version_changed as resource_version_changed,
    when as when,
)
from steersman.controller.sources.source import (
    Emit as Emit,
    FinishingSource as FinishingSource,
    KindEvents as KindEvents,
    KindSource as KindSource,
    Registration as Registration,
    Source as Source,
    SourceStatistics as SourceStatistics,
    StoppingSource as StoppingSource,
)
from steersman.controller.sources.views import KindLike as KindLike, View as View
from steersman.controller.watchdog import (
    BLOCKED_AFTER as BLOCKED_AFTER,
    Blocked as Blocked,
    Watchdog as Watchdog,
    log_blocked as log_blocked,
)
from steersman.controller.writes.applies import INTENT_ANNOTATION as INTENT_ANNOTATION, merge_schema as merge_schema
from steersman.controller.writes.pipeline import reconcile_pipeline as reconcile_pipeline
from steersman.controller.writes.reconcile_client import ReconcileClient as ReconcileClient
from steersman.controller.writes.write_log import Write as Write, WriteLog as WriteLog, WriteObserver as WriteObserver

# Imported on first use: few controllers claim objects or listen to a channel.
if TYPE_CHECKING:
    from steersman.controller.claims import check_claims as check_claims, claim as claim, claiming as claiming
    from steersman.controller.sources.channel_source import ChannelSource as ChannelSource
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.controller.claims": ["check_claims", "claim", "claiming"],
            "steersman.controller.sources.channel_source": ["ChannelSource"],
        },
    )

__all__ = [
    "Blueprint",
    "Cause",
    "ChannelSource",
    "ControllerBuilder",
    "Emit",
    "Events",
    "ObjectEvent",
    "Outcome",
    "Predicate",
    "QueueOptions",
    "Stores",
    "View",
    "annotations_changed",
    "claim",
    "claiming",
    "controller_for",
    "generation_changed",
    "labeled",
    "labels_changed",
    "owners_through",
    "resource_version_changed",
    "when",
]
