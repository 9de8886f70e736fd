"""The metrics common among Kubernetes controllers, declared once, so that existing dashboards work.

Names, labels and meanings are those of controller-runtime and client-go; some help texts are plainer. Metrics without a
counterpart there start with ``steersman_``.
"""

from __future__ import annotations

from steersman.telemetry.metrics import CounterOf, GaugeOf, HistogramOf

_CONTROLLER = ("controller",)
_QUEUE = ("name", "controller")
_REQUEST = ("verb", "host")

#: From a hundred microseconds to a quarter of an hour, the usual range for work queues.
QUEUE_BUCKETS = (1e-4, 1e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 900.0)
SIZE_BUCKETS = (64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0)

# --- reconciling -----------------------------------------------------------------------------------------------------

RECONCILE_TOTAL = CounterOf(
    "controller_runtime_reconcile_total",
    "Reconciles by result: success, error, requeue or requeue_after.",
    (*_CONTROLLER, "result"),
)
RECONCILE_ERRORS = CounterOf("controller_runtime_reconcile_errors_total", "Reconciles that failed.", _CONTROLLER)
TERMINAL_RECONCILE_ERRORS = CounterOf(
    "controller_runtime_terminal_reconcile_errors_total", "Reconciles that failed and are not retried.", _CONTROLLER
)
RECONCILE_PANICS = CounterOf(
    "controller_runtime_reconcile_panics_total", "Reconciles that ended in an unexpected exception.", _CONTROLLER
)
RECONCILE_TIMEOUTS = CounterOf(
    "controller_runtime_reconcile_timeouts_total", "Reconciles that took longer than allowed.", _CONTROLLER
)
RECONCILE_TIME = HistogramOf("controller_runtime_reconcile_time_seconds", "How long a reconcile takes.", _CONTROLLER)
MAX_CONCURRENT_RECONCILES = GaugeOf(
    "controller_runtime_max_concurrent_reconciles", "How many reconciles may run at once.", _CONTROLLER
)
ACTIVE_WORKERS = GaugeOf("controller_runtime_active_workers", "How many reconciles are running.", _CONTROLLER)

# --- queues ----------------------------------------------------------------------------------------------------------

QUEUE_DEPTH = GaugeOf("workqueue_depth", "Keys that are waiting.", (*_QUEUE, "priority"))
QUEUE_ADDS = CounterOf("workqueue_adds_total", "Keys added to the queue.", _QUEUE)
QUEUE_DURATION = HistogramOf(
    "workqueue_queue_duration_seconds", "How long a key waits before its reconcile.", _QUEUE, QUEUE_BUCKETS
)
WORK_DURATION = HistogramOf("workqueue_work_duration_seconds", "How long a reconcile takes.", _QUEUE, QUEUE_BUCKETS)
UNFINISHED_WORK = GaugeOf(
    "workqueue_unfinished_work_seconds", "How long all running reconciles have taken so far, in total.", _QUEUE
)
LONGEST_RUNNING_PROCESSOR = GaugeOf(
    "workqueue_longest_running_processor_seconds", "How long the longest running reconcile has taken so far.", _QUEUE
)
QUEUE_RETRIES = CounterOf("workqueue_retries_total", "Keys requeued after a failure.", _QUEUE)

# --- requests to the API server --------------------------------------------------------------------------------------

CLIENT_REQUESTS = CounterOf(
    "rest_client_requests_total", "Requests to the API server by HTTP status.", ("code", "method", "host")
)
CLIENT_REQUEST_DURATION = HistogramOf(
    "rest_client_request_duration_seconds", "How long a request to the API server takes.", _REQUEST
)
CLIENT_REQUEST_SIZE = HistogramOf(
    "rest_client_request_size_bytes", "The size of requests to the API server.", _REQUEST, SIZE_BUCKETS
)
CLIENT_RESPONSE_SIZE = HistogramOf(
    "rest_client_response_size_bytes", "The size of responses of the API server.", _REQUEST, SIZE_BUCKETS
)
CLIENT_RATE_LIMITER_DURATION = HistogramOf(
    "rest_client_rate_limiter_duration_seconds", "How long a request waits for the client's own rate limit.", _REQUEST
)
CLIENT_RETRIES = CounterOf("rest_client_request_retries_total", "Requests that were retried.", ("code", *_REQUEST))

# --- the program -----------------------------------------------------------------------------------------------------

