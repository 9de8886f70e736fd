"""Which events are written, which are only counted, and which are dropped."""

from __future__ import annotations

from hypothesis import given, strategies as st

from steersman.client.events.series import BURST, CAPACITY, REFILL_SECONDS, SeriesLog


def test_the_first_is_created_the_second_begins_a_series_the_rest_is_counted() -> None:
    log: SeriesLog[str] = SeriesLog()
    assert [log.observe("web", "BackOff", "x", float(at))[0] for at in range(5)] == [
        "create",
        "write",
        "count",
        "count",
        "count",
    ]


def test_a_series_is_written_again_after_half_an_hour_and_when_it_is_over() -> None:
    log: SeriesLog[str] = SeriesLog()
    now = 0.0
    written = []
    while now < 3600:
        log.observe("web", "BackOff", "x", now)
        written += [(now, series.count) for series in log.take_due(now)]
        now += 60.0
    assert written == [(1860.0, 32)]
    assert [series.count for series in log.take_due(now + 50.0)] == []
    assert [series.count for series in log.take_due(now + 300.0)] == [60]
    assert len(log) == 0
    assert log.observe("web", "BackOff", "x", now + 301.0)[0] == "create"


def test_one_object_gets_a_burst_and_then_one_event_every_five_minutes() -> None:
    log: SeriesLog[str] = SeriesLog()
    verdicts = [log.observe("web", f"reason-{number}", "x", 0.0)[0] for number in range(BURST + 5)]
    assert verdicts == ["create"] * BURST + ["drop"] * 5
    assert log.observe("other", "reason", "x", 0.0)[0] == "create"
    assert log.observe("web", "later", "x", REFILL_SECONDS - 1)[0] == "drop"
    assert log.observe("web", "later", "x", REFILL_SECONDS)[0] == "create"
    assert log.observe("web", "even later", "x", REFILL_SECONDS)[0] == "drop"


def test_a_series_without_allowance_is_counted_and_told_at_its_end() -> None:
    log: SeriesLog[str] = SeriesLog()
    for number in range(BURST):
        log.observe("web", f"reason-{number}", "x", 0.0)
    assert log.observe("web", "reason-0", "x", 1.0)[0] == "count"
    assert [series.count for series in log.take_due(2.0, all_of_them=True)] == [2]
    assert list(log.take_due(2.0, all_of_them=True)) == []


def test_memory_is_bounded() -> None:
    log: SeriesLog[str] = SeriesLog()
    for number in range(CAPACITY + 100):
        log.observe(number, number, "x", 0.0)
    assert len(log) == CAPACITY
    assert len(log._allowance._full_at) == CAPACITY


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0.0, 400.0)), max_size=200))
def test_every_occurrence_is_sent_or_dropped(steps) -> None:
    """The counts that were last written of all series add up to everything that was not dropped."""
    log: SeriesLog[None] = SeriesLog()
    now = 0.0
    dropped = 0
    # by the series itself, not by its identity: one that is over could give its place in memory to another
    told: list[list] = []

    def tell(series) -> None:
        entry = next((entry for entry in told if entry[0] is series), None)
        if entry is None:
            told.append([series, series.count])
        else:
            entry[1] = series.count

    for reason, seconds in steps:
        now += seconds
        for series in log.take_due(now):
            tell(series)
        verdict, series = log.observe("web", reason, None, now)
        dropped += verdict == "drop"
        if verdict in {"create", "write"}:
            tell(series)
    for series in log.take_due(now, all_of_them=True):
        tell(series)
    assert sum(count for _, count in told) + dropped == len(steps)
