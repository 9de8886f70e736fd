"""Durations and integers as Go parses them: the messages are those of ``time.ParseDuration`` and ``strconv``."""

from __future__ import annotations

import pytest

from steersman.golang import duration_nanoseconds, parse_int, parse_uint, printed_duration


@pytest.mark.parametrize(
    ("text", "nanoseconds", "printed"),
    [
        ("0", 0, "0s"),
        ("+1.5s", 1_500_000_000, "1.5s"),
        ("-1h30m", -5_400_000_000_000, "-1h30m0s"),
        (".5ms", 500_000, "500µs"),
        ("1m30s", 90_000_000_000, "1m30s"),
        ("1.5h", 5_400_000_000_000, "1h30m0s"),
        ("-2s", -2_000_000_000, "-2s"),
        ("250ms", 250_000_000, "250ms"),
        (".5s", 500_000_000, "500ms"),
        ("." + "0" * 99 + "s", 0, "0s"),
        ("1.s", 1_000_000_000, "1s"),
        ("1μs1ns", 1_001, "1.001µs"),
        ("0.3ns", 0, "0s"),
        ("-9223372036854775808ns", -(2**63), "-2562047h47m16.854775808s"),
        ("0" * 10_000 + "1s", 1_000_000_000, "1s"),
    ],
)
def test_durations(text, nanoseconds, printed):
    assert duration_nanoseconds(text) == nanoseconds
    assert printed_duration(nanoseconds) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        ("1x", 'time: unknown unit "x" in duration "1x"'),
        ("1s2", 'time: missing unit in duration "1s2"'),
        ("5", 'time: missing unit in duration "5"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1 s", 'time: unknown unit " s" in duration "1 s"'),
        ("é", r'time: invalid duration "\xc3\xa9"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("9" * 10_000 + "h", f'time: invalid duration "{"9" * 1024}..."'),
    ],
)
def test_invalid_durations(text, message):
    with pytest.raises(ValueError, match="time: ") as raised:
        duration_nanoseconds(text)
    assert str(raised.value) == message


def test_integers():
    """Python would also accept spaces, underscores and other digits."""
    assert [parse_int(text) for text in ("+7", "-0", str(-(2**63)), "0" * 5000 + "1")] == [7, 0, -(2**63), 1]
    assert parse_uint(str(2**64 - 1)) == 2**64 - 1


@pytest.mark.parametrize("text", ["", "1_0", " 1", "1 ", "٣", "+", "--1", "0x1"])
def test_invalid_integers(text):
    with pytest.raises(ValueError, match="invalid syntax"):
        parse_int(text)
    with pytest.raises(ValueError, match="invalid syntax"):
        parse_uint(text)


def test_integers_beyond_64_bits():
    with pytest.raises(ValueError, match=r'^strconv.Atoi: parsing "9223372036854775808": value out of range$'):
        parse_int(str(2**63), function="Atoi")
    with pytest.raises(ValueError, match=r"strconv.ParseUint: .* value out of range"):
        parse_uint("9" * 5000)
