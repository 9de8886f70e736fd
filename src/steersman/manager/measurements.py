"""A manager's metrics, under the names that dashboards for Kubernetes controllers expect.

Guarantees
- Names, labels and meanings are those of `steersman.telemetry.names`, so a dashboard made for controller-runtime works.
- The number of series is bounded by the number of controllers and watched kinds, not by the number of objects.
- A reconcile costs a few additions. Values that are cheaper to look up are looked up when the metrics are read.
- Counters continue across terms of leadership: recreating a controller does not reset them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from steersman.controller import ControllerStatistics, KeyRecord, ResultLabel
from steersman.telemetry import Count, Distribution, Gauge, Registry, names

if TYPE_CHECKING:
    from steersman.cache import InformerStatistics
    from steersman.debug import ManagerStatistics

#: A conflict counts as a requeue, not as an error.
_RESULTS: dict[ResultLabel, str] = {
    "success": "success",
    "requeue": "requeue",
    "requeue_after": "requeue_after",
    "conflict": "requeue",
    "error": "error",
    "terminal_error": "error",
}
#: Results that send the request through its backoff.
_RETRIED = frozenset({"error", "conflict", "requeue"})


class _Series:
    """The series of one controller, looked up once."""

    __slots__ = (
        "adds",
        "conflicts",
        "counted",
        "echoes",
        "errors",
        "mapping_failures",
        "panics",
        "results",
        "retries",
        "seconds",
        "terminal",
        "timeouts",
        "waited",
        "worked",
        "writes",
    )

    def __init__(self, registry: Registry, controller: str) -> None:
        queue = (controller, controller)
        total = registry.counter(names.RECONCILE_TOTAL)
        self.results: dict[ResultLabel, Count] = {
            label: total.labels(controller, name) for label, name in _RESULTS.items()
        }
        self.errors = registry.counter(names.RECONCILE_ERRORS).labels(controller)
        self.terminal = registry.counter(names.TERMINAL_RECONCILE_ERRORS).labels(controller)
        self.panics = registry.counter(names.RECONCILE_PANICS).labels(controller)
        self.timeouts = registry.counter(names.RECONCILE_TIMEOUTS).labels(controller)
        self.seconds: Distribution = registry.histogram(names.RECONCILE_TIME).labels(controller)
        self.waited: Distribution = registry.histogram(names.QUEUE_DURATION).labels(*queue)
        self.worked: Distribution = registry.histogram(names.WORK_DURATION).labels(*queue)
        self.retries = registry.counter(names.QUEUE_RETRIES).labels(*queue)
        self.adds = registry.counter(names.QUEUE_ADDS).labels(*queue)
        self.writes = registry.counter(names.RECONCILE_WRITES).labels(controller)
        self.conflicts = registry.counter(names.RECONCILE_CONFLICTS).labels(controller)
        self.echoes = registry.counter(names.ECHOES).labels(controller)
        self.mapping_failures = registry.counter(names.SOURCE_FAILURES).labels(controller)
        #: The last value of each counter that is read from statistics, and the controller instance it belongs to.
        self.counted: tuple[object, dict[str, int]] = (None, {})


class Measurements:
    """Keeps the metrics of one manager in a registry.

    ``on_record`` is called for every reconcile; ``collect`` right before the metrics are read.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._series: dict[str, _Series] = {}
        self._concurrency = registry.gauge(names.MAX_CONCURRENT_RECONCILES)
        self._active = registry.gauge(names.ACTIVE_WORKERS)
        self._depth = registry.gauge(names.QUEUE_DEPTH)
        self._unfinished = registry.gauge(names.UNFINISHED_WORK)
        self._longest = registry.gauge(names.LONGEST_RUNNING_PROCESSOR)
        self._failing = registry.gauge(names.FAILING_KEYS)
        self._looping = registry.gauge(names.LOOPING_KEYS)
        self._retrying = registry.gauge(names.SOURCE_RETRYING)
        self._leader = registry.gauge(names.LEADER_STATUS)
        self._cached = registry.gauge(names.CACHED_OBJECTS)
        self._synced = registry.gauge(names.CACHE_SYNCED)
        self._staleness = registry.gauge(names.CACHE_STALENESS)
        self._deletion = registry.gauge(names.OLDEST_DELETION)
        self._relists = registry.counter(names.CACHE_RELISTS)
        self._relisted: dict[str, int] = {}
        self._outside = registry.counter(names.SHARD_OUTSIDE_READS)
        self._read_outside: dict[str, int] = {}
        self._shown: set[str] = set()

    def on_record(self, controller: str, record: KeyRecord) -> None:
        """Count a reconcile."""
        series = self._series.get(controller) or self._add(controller)
        result = record.result
        series.results[result].value += 1
        series.seconds.observe(record.seconds)
        series.worked.observe(record.seconds)
        series.waited.observe(record.waited)
        if record.writes:
            series.writes.value += record.writes
        if result == "success":
            return
        if result in _RETRIED:
            series.retries.inc()
        if result == "conflict":
            series.conflicts.inc()
        elif result in {"error", "terminal_error"}:
            series.errors.inc()
            if result == "terminal_error":
                series.terminal.inc()
            if record.crashed:
                series.panics.inc()
            if record.timed_out:
                series.timeouts.inc()

    def collect(self, statistics: ManagerStatistics) -> None:
        """Update the gauges."""
        names_now = {controller.name for controller in statistics.controllers}
        for gone in self._shown - names_now:
            self._hide(gone)
        self._shown = names_now
        for controller in statistics.controllers:
            self._collect_controller(controller)
        self._collect_informers(statistics.informers, statistics.now)
        if statistics.leader is not None:
            self._leader.labels(statistics.leader.lease).set(1.0 if statistics.leader.leading else 0.0)
        if (shards := statistics.shards) is not None:
            self.registry.gauge(names.SHARD_GENERATION).labels().set(shards.generation)
            parts = self.registry.gauge(names.SHARD_PART)
            for state, part in shards.parts.items():
                parts.labels(state).set(part)
            for informer in statistics.informers:
                before = self._read_outside.get(informer.kind, 0)
                self._outside.labels(informer.kind).inc(max(0, informer.outside_reads - before))
                self._read_outside[informer.kind] = informer.outside_reads

    def forget(self, controller: str) -> None:
        """Drop the series of a controller that was removed for good."""
        self._hide(controller)
        self._shown.discard(controller)
        if self._series.pop(controller, None) is not None:
            for declared in (*names.CONTROLLER_COUNTERS, *names.QUEUE_COUNTERS):
                self.registry.counter(declared).remove_matching(controller=controller)
            for declared in names.CONTROLLER_HISTOGRAMS:
                self.registry.histogram(declared).remove_matching(controller=controller)

    def _add(self, controller: str) -> _Series:
        series = self._series[controller] = _Series(self.registry, controller)
        return series

    def _collect_controller(self, controller: ControllerStatistics) -> None:
        name, queue = controller.name, controller.queue
        self._concurrency.labels(name).set(controller.concurrency)
        self._active.labels(name).set(controller.active)
        self._failing.labels(name).set(queue.failing)
        self._looping.labels(name).set(controller.looping)
        self._unfinished.labels(name, name).set(queue.unfinished)
        self._longest.labels(name, name).set(queue.longest_running[0][1] if queue.longest_running else 0.0)
        self._retrying.labels(name).set(sum(source.retrying for source in controller.sources))
        # Drop priorities at which nothing waits any more, but always show the default priority.
        self._depth.remove_matching(controller=name)
        for priority, depth in ({0: 0} | queue.by_priority).items():
            self._depth.labels(name, name, str(priority)).set(depth)
        self._count(controller)

    def _count(self, controller: ControllerStatistics) -> None:
        """Add what was counted elsewhere since the last call. A recreated controller counts from 0."""
        series = self._series.get(controller.name) or self._add(controller.name)
        made, before = series.counted
        if made != controller.since:
            before = {}
        now = {
            "adds": controller.queue.adds,
            "echoes": controller.echoes,
            "mapping_failures": sum(source.failures for source in controller.sources),
        }
        for counter, value in now.items():
            count: Count = getattr(series, counter)
            count.inc(max(0, value - before.get(counter, 0)))
        series.counted = (controller.since, now)

    def _collect_informers(self, informers: Iterable[InformerStatistics], now: datetime) -> None:
        kinds = {(informer.kind,) for informer in informers}
        for gauge in (self._cached, self._synced, self._staleness, self._deletion):
            for values in gauge.series():
                if values not in kinds:
                    gauge.remove(*values)
        self._relisted = {kind: count for kind, count in self._relisted.items() if (kind,) in kinds}
        for informer in informers:
            self._cached.labels(informer.kind).set(informer.objects)
            self._synced.labels(informer.kind).set(1.0 if informer.synced else 0.0)
            self._staleness.labels(informer.kind).set(max((scope.staleness for scope in informer.scopes), default=0.0))
            # The deletionTimestamp of a Pod is the end of its grace period, and may lie in the future.
            age = (now - informer.oldest_deletion).total_seconds() if informer.oldest_deletion is not None else 0.0
            self._deletion.labels(informer.kind).set(max(age, 0.0))
            relists = sum(scope.relists for scope in informer.scopes)
            self._relists.labels(informer.kind).inc(max(0, relists - self._relisted.get(informer.kind, 0)))
            self._relisted[informer.kind] = relists

    def _hide(self, controller: str) -> None:
        """Drop the gauges of a controller that does not run. Its counters stay."""
        gauges: tuple[Gauge, ...] = (
            self._concurrency,
            self._active,
            self._depth,
            self._unfinished,
            self._longest,
            self._failing,
            self._looping,
            self._retrying,
        )
        for gauge in (*gauges, *(self.registry.gauge(declared) for declared in names.CONTROLLER_GAUGES)):
            gauge.remove_matching(controller=controller)
