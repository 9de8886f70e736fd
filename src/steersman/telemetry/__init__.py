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

from steersman.telemetry.exposition import (
    OPENMETRICS_TEXT as OPENMETRICS_TEXT,
    PROMETHEUS_TEXT as PROMETHEUS_TEXT,
    expose as expose,
)
from steersman.telemetry.failure_log import (
    FailureLog as FailureLog,
    LineLimit as LineLimit,
    Mention as Mention,
    error_words as error_words,
)
from steersman.telemetry.logs import (
    JsonFormatter as JsonFormatter,
    TerminalFormatter as TerminalFormatter,
    configure_logging as configure_logging,
    current_log_fields as current_log_fields,
    log_fields as log_fields,
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
from steersman.telemetry.spans import (
    NO_SPAN as NO_SPAN,
    Span as Span,
    SpanLink as SpanLink,
    begin_span as begin_span,
    current_traceparent as current_traceparent,
    is_tracing as is_tracing,
    link_to_current as link_to_current,
    span as span,
)
from steersman.telemetry.tracebacks import passed_user_code as passed_user_code, user_frames as user_frames
