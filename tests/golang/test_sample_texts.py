"""Texts for an expression: each matches, short ones come first, and a length can be asked for."""

from __future__ import annotations

from itertools import islice

import pytest

from steersman.golang.regexp import expression, matching_texts

PATTERNS = [
    "^[a-z]+$",
    "^[1-9][0-9]*[smh]$",
    r"^[0-9]+(\.[0-9]+)?$",
    "^(north|south)-[0-9]{2}$",
    r"^\d{3}-\d{4}$",
    "^v?(0|[1-9][0-9]*)$",
    "[^a-z]",
    "^(?i)yes$",
    r"\bword\b",
    "a{3,5}b*",
    "^[[:upper:]]{2}$",
    "",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_text_matches(pattern: str) -> None:
    """An example that its own pattern rejects would be refused by the server."""
    texts = list(islice(matching_texts(pattern), 8))
    assert texts
    assert all(expression(pattern).matches(text) for text in texts)


def test_plain_and_short_texts_come_first() -> None:
    """A reader sees these values in objects and stories."""
    assert list(islice(matching_texts("^[a-z0-9]+-[0-9]$"), 3)) == ["a-1", "b-1", "c-1"]
    assert list(islice(matching_texts("^(north|south)$"), 2)) == ["north", "south"]


def test_the_shortest_length_is_kept() -> None:
    """A pattern says nothing about minLength; repetitions fill the text."""
    assert all(len(text) >= 9 for text in islice(matching_texts("^[a-z]+$", shortest=9), 3))
    assert list(matching_texts("^[a-z]{2}$", shortest=3)) == []


def test_an_expression_that_matches_nothing_has_no_text() -> None:
    """The search ends, although no text exists."""
    assert list(matching_texts(r"a\bb")) == []


def test_an_invalid_expression_is_refused() -> None:
    """In Go's words, as everywhere."""
    with pytest.raises(ValueError, match="missing closing"):
        next(matching_texts("(a"))