LEADER_STATUS = GaugeOf("leader_election_master_status", "1 while this program is the leader, else 0.", ("name",))
SHARD_GENERATION = GaugeOf("steersman_shard_generation", "The newest assignment of shards that this replica has seen.")
SHARD_PART = GaugeOf(
    "steersman_shard_part",
    "Part of all hashes that this replica works on, begins or drains; the working parts of all replicas add up to 1.",
    ("state",),
)
SHARD_OUTSIDE_READS = CounterOf(
    "steersman_shard_outside_reads_total",
    "Reads that went to the server: other replicas have their namespaces, or nothing refers to their objects.",
    ("kind",),
)
CERTIFICATE_READS = CounterOf("certwatcher_read_certificate_total", "Certificates re-read after a change.")
CERTIFICATE_READ_ERRORS = CounterOf(
    "certwatcher_read_certificate_errors_total", "Changed certificates that could not be read."
)

# --- webhooks --------------------------------------------------------------------------------------------------------

WEBHOOK_REQUESTS = CounterOf(
    "controller_runtime_webhook_requests_total", "Reviews by HTTP status.", ("webhook", "code")
)
WEBHOOK_LATENCY = HistogramOf("controller_runtime_webhook_latency_seconds", "How long a review takes.", ("webhook",))

# --- metrics of Steersman alone ---------------------------------------------------------------------------------------

RECONCILE_WRITES = CounterOf(
    "steersman_reconcile_writes_total", "Writes made by reconciles; a converged cluster causes none.", _CONTROLLER
)
RECONCILE_CONFLICTS = CounterOf(
    "steersman_reconcile_conflicts_total", "Reconciles that had a conflict and are retried.", _CONTROLLER
)
ECHOES = CounterOf(
    "steersman_echoes_total", "Events that echoed a reconcile's own write and were not queued.", _CONTROLLER
)
FAILING_KEYS = GaugeOf("steersman_failing_keys", "Keys whose last reconcile failed.", _CONTROLLER)
LOOPING_KEYS = GaugeOf("steersman_looping_keys", "Keys throttled because every reconcile writes.", _CONTROLLER)
SOURCE_FAILURES = CounterOf("steersman_source_failures_total", "Failures of predicates and mappers.", _CONTROLLER)
SOURCE_RETRYING = GaugeOf("steersman_source_retrying", "Objects whose mapper failed and is retried.", _CONTROLLER)
CACHED_OBJECTS = GaugeOf("steersman_cached_objects", "Objects in the cache.", ("kind",))
CACHE_STALENESS = GaugeOf(
    "steersman_cache_staleness_seconds",
    "How long the cache of a kind may have missed changes; 0 while its watch is healthy.",
    ("kind",),
)
CACHE_RELISTS = CounterOf("steersman_cache_relists_total", "Complete lists of a kind after the first.", ("kind",))
OLDEST_DELETION = GaugeOf(
    "steersman_oldest_deletion_seconds",
    "How long the oldest deletion of an object that the program manages has lasted; 0 without one.",
    ("kind",),
)
CACHE_SYNCED = GaugeOf("steersman_cache_synced", "1 when the cache of a kind is complete, else 0.", ("kind",))

# --- patterns ---------------------------------------------------------------------------------------------------------

STATE_DURATION = HistogramOf(
    "steersman_state_duration_seconds",
    "How long a state takes: its method, and applying its children.",
    (*_CONTROLLER, "state"),
)
CONVERGENCE = HistogramOf(
    "steersman_convergence_seconds",
    "How long an object takes to become ready after a change to its desired state is first seen.",
    _CONTROLLER,
    (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1800.0, 3600.0),
)
OBJECTS = GaugeOf(
    "steersman_objects",
    "Objects by the status and the reason of their Ready condition.",
    (*_CONTROLLER, "ready", "reason"),
)
SUSPENDED_OBJECTS = GaugeOf("steersman_suspended_objects", "Objects that a label suspends.", _CONTROLLER)

# --- by controller: to remove together with one -----------------------------------------------------------------------

CONTROLLER_COUNTERS = (
    RECONCILE_TOTAL,
    RECONCILE_ERRORS,
    TERMINAL_RECONCILE_ERRORS,
    RECONCILE_PANICS,
    RECONCILE_TIMEOUTS,
    RECONCILE_WRITES,
    RECONCILE_CONFLICTS,
    ECHOES,
    SOURCE_FAILURES,
)
QUEUE_COUNTERS = (QUEUE_ADDS, QUEUE_RETRIES)
CONTROLLER_HISTOGRAMS = (RECONCILE_TIME, QUEUE_DURATION, WORK_DURATION, STATE_DURATION, CONVERGENCE)
CONTROLLER_GAUGES = (OBJECTS, SUSPENDED_OBJECTS)
