"""Failures of exchanges, in words."""

from __future__ import annotations

import aiohttp
import pytest

from steersman.transport.failures import explain


def explained(message: str) -> str:
    error = aiohttp.http.HttpProcessingError(code=400, message=message)
    return str(explain(error, tried="get pods", server="https://a", sent=True))


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Bad status line: b'secret'", "Bad status line"),
        ('Bad status line:\n\n  "secret"', "Bad status line"),
        ("invalid header ('secret', 1)", "invalid header ("),
        ("don't panic", "don't panic"),
    ],
)
def test_what_could_not_be_read_is_not_shown(message, shown):
    assert explained(message).endswith(f"did not respond with HTTP: {shown}")


def test_a_message_of_spaces_is_read_in_one_pass():
    """The square of this length would take minutes."""
    assert explained("a" + " :" * 100_000 + "z").endswith("...")
