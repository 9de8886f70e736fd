"""Requests: what stands in the request line, and what is kept out of sight."""

from __future__ import annotations

import urllib.parse

from hypothesis import given, strategies as st

from steersman.wire import HttpRequest, parse_query, print_query

queries = st.lists(st.tuples(st.text(min_size=1), st.text())).map(tuple)


@given(queries)
def test_a_query_is_read_back_as_it_was_printed(query):
    assert parse_query(print_query(query)) == query


@given(queries)
def test_a_query_is_encoded_as_the_standard_library_encodes_it(query):
    """The fast path for plain text must not differ."""
    assert print_query(query) == urllib.parse.urlencode(query)


def test_the_target_is_path_and_query():
    request = HttpRequest("GET", "/api/v1/pods", (("labelSelector", "app in (a,b)"), ("limit", "5")))
    assert request.target == "/api/v1/pods?labelSelector=app+in+%28a%2Cb%29&limit=5"
    assert HttpRequest("GET", "/version").target == "/version"


def test_a_query_without_values_is_read():
    assert parse_query("watch&&limit=") == (("watch", ""), ("limit", ""))


def test_headers_are_found_in_any_case():
    assert HttpRequest("GET", "/", headers=(("Retry-After", "3"),)).header("retry-after") == "3"
    assert HttpRequest("GET", "/", headers=(("accept", "a"), ("Accept", "b"))).header("Accept") == "a"
    assert HttpRequest("GET", "/").header("x") is None


def test_a_request_shows_no_secret():
    """A request ends up in logs and tracebacks."""
    request = HttpRequest("POST", "/x", headers=(("Authorization", "Bearer s3cret"),), body=b'{"password":"hunter2"}')
    for text in (repr(request), str(request), f"{request}"):
        assert "s3cret" not in text
        assert "hunter2" not in text
        assert "Authorization" in text
