"""Content negotiation, as kube-apiserver does it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from steersman.wire import (
    JSON,
    MediaType,
    parse_accept,
    parse_media_type,
)

# The first letter keeps out the token `q`; by a regular expression, texts take several times as long to generate.
tokens = st.text("azq09.+-", max_size=8).map("b".__add__)
media_types = st.builds(
    MediaType,
    st.tuples(tokens, tokens).map("/".join),
    st.lists(st.tuples(tokens, st.text(st.characters(min_codepoint=32, max_codepoint=126))), max_size=4).map(tuple),
    st.sampled_from([1.0, 0.5, 0.123]),
)


def printed(media_type):
    parameters = [(name, '"' + re.sub(r'(["\\])', r"\\\1", value) + '"') for name, value in media_type.parameters]
    return ";".join([media_type.name, *(f"{name}={value}" for name, value in parameters), f"q={media_type.quality}"])


@given(media_types)
def test_a_media_type_is_read_as_it_was_printed(media_type):
    assert parse_media_type(printed(media_type)) == media_type


@given(st.lists(media_types, min_size=1, max_size=6))
def test_an_accept_header_is_read_best_first(clauses):
    read = parse_accept(",".join(map(printed, clauses)))
    assert list(read) == sorted(clauses, key=lambda clause: -clause.quality)


def test_reading_an_accept_header_takes_linear_time():
    """A header of nothing but quotes and commas must not keep a server busy."""
    for text in ('",' * 4000, '"' * 8000, ',"\\' * 2500, "a/b;" * 2000):
        parse_accept(text)


@given(st.text())
def test_reading_an_accept_header_never_fails(text):
    parse_accept(text)


@pytest.mark.parametrize(
    "text", ["", "json", "/", "a/", "a/b/c", "a/b;=c", "a/b;c=d e", "a/b;q=2", "a/b;q=x", "a b/c", "a/b;c"]
)
def test_what_is_no_media_type_is_refused(text):
    with pytest.raises(ValueError, match=r"media type|parameter|quality"):
        parse_media_type(text)


def test_case_and_spaces_do_not_matter():
    assert parse_media_type(" Application/JSON ; Charset=utf-8 ;") == MediaType(JSON, (("charset", "utf-8"),))
    assert parse_media_type('application/json;a="b;c,\\"d"').parameter("a") == 'b;c,"d'
