"""Values as Go prints them: the tables were printed by ``fmt`` and ``encoding/json``."""

from __future__ import annotations

import pytest

from steersman.golang import printed_json, printed_number, printed_value, quoted, quoted_in_full


@pytest.mark.parametrize(
    ("value", "formatted", "encoded"),
    [
        (0.0, "0", "0"),
        (-0.0, "-0", "-0"),
        (1.5, "1.5", "1.5"),
        (999999.0, "999999", "999999"),
        (1e6, "1e+06", "1000000"),
        (1234567.5, "1.2345675e+06", "1234567.5"),
        (9007199254740993.0, "9.007199254740992e+15", "9007199254740992"),
        (1e20, "1e+20", "100000000000000000000"),
        (1.5e21, "1.5e+21", "1.5e+21"),
        (0.0001, "0.0001", "0.0001"),
        (1e-5, "1e-05", "0.00001"),
        (1.25e-6, "1.25e-06", "0.00000125"),
        (1e-7, "1e-07", "1e-7"),
        (-1e-5, "-1e-05", "-0.00001"),
    ],
)
def test_floats(value, formatted, encoded):
    """Messages would show other numbers than kube-apiserver's."""
    assert printed_number(value) == formatted
    assert printed_value({"a": value}) == f"map[a:{formatted}]"
    assert printed_json([value]) == f"[{encoded}]"


def test_integers():
    """An integer beyond 64 bits is a float in Go."""
    assert printed_number(2**63 - 1) == "9223372036854775807"
    assert printed_number(2**63) == "9.223372036854776e+18"


def test_special_floats():
    assert [printed_number(float(name)) for name in ("inf", "-inf", "nan")] == ["+Inf", "-Inf", "NaN"]


def test_json():
    """Keys are sorted, and characters with a meaning in HTML are escaped."""
    value = {"b": "<a>\u2028é\t", "a": [None, True, 1.0]}
    assert printed_json(value) == '{"a":[null,true,1],"b":"\\u003ca\\u003e\\u2028é\\t"}'


def test_quoted():
    r"""As ``%q``: printable characters stay, others are escaped by the shortest of ``\n``, ``\x``, ``\u`` and ``\U``."""
    text = "\x7f\u0080\u00a0\u00ad\u200b\ue000\U000e0001é\t\"\\'"
    assert quoted(text) == r'"\x7f\u0080\u00a0\u00ad\u200b\ue000\U000e0001é\t\"\\' + "'\""


def test_a_long_text_is_cut():
    """A megabyte in a body must not become a megabyte in each message about it."""
    assert quoted("a" * 5000) == f'"{"a" * 1024}..."'
    assert quoted_in_full("a" * 5000) == f'"{"a" * 5000}"'
