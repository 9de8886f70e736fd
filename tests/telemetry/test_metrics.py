"""Metrics: what is counted, how it is bounded, and that the text is what Prometheus reads."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, strategies as st

from steersman.telemetry import (
    OPENMETRICS_TEXT,
    OVERFLOW,
    PROMETHEUS_TEXT,
    CounterOf,
    GaugeOf,
    HistogramOf,
    Registry,
    expose,
    names,
)

SAILS = CounterOf("sails_total", "Sails that were set.", ("ship",))
DEPTH = GaugeOf("depth_metres", "Water under the keel.")
WATCH = HistogramOf("watch_seconds", "How long a watch is.", ("ship",), (1.0, 5.0))


def text(registry: Registry, accept: str = "") -> str:
    return expose(registry, accept=accept)[1].decode()


def test_the_text_is_exact() -> None:
    registry = Registry()
    registry.counter(SAILS).labels("argo").inc()
    registry.counter(SAILS).labels("argo").inc(1.5)
    registry.gauge(DEPTH).set(-3)
    watch = registry.histogram(WATCH).labels("argo")
    for value in (0.5, 1.0, 4.0, 9.0):
        watch.observe(value)
    assert expose(registry)[0] == PROMETHEUS_TEXT
    assert text(registry) == (
        "# HELP depth_metres Water under the keel.\n"
        "# TYPE depth_metres gauge\n"
        "depth_metres -3.0\n"
        "# HELP sails_total Sails that were set.\n"
        "# TYPE sails_total counter\n"
        'sails_total{ship="argo"} 2.5\n'
        "# HELP watch_seconds How long a watch is.\n"
        "# TYPE watch_seconds histogram\n"
        'watch_seconds_bucket{ship="argo",le="1.0"} 2\n'
        'watch_seconds_bucket{ship="argo",le="5.0"} 3\n'
        'watch_seconds_bucket{ship="argo",le="+Inf"} 4\n'
        'watch_seconds_sum{ship="argo"} 14.5\n'
        'watch_seconds_count{ship="argo"} 4\n'
    )


def test_who_asks_for_openmetrics_gets_it() -> None:
    """The family of a counter is named without its suffix, and the text has an end."""
    registry = Registry()
    registry.counter(SAILS).labels("argo").inc()
    kind, body = expose(registry, accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert kind == OPENMETRICS_TEXT
    assert body.decode() == (
        '# HELP sails Sails that were set.\n# TYPE sails counter\nsails_total{ship="argo"} 1.0\n# EOF\n'
    )


_LINE = re.compile(r'sails_total\{ship="((?:[^"\\\n]|\\[\\"n])*)"\} 1\.0')


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_label_value_survives(value: str) -> None:
    registry = Registry()
    registry.counter(SAILS).labels(value).inc()
    shown = text(registry).split("\n", 2)[2].removesuffix("\n")
    written = _LINE.fullmatch(shown)[1]
    assert re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], written) == value


def test_series_are_bounded() -> None:
    """A label that takes any value cannot fill the memory: the rest is counted together."""
    registry = Registry(max_series=3)
    sails = registry.counter(SAILS)
    for number in range(10):
        sails.labels(f"ship-{number}").inc()
    assert len(sails.series()) == 4
    assert sails.labels(OVERFLOW).value == 7
    assert sails.labels("ship-0").value == 1


def test_a_series_can_be_forgotten() -> None:
    registry = Registry()
    depth = registry.gauge(names.QUEUE_DEPTH)
    depth.labels("site", "site", "0").set(1)
    depth.labels("site", "site", "-100").set(2)
    depth.labels("other", "other", "0").set(3)
    depth.remove_matching(controller="site")
    assert list(depth.series()) == [("other", "other", "0")]
    depth.remove("other", "other", "0")
    depth.remove("never", "was", "0")
    assert list(depth.series()) == []


def test_one_name_has_one_shape() -> None:
    registry = Registry()
    assert registry.counter(SAILS) is registry.counter(SAILS)
    with pytest.raises(ValueError, match="already declared"):
        registry.counter(CounterOf("sails_total", "Something else.", ("ship",)))
    with pytest.raises(ValueError, match="already declared"):
        registry.gauge(GaugeOf("sails_total", "Sails that were set.", ("ship",)))


@pytest.mark.parametrize(
    "declare",
    [
        lambda: CounterOf("sails", "No suffix."),
        lambda: GaugeOf("no spaces", "Help."),
        lambda: GaugeOf("depth", "Help.", ("__reserved",)),
        lambda: GaugeOf("depth", "Help.", ("ship", "ship")),
        lambda: HistogramOf("watch", "Help.", ("le",)),
        lambda: HistogramOf("watch", "Help.", (), (5.0, 1.0)),
        lambda: HistogramOf("watch", "Help.", (), (1.0, math.inf)),
        lambda: HistogramOf("watch", "Help.", (), ()),
    ],
)
def test_a_declaration_that_prometheus_would_refuse_is_refused(declare) -> None:
    with pytest.raises(ValueError, match=r"."):
        declare()


def test_wrong_use_is_refused() -> None:
    registry = Registry()
    with pytest.raises(ValueError, match="can only grow"):
        registry.counter(SAILS).labels("argo").inc(-1)
    with pytest.raises(ValueError, match="needs values for its labels"):
        registry.counter(SAILS).inc()


def test_numbers_that_are_computed_when_they_are_read() -> None:
    registry = Registry()
    held = [1, 2, 3]
    registry.gauge(DEPTH).labels().set_function(lambda: len(held))
    assert "depth_metres 3.0\n" in text(registry)
    held.pop()
    assert "depth_metres 2.0\n" in text(registry)


def test_a_collector_sets_gauges_until_it_is_removed() -> None:
    registry = Registry()
    depth = registry.gauge(DEPTH)
    remove = registry.add_collector(lambda: depth.set(depth.labels().value + 1))
    assert "depth_metres 1.0\n" in text(registry)
    remove()
    assert "depth_metres 1.0\n" in text(registry)


def test_what_cannot_be_computed_costs_nothing_else(caplog) -> None:
    registry = Registry()
    registry.counter(SAILS).labels("argo").inc()
    registry.gauge(DEPTH).labels().set_function(lambda: 1 / 0)
    registry.add_collector(lambda: {}[0])
    assert 'sails_total{ship="argo"} 1.0\n' in text(registry)
    assert "depth_metres NaN\n" in text(registry)
    assert "ZeroDivisionError" in caplog.text
    assert "KeyError" in caplog.text


def test_the_usual_names_are_declared_once() -> None:
    """All of them can live in one registry, and dashboards find the labels that they group by."""
    registry = Registry()
    declared = [value for name, value in vars(names).items() if name.isupper() and not isinstance(value, tuple)]
    for one in declared:
        match one:
            case CounterOf():
                registry.counter(one)
            case GaugeOf():
                registry.gauge(one)
            case HistogramOf():
                registry.histogram(one)
    assert len(registry.collect()) == len(declared) == 45
    assert names.RECONCILE_TOTAL.labels == ("controller", "result")
    assert names.QUEUE_DEPTH.labels == ("name", "controller", "priority")
    assert names.CLIENT_REQUESTS.labels == ("code", "method", "host")
    assert names.LEADER_STATUS.name == "leader_election_master_status"


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text"])
def test_metrics_of_prometheus_client_are_shown_too(accept: str) -> None:
    """A library that counts with prometheus_client is seen by the same scrape, and no name is there twice."""
    import prometheus_client
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
    from prometheus_client.parser import text_string_to_metric_families

    theirs = prometheus_client.CollectorRegistry()
    prometheus_client.Counter("pages", "Pages.", ["theme"], registry=theirs).labels("sea").inc(3)
    prometheus_client.Histogram("size", "Sizes.", registry=theirs).observe(0.2)
    prometheus_client.Gauge("ours", "Not ours.", registry=theirs).set(5)
    registry = Registry()
    registry.gauge(GaugeOf("ours", "Ours.")).labels().set(1)
    registry.include(theirs)
    registry.include(theirs)

    _, body = expose(registry, accept=accept)
    families = list((openmetrics_families if accept else text_string_to_metric_families)(body.decode()))
    assert len({family.name for family in families}) == len(families)
    samples = {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}
    assert samples["pages_total", "sea"] == 3
    assert samples["size_count",] == 1
    assert samples["ours",] == 1


def test_a_broken_collector_of_prometheus_client_hides_no_other_metric(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def collect(self) -> list[object]:
            raise RuntimeError("no")

    registry = Registry()
    registry.gauge(GaugeOf("ours", "Ours.")).labels().set(1)
    registry.include(Broken())
    assert b"ours 1.0" in expose(registry)[1]
    assert "cannot read the metrics of an included registry" in caplog.text
