"""Logs, metrics and traces.

Guarantees:

- Logging uses the standard library; lines carry the fields of the surrounding work (`log_fields`).
- Metrics need no dependency, cost an addition, and never exceed their bound of series.
- The names in `steersman.telemetry.names` are those common among Kubernetes controllers, so that existing dashboards
  work.
- A cause that fails many keys is logged with one traceback and a count (`FailureLog`).
- OpenTelemetry is used if it is installed and a provider is configured; it is imported for the first span.
- Field values are written with their own `str`, so values that hide themselves, like the client's secrets, stay hidden.
"""

from steersman.telemetry.exposition import OPENMETRICS_TEXT, PROMETHEUS_TEXT, expose
from steersman.telemetry.failure_log import FailureLog, LineLimit, Mention, error_words
from steersman.telemetry.logs import JsonFormatter, TerminalFormatter, configure_logging, current_log_fields, log_fields
from steersman.telemetry.metrics import (
    OVERFLOW,
    Count,
    Counter,
    CounterOf,
    Distribution,
    Gauge,
    GaugeOf,
    Histogram,
    HistogramOf,
    Level,
    Registry,
)
from steersman.telemetry.tracebacks import passed_user_code, user_frames
from steersman.telemetry.tracing import (
    NO_SPAN,
    Span,
    SpanLink,
    begin_span,
    current_traceparent,
    is_tracing,
    link_to_current,
    span,
)

__all__ = [
    "NO_SPAN",
    "OPENMETRICS_TEXT",
    "OVERFLOW",
    "PROMETHEUS_TEXT",
    "Count",
    "Counter",
    "CounterOf",
    "Distribution",
    "FailureLog",
    "Gauge",
    "GaugeOf",
    "Histogram",
    "HistogramOf",
    "JsonFormatter",
    "Level",
    "LineLimit",
    "Mention",
    "Registry",
    "Span",
    "SpanLink",
    "TerminalFormatter",
    "begin_span",
    "configure_logging",
    "current_log_fields",
    "current_traceparent",
    "error_words",
    "expose",
    "is_tracing",
    "link_to_current",
    "log_fields",
    "passed_user_code",
    "span",
    "user_frames",
]
