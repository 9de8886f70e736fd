"""Metrics as text: in Prometheus' format, or in OpenMetrics if requested.

Guarantees: every line is well-formed, whatever a label value or a help text contains. Lines are sorted by name and
label values, so that two outputs can be compared.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from typing import Any

from steersman.telemetry.metrics import AnyMetric, Counter, Gauge, Histogram, PrometheusRegistry, Registry

PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TEXT = "application/openmetrics-text; version=1.0.0; charset=utf-8"


_END = b"# EOF\n"

_log = logging.getLogger("steersman.telemetry")


def expose(registry: Registry, *, accept: str = "") -> tuple[str, bytes]:
    """The content type and body of a response to this ``Accept`` header."""
    openmetrics = any(part.split(";")[0].strip() == "application/openmetrics-text" for part in accept.split(","))
    metrics = registry.collect()
    lines = [line for metric in metrics for line in _lines(metric, openmetrics=openmetrics)]
    body = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    shown = {metric.name for metric in metrics}
    for included in registry.included:
        body += _included_text(_Others(included, shown), openmetrics=openmetrics)
    return (OPENMETRICS_TEXT, body + _END) if openmetrics else (PROMETHEUS_TEXT, body)


class _Others:
    """The families of a registry of prometheus_client whose names are not shown yet."""

    def __init__(self, registry: PrometheusRegistry, shown: set[str]) -> None:
        self._registry = registry
        self._shown = shown

    def collect(self) -> Iterator[Any]:
        for family in self._registry.collect():
            names = {family.name, f"{family.name}_total"}
            if self._shown.isdisjoint(names):
                self._shown |= names
                yield family


def _included_text(others: _Others, *, openmetrics: bool) -> bytes:
    # Only a program that has the package can include one of its registries.
    import prometheus_client  # noqa: PLC0415 - see above
    import prometheus_client.openmetrics.exposition as openmetrics_exposition  # noqa: PLC0415 - see above

    writer: Any = openmetrics_exposition if openmetrics else prometheus_client
    try:
        return bytes(writer.generate_latest(others)).removesuffix(_END)
    except Exception:  # noqa: BLE001 - a collector is the program's own code
        _log.exception("cannot read the metrics of an included registry; they are missing")
        return b""


def _lines(metric: AnyMetric, *, openmetrics: bool) -> Iterator[str]:
    declared = metric.declared
    # OpenMetrics names the family, the older format the series
    family = declared.name.removesuffix("_total") if openmetrics and isinstance(metric, Counter) else declared.name
    kind = "counter" if isinstance(metric, Counter) else "gauge" if isinstance(metric, Gauge) else "histogram"
    text = declared.help.replace("\\", "\\\\").replace("\n", "\\n")
    if openmetrics:
        text = text.replace('"', '\\"')
    yield f"# HELP {family} {text}"
    yield f"# TYPE {family} {kind}"
    if isinstance(metric, Histogram):
        yield from _histogram_lines(metric)
        return
    for values, series in sorted(metric.series().items()):
        yield f"{declared.name}{_labels(declared.labels, values)} {_number(series.value)}"


def _histogram_lines(metric: Histogram) -> Iterator[str]:
    name, labels = metric.name, metric.declared.labels
    for values, series in sorted(metric.series().items()):
        count = 0
        for bound, count in series.cumulative():
            yield f"{name}_bucket{_labels((*labels, 'le'), (*values, _number(bound)))} {count}"
        yield f"{name}_sum{_labels(labels, values)} {_number(series.sum)}"
        yield f"{name}_count{_labels(labels, values)} {count}"


def _labels(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    if not names:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return repr(float(value))
