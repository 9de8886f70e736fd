"""Times and durations as Kubernetes writes them."""

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from steersman.objects.time import MicroTime, format_duration, format_time, parse_duration, parse_time

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_times_print_in_utc_with_second_precision() -> None:
    assert format_time(NOON) == "2026-01-31T12:00:00Z"
    assert format_time(NOON.replace(microsecond=999_999)) == "2026-01-31T12:00:00Z"
    assert format_time(NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))) == "2026-01-31T12:00:00Z"
    assert format_time(datetime(33, 4, 3, tzinfo=UTC)) == "0033-04-03T00:00:00Z"


def test_micro_times_print_exactly_six_digits() -> None:
    assert format_time(MicroTime.of(NOON)) == "2026-01-31T12:00:00.000000Z"
    assert str(MicroTime.parse("2026-01-31T12:00:00.5+01:00")) == "2026-01-31T11:00:00.500000Z"
    assert str(MicroTime.of(NOON) + timedelta(microseconds=1)) == "2026-01-31T12:00:00.000001Z"


def test_a_micro_time_is_a_datetime_and_survives_copies() -> None:
    moment = MicroTime.of(NOON)
    assert moment == NOON
    for twin in (copy.copy(moment), copy.deepcopy(moment), pickle.loads(pickle.dumps(moment))):
        assert type(twin) is MicroTime
        assert twin == moment


def test_a_naive_time_is_refused_with_advice() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        format_time(datetime(2026, 1, 31))  # noqa: DTZ001 - naive on purpose
    assert str(MicroTime(2026, 1, 31)) == "2026-01-31 00:00:00"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T12:00:00Z", NOON),
        ("2026-01-31T12:00:00.123456789Z", NOON.replace(microsecond=123456)),
        ("2026-01-31T12:00:00.1Z", NOON.replace(microsecond=100000)),
        ("2026-01-31T13:30:00+01:30", NOON),
        ("2026-01-31T07:00:00-05:00", NOON),
    ],
)
def test_fractions_of_any_length_and_offsets_are_read(text: str, moment: datetime) -> None:
    assert parse_time(text) == moment
    assert parse_time(text).tzinfo is UTC


@pytest.mark.parametrize(
    "garbage",
    [
        "",
        "yesterday",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-02-30T12:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T12:00:60Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00+24:00",
        "2026-01-31T12:00:00+00:99",
        "0000-01-31T12:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "٢026-01-31T12:00:00Z",
    ],
)
def test_garbage_is_refused_by_name(garbage: str) -> None:
    with pytest.raises(ValueError, match="not an RFC 3339 time"):
        parse_time(garbage)


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1), timezones=st.timezones()))  # noqa: DTZ001
def test_printing_and_reading_agree(moment: datetime) -> None:
    utc = moment.astimezone(UTC)
    assert parse_time(str(MicroTime.of(moment))) == utc
    assert parse_time(format_time(moment)) == utc.replace(microsecond=0)


@pytest.mark.parametrize(
    ("text", "duration", "printed"),
    [
        ("0", timedelta(0), "0s"),
        ("1h30m", timedelta(minutes=90), "1h30m0s"),
        ("1.5s", timedelta(seconds=1.5), "1.5s"),
        ("90s", timedelta(seconds=90), "1m30s"),
        ("300ms", timedelta(milliseconds=300), "300ms"),
        ("1500us", timedelta(microseconds=1500), "1.5ms"),
        ("7µs", timedelta(microseconds=7), "7µs"),
        ("-2m", timedelta(minutes=-2), "-2m0s"),
        ("+.5h", timedelta(minutes=30), "30m0s"),
        ("1999ns", timedelta(microseconds=1), "1µs"),
        ("100h", timedelta(hours=100), "100h0m0s"),
    ],
)
def test_durations(text: str, duration: timedelta, printed: str) -> None:
    assert parse_duration(text) == duration
    assert format_duration(duration) == printed


@pytest.mark.parametrize("garbage", ["", "-", "1", "h", "1x", "1h 30m", ".s", "1h-30m", "99999999h", "1" * 300 + "s"])
def test_garbage_durations_are_refused(garbage: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(garbage)


@given(st.timedeltas(min_value=timedelta(days=-100_000), max_value=timedelta(days=100_000)))
def test_durations_round_trip(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration
