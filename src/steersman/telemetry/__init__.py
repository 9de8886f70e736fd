"""Logs, metrics and traces.

Guarantees:

- Logging is the standard library's; lines carry the fields of the work around them (`log_fields`).
- Metrics need no dependency, cost an addition, and never hold more series than their bound.
- The names in `steersman.telemetry.names` are those that Kubernetes controllers usually carry, so that existing
  dashboards read them.
- OpenTelemetry is used where it is installed and a provider is configured; it is imported when the first span is begun.
- Field values are written as their own text, so what hides itself, as the client's secrets do, stays hidden.
"""

from steersman.telemetry.exposition import OPENMETRICS_TEXT, PROMETHEUS_TEXT, expose
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
    "Gauge",
    "GaugeOf",
    "Histogram",
    "HistogramOf",
    "JsonFormatter",
    "Level",
    "Registry",
    "Span",
    "SpanLink",
    "TerminalFormatter",
    "begin_span",
    "configure_logging",
    "current_log_fields",
    "current_traceparent",
    "expose",
    "is_tracing",
    "link_to_current",
    "log_fields",
    "span",
]
