"""Metrics of the server, with kube-apiserver's names.

Guarantees
- A request costs a few additions.
- A client cannot create series with arbitrary labels: the server does not count requests for resources that it does not
  serve.
- A number of objects or seats is shown only while its resource is served or its priority level exists.
- A metric has kube-apiserver's labels, buckets and help text; metrics that this server cannot measure are absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from steersman.apiserver.feature_gates import FeatureGates
from steersman.apiserver.request import RequestInfo, ServerRequest
from steersman.telemetry import CounterOf, Gauge, GaugeOf, HistogramOf, Registry, add_process_metrics
from steersman.wire import APPLY_PATCH, HttpRequest

_Labels = TypeVar("_Labels", bound=tuple[str, ...])

_REQUEST: Final = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
_COMPONENT: Final = "apiserver"
#: Subresources of Pods whose requests count as connections.
_CONNECTED: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})
_DRY_RUNS: Final[dict[tuple[str, ...], str]] = {(): "", ("All",): "All"}
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_METHODS: Final = {name: name for name in ("GET", "POST", "PUT", "PATCH", "DELETE")} | {"HEAD": "GET"}
_TOTAL: Final = CounterOf(
    "apiserver_request_total",
    "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, "
    "and HTTP response code.",
    (*_REQUEST, "code"),
)
_DURATION: Final = HistogramOf(
    "apiserver_request_duration_seconds",
    "Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope "
    "and component.",
    _REQUEST,
    (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60),
)
_IN_FLIGHT: Final = GaugeOf(
    "apiserver_current_inflight_requests",
    "Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
    ("request_kind",),
)
_LONG_RUNNING: Final = GaugeOf(
    "apiserver_longrunning_requests",
    "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and "
    "component. Not all requests are tracked this way.",
    ("verb", "group", "version", "resource", "subresource", "scope", "component"),
)
_EVENTS: Final = CounterOf(
    "apiserver_watch_events_total", "Number of events sent in watch clients", ("group", "version", "resource")
)
_SHARDS: Final = GaugeOf(
    "apiserver_watch_shards_total",
    "Number of active sharded watch connections broken by resource type.",
    ("group", "resource"),
)
_LEFT_OUT: Final = CounterOf(
    "apiserver_watch_filtered_events_total",
    "Counter of events filtered out by shard selector during watch dispatch, broken by resource type.",
    ("group", "resource"),
)
_FEATURES: Final = GaugeOf(
    "kubernetes_feature_enabled",
    "This metric records the data about the stage and enablement of a k8s feature.",
    ("name", "stage"),
)
_OBJECTS: Final = GaugeOf(
    "apiserver_resource_objects",
    "Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.",
    ("group", "resource"),
)
_SEATS: Final = GaugeOf(
    "apiserver_flowcontrol_nominal_limit_seats",
    "Nominal number of execution seats configured for each priority level",
    ("priority_level",),
)
_ADMISSION: Final = HistogramOf(
    "apiserver_admission_step_admission_duration_seconds",
    "Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type "
    "(validate or admit).",
    ("type", "operation", "rejected"),
    (0.005, 0.025, 0.1, 0.5, 1.0, 2.5),
)


class ServerMetrics:
    """The metrics of one server; ``registry`` prints them."""

    def __init__(self, features: FeatureGates) -> None:
        self.registry = Registry(max_series=10_000)
        self._total = self.registry.counter(_TOTAL)
        self._duration = self.registry.histogram(_DURATION)
        in_flight = self.registry.gauge(_IN_FLIGHT)
        self._reads, self._writes = in_flight.labels("readOnly"), in_flight.labels("mutating")
        self._long_running = self.registry.gauge(_LONG_RUNNING)
        self._events = self.registry.counter(_EVENTS)
        #: kube-apiserver has these two only with the feature.
        shards = features.sharded_list_and_watch
        self._shards = self.registry.gauge(_SHARDS) if shards else None
        self._left_out = self.registry.counter(_LEFT_OUT) if shards else None
        enabled = self.registry.gauge(_FEATURES)
        for labels, is_on in features.listed().items():
            enabled.labels(*labels).set(is_on)
        self._admission = self.registry.histogram(_ADMISSION)
        self._objects = self.registry.gauge(_OBJECTS)
        self._seats = self.registry.gauge(_SEATS)
        add_process_metrics(self.registry)

    def begin(self, wire: HttpRequest) -> None:
        """Count a request in flight."""
        (self._reads if wire.method in _READING else self._writes).inc()

    def end(self, request: ServerRequest, status: int, seconds: float, *, is_known: bool) -> None:
        """Count a response. ``is_known`` says whether the request was for a served resource or a known path."""
        wire, info = request.wire, request.info
        (self._reads if wire.method in _READING else self._writes).dec()
        if not is_known:
            return
        verb = _verb(wire, info)
        subresource = info.subresource if info.is_resource else wire.path
        values = (
            verb,
            _dry_run(wire) if wire.query else "",
            info.group,
            info.version,
            info.resource,
            subresource,
            _scope(info),
            _COMPONENT,
        )
        self._total.labels(*values, str(status)).inc()
        if verb != "WATCH":
            # The response to a watch is only its beginning.
            self._duration.labels(*values).observe(seconds)

    def watching(self, info: RequestInfo, change: int, *, is_sharded: bool) -> None:
        """Count a watch that begins (1) or ends (-1)."""
        if is_sharded and self._shards is not None:
            self._shards.labels(info.group, info.resource).inc(change)
        values = ("WATCH", info.group, info.version, info.resource, info.subresource, _scope(info), _COMPONENT)
        self._long_running.labels(*values).inc(change)

    def sent(self, info: RequestInfo, events: int) -> None:
        """Count events sent to a watch."""
        self._events.labels(info.group, info.version, info.resource).inc(events)

    def left_out(self, info: RequestInfo, events: int) -> None:
        """Count states of changed objects that a watch does not get because they are in another shard."""
        if self._left_out is not None:
            self._left_out.labels(info.group, info.resource).inc(events)

    def admitted(self, step: str, operation: str, seconds: float, *, rejected: bool) -> None:
        """Count a step of admission: "admit" or "validate"."""
        self._admission.labels(step, operation, "true" if rejected else "false").observe(seconds)

    def stored(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Set the number of stored objects, by group and resource. Resources that are no longer served have none."""
        _replace(self._objects, counts)

    def seats(self, counts: Mapping[str, int]) -> None:
        """Set the number of nominal seats, by priority level."""
        _replace(self._seats, {(level,): count for level, count in counts.items()})


def _replace(gauge: Gauge, counts: Mapping[_Labels, int]) -> None:
    """Set all series of a gauge, and remove those without a count: their subjects are gone."""
    for values in gauge.series():
        if values not in counts:
            gauge.remove(*values)
    for values, count in counts.items():
        gauge.labels(*values).set(count)


def _verb(wire: HttpRequest, info: RequestInfo) -> str:
    if info.subresource in _CONNECTED and (info.group, info.resource) == ("", "pods"):
        return "CONNECT"
    match info.verb:
        case "list" | "watch":
            # As in kube-apiserver, a list with a single name counts as a get.
            return "GET" if info.verb == "list" and info.name else info.verb.upper()
        case "patch" if wire.header("Content-Type") == APPLY_PATCH:
            return "APPLY"
        case _:
            return _METHODS.get(wire.method, "other")


def _scope(info: RequestInfo) -> str:
    if info.name or info.verb == "create":
        return "resource"
    if info.namespace:
        return "namespace"
    return "cluster" if info.is_resource else ""


def _dry_run(wire: HttpRequest) -> str:
    given = tuple(sorted({value for name, value in wire.query if name == "dryRun"}))
    return _DRY_RUNS.get(given, "invalid")
