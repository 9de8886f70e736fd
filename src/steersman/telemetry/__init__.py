"""Logs, metrics and traces.

Guarantees:

- Logging uses the standard library; a line carries the fields of its ``extra=``.
- Metrics need no dependency, cost an addition, and never exceed their bound of series.
- The names in `steersman.telemetry.names` are those common among Kubernetes controllers, so that existing dashboards
  work.
- A cause that fails many keys is logged with one traceback and a count (`FailureLog`).
- OpenTelemetry is used if it is installed and a provider is configured; it is imported for the first span.
- One log record is one line, and a traceback below it is indented: no text from elsewhere can forge a line, or control
  the terminal (`terminal_text`).
- Field values are written with their own `str`, so values that hide themselves, like the client's secrets, stay hidden.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.telemetry.failure_log import (
    FailureLog as FailureLog,
    LineLimit as LineLimit,
    Mention as Mention,
    error_words as error_words,
)
from steersman.telemetry.logs import (
    JsonFormatter as JsonFormatter,
    MessageFormatter as MessageFormatter,
    TerminalFormatter as TerminalFormatter,
    configure_logging as configure_logging,
)
from steersman.telemetry.metrics import (
    OVERFLOW as OVERFLOW,
    Count as Count,
    Counter as Counter,
    CounterOf as CounterOf,
    Distribution as Distribution,
    Gauge as Gauge,
    GaugeOf as GaugeOf,
    Histogram as Histogram,
    HistogramOf as HistogramOf,
    Level as Level,
    PrometheusRegistry as PrometheusRegistry,
    Registry as Registry,
)
from steersman.telemetry.process import add_process_metrics as add_process_metrics
from steersman.telemetry.spans import (
    NO_SPAN as NO_SPAN,
    AttributeValue as AttributeValue,
    Span as Span,
    SpanLink as SpanLink,
    begin_span as begin_span,
    current_traceparent as current_traceparent,
    is_tracing as is_tracing,
    span as span,
)
from steersman.telemetry.terminal_text import (
    indented as indented,
    painted as painted,
    program_text as program_text,
    rendered as rendered,
    visible as visible,
)
from steersman.telemetry.tracebacks import (
    StackText as StackText,
    passed_user_code as passed_user_code,
    user_frames as user_frames,
)

# Imported on first use: a program without a port for metrics does not need it.
if TYPE_CHECKING:
    from steersman.telemetry.exposition import (
        OPENMETRICS_TEXT as OPENMETRICS_TEXT,
        PROMETHEUS_TEXT as PROMETHEUS_TEXT,
        expose as expose,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {"steersman.telemetry.exposition": ["OPENMETRICS_TEXT", "PROMETHEUS_TEXT", "expose"]}
    )

__all__ = [
    "Counter",
    "CounterOf",
    "Gauge",
    "GaugeOf",
    "Histogram",
    "HistogramOf",
    "Registry",
    "configure_logging",
    "expose",
]
