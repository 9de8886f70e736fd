"""Counters, gauges and histograms, in a registry, printed as text for Prometheus.

Guarantees
- An increment is an addition: no lock, no allocation, no dependency. A metric belongs to the thread of one loop; reading
  it from another thread may miss the newest increment, but no more.
- A metric never exceeds its bound of series; further series are merged into one marked as overflow.
- A name has one meaning: requesting it again returns the same metric, requesting it with another shape is an error.
"""

from __future__ import annotations

import bisect
import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar, cast

import msgspec

_log = logging.getLogger("steersman.telemetry")

#: The label value of the series for overflow.
OVERFLOW = "_other_"

#: Seconds, for durations from a millisecond to a minute.
SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0)

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


class _Declared(msgspec.Struct, frozen=True):
    name: str
    help: str
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is not a valid metric name")
        for label in self.labels:
            if not _LABEL.fullmatch(label) or label == "le":
                raise ValueError(f"{label!r} is not a valid label of {self.name}")
        if len(set(self.labels)) < len(self.labels):
            raise ValueError(f"{self.name} has a duplicate label: {', '.join(self.labels)}")


class CounterOf(_Declared, frozen=True):
    """The name and help of a counter; its name ends in ``_total``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.name.endswith("_total"):
            raise ValueError(f"the name of a counter must end in _total (got {self.name!r})")


class GaugeOf(_Declared, frozen=True):
    """The name and help of a gauge."""


class HistogramOf(_Declared, frozen=True):
    """The name and help of a histogram; `buckets` are upper bounds, infinity is added."""

    buckets: tuple[float, ...] = SECONDS_BUCKETS

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.buckets or list(self.buckets) != sorted(set(self.buckets)) or not math.isfinite(self.buckets[-1]):
            raise ValueError(f"the buckets of {self.name} must be finite and increasing: {self.buckets}")


class Count:
    """One series of a counter."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        """Add a non-negative amount."""
        if amount < 0:
            raise ValueError(f"a counter can only grow (got {amount})")
        self.value += amount


class Level:
    """One series of a gauge."""

    __slots__ = ("_function", "_value")

    def __init__(self) -> None:
        self._value = 0.0
        self._function: Callable[[], float] | None = None

    @property
    def value(self) -> float:
        """The current value."""
        if self._function is None:
            return self._value
        try:
            return float(self._function())
        except Exception:  # noqa: BLE001 - not the reader's fault
            # one failing metric must not hide all others
            _log.exception("cannot compute a metric")
            return math.nan

    def set(self, value: float) -> None:
        """Set the value."""
        self._function = None
        self._value = value

    def inc(self, amount: float = 1.0) -> None:
        """Increase the value."""
        self._value += amount

    def dec(self, amount: float = 1.0) -> None:
        """Decrease the value."""
        self._value -= amount

    def set_function(self, function: Callable[[], float]) -> None:
        """Compute the value with a function at the time of reading."""
        self._function = function


class Distribution:
    """One series of a histogram."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        #: How many values are in each bucket; the last one has no upper bound.
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    @property
    def count(self) -> int:
        """How many values were observed."""
        return sum(self.counts)

    def observe(self, value: float) -> None:
        """Add one value."""
        self.counts[bisect.bisect_left(self._bounds, value)] += 1
        self.sum += value

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Upper bounds, and how many values are not above them."""
        total = 0
        for bound, count in zip((*self._bounds, math.inf), self.counts, strict=True):
            total += count
            yield bound, total


SeriesT = TypeVar("SeriesT", Count, Level, Distribution)
Values = tuple[str, ...]


class Metric(Generic[SeriesT]):
    """All series of one name, by the values of its labels."""

    def __init__(self, declared: _Declared, make: Callable[[], SeriesT], *, max_series: int) -> None:
        self.declared = declared
        self._make = make
        self._max_series = max_series
        self._series: dict[Values, SeriesT] = {}
        if not declared.labels:
            self._series[()] = make()

    @property
    def name(self) -> str:
        """The name of the metric."""
        return self.declared.name

    def labels(self, *values: str) -> SeriesT:
        """The series with these label values, in declaration order. Keep a reference if it is used often."""
        found = self._series.get(values)
        return found if found is not None else self._add(values)

    def _add(self, values: Values) -> SeriesT:
        if len(values) != len(self.declared.labels):
            wanted = ", ".join(self.declared.labels) or "none"
            raise ValueError(f"{self.name} needs values for its labels ({wanted}); got {len(values)} values")
        if len(self._series) >= self._max_series:
            values = (OVERFLOW,) * len(values)
        return self._series.setdefault(values, self._make())

    def remove(self, *values: str) -> None:
        """Remove a series, if it exists, after its subject is gone."""
        if self.declared.labels:
            self._series.pop(values, None)

    def remove_matching(self, **labels: str) -> None:
        """Remove all series with these label values."""
        wanted = [(self.declared.labels.index(label), value) for label, value in labels.items()]
        for values in [values for values in self._series if all(values[at] == value for at, value in wanted)]:
            self.remove(*values)

    def series(self) -> Mapping[Values, SeriesT]:
        """A copy of the series, by label values."""
        return dict(self._series)


class Counter(Metric[Count]):
    """A number that only grows."""

    def inc(self, amount: float = 1.0) -> None:
        """Add to the series of a counter without labels."""
        self.labels().inc(amount)


class Gauge(Metric[Level]):
    """A number that goes up and down."""

    def set(self, value: float) -> None:
        """Set the series of a gauge without labels."""
        self.labels().set(value)


class Histogram(Metric[Distribution]):
    """A distribution of values."""

    def observe(self, value: float) -> None:
        """Add a value to the series of a histogram without labels."""
        self.labels().observe(value)


AnyMetric = Counter | Gauge | Histogram


class PrometheusRegistry(Protocol):
    """A ``CollectorRegistry`` of prometheus_client, or anything else that its exposition functions accept."""

    def collect(self) -> Iterable[Any]:
        """The metric families of prometheus_client."""
        ...


class Registry:
    """The metrics of one program.

    `max_series` bounds each of its metrics. For numbers that are cheaper to compute than to maintain, add a collector:
    it is called before every reading and sets gauges.
    """

    def __init__(self, *, max_series: int = 2000) -> None:
        if max_series < 1:
            raise ValueError(f"max_series must be at least 1 (got {max_series})")
        self._max_series = max_series
        self._metrics: dict[str, AnyMetric] = {}
        self._collectors: dict[int, Callable[[], None]] = {}
        self._next_collector = 0
        #: Registries of prometheus_client whose metrics are shown after these.
        self.included: list[PrometheusRegistry] = []

    def counter(self, declared: CounterOf) -> Counter:
        """The counter of this name."""
        return self._get(declared, Counter, Count)

    def gauge(self, declared: GaugeOf) -> Gauge:
        """The gauge of this name."""
        return self._get(declared, Gauge, Level)

    def histogram(self, declared: HistogramOf) -> Histogram:
        """The histogram of this name."""
        buckets = declared.buckets
        return self._get(declared, Histogram, lambda: Distribution(buckets))

    def _get(self, declared: _Declared, cls: Callable[..., Any], make: Callable[[], object]) -> Any:
        found = self._metrics.get(declared.name)
        if found is None:
            found = self._metrics[declared.name] = cast("AnyMetric", cls(declared, make, max_series=self._max_series))
        elif found.declared != declared:
            raise ValueError(f"{declared.name} is already declared with another shape: {found.declared}")
        return found

    def add_collector(self, collect: Callable[[], None]) -> Callable[[], None]:
        """Call `collect` before every reading; returns a function that stops this."""
        number = self._next_collector
        self._next_collector += 1
        self._collectors[number] = collect

        def remove() -> None:
            self._collectors.pop(number, None)

        return remove

    def include(self, registry: PrometheusRegistry) -> None:
        """Show the metrics of a registry of prometheus_client too: ``manager.registry.include(REGISTRY)``.

        A metric whose name this registry has as well is left out.
        """
        self.included.append(registry)

    def collect(self) -> list[AnyMetric]:
        """All metrics, sorted by name, up to date."""
        for collect in list(self._collectors.values()):
            try:
                collect()
            except Exception:  # noqa: BLE001 - as above
                _log.exception("cannot compute some metrics; they keep their last values")
        return [self._metrics[name] for name in sorted(self._metrics)]
