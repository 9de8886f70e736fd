"""Answers that mean failure, from servers and proxies."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from steersman.errors import (
    ApiError,
    Conflict,
    Expired,
    GatewayTimeout,
    InternalError,
    NotFound,
    ProtocolError,
    ServiceUnavailable,
    StatusError,
    TooManyRequests,
    Unauthorized,
)
from steersman.wire import (
    HttpRequest,
    WatchFrame,
    describe_request,
    error_from_frame,
    error_from_response,
    parse_warnings,
    print_warning,
    raise_for_failure,
)

CONFLICT = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"changed","reason":"Conflict","code":409}'


def test_a_status_body_becomes_its_error():
    error = error_from_response(409, {}, CONFLICT, tried="update a")
    assert isinstance(error, Conflict)
    assert error.status.message == "changed"
    assert str(error).startswith("update a: changed (409 Conflict)")


def test_the_code_is_taken_from_the_answer_when_the_body_has_none():
    body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"x"}'
    error = error_from_response(404, {}, body, tried="t")
    assert isinstance(error, NotFound)
    assert error.code == 404


@pytest.mark.parametrize(
    ("code", "headers", "body", "expected", "words"),
    [
        (
            502,
            {"Content-Type": "text/html"},
            b"<html><head><title>502 Bad\nGateway</title>",
            InternalError,
            "502 Bad Gateway",
        ),
        (503, {}, b"", ServiceUnavailable, "an empty body"),
        (504, {"Content-Type": "text/plain"}, b"upstream request timeout", GatewayTimeout, "upstream request timeout"),
        (404, {"Content-Type": "text/plain; charset=utf-8"}, b"404 page not found\n", NotFound, "404 page not found"),
        (401, {"Content-Type": "text/plain"}, b"\x00\x1b[31mred", Unauthorized, "[31mred"),
        (599, {"Content-Type": "image/png"}, b"\x89PNG", InternalError, "4 bytes of image/png"),
        (418, {}, b"?", StatusError, "unnamed type"),
    ],
)
def test_an_answer_that_is_no_status_is_named_as_such(code, headers, body, expected, words):
    error = error_from_response(code, headers, body, tried="get x")
    assert type(error) is expected
    assert words in str(error)
    assert "\x1b" not in str(error)
    assert "\x00" not in str(error)
    assert len(str(error)) < 600


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", ""])
def test_a_json_body_is_never_shown(content_type):
    """A proxy that turns a Secret into an error must not put it into our logs."""
    body = b'{"kind":"Secret","data":{"password":"aHVudGVyMg=="}}'
    for code in (300, 403, 500):
        error = error_from_response(code, {"Content-Type": content_type}, body, tried="get secrets")
        assert "aHVudGVyMg" not in str(error)
        assert "aHVudGVyMg" not in repr(error)


def test_a_redirect_is_not_the_kubernetes_api():
    error = error_from_response(302, {"Location": "https://login.example.com/?token=s3cret"}, b"", tried="list pods")
    assert isinstance(error, ProtocolError)
    assert "s3cret" not in str(error)


@pytest.mark.parametrize(
    ("header", "expected"),
    [("7", 7.0), (" 7 ", 7.0), ("0", None), ("soon", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("-1", None)],
)
def test_retry_after_is_read_from_the_header(header, expected):
    error = error_from_response(429, {"Retry-After": header}, b"", tried="t")
    assert isinstance(error, TooManyRequests)
    assert error.retry_after == expected


def test_retry_after_of_the_body_wins():
    body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"details":{"name":"a","retryAfterSeconds":3}}'
    error = error_from_response(429, {"Retry-After": "9"}, body, tried="t")
    assert isinstance(error, StatusError)
    assert error.retry_after == 3


def test_a_success_that_is_a_failure_is_raised():
    """Some servers answer 200 and put the failure into the body."""
    with pytest.raises(Conflict, match="update a"):
        raise_for_failure(CONFLICT, tried="update a")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"kind":"Pod","apiVersion":"v1","status":{"phase":"Failure"}}',
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}',
        b'{"kind":"Status","apiVersion":"example.com/v1","status":"Failure"}',
        b'{"kind":"Status"',
    ],
)
def test_a_success_is_left_alone(body):
    raise_for_failure(body, tried="t")


@given(st.integers(300, 999), st.binary(), st.text())
def test_any_answer_is_an_error_of_the_api(code, body, content_type):
    error = error_from_response(code, {"Content-Type": content_type}, body, tried="t")
    assert isinstance(error, ApiError)
    assert str(error).startswith("t: ")


def test_an_error_frame_becomes_its_error():
    body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old","reason":"Expired","code":410}'
    assert isinstance(error_from_frame(WatchFrame("ERROR", body), tried="watch pods"), Expired)
    assert isinstance(error_from_frame(WatchFrame("ERROR", b'{"kind":"Pod"}'), tried="watch pods"), ProtocolError)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (HttpRequest("GET", "/api/v1/pods"), "list pods"),
        (HttpRequest("GET", "/api/v1/pods", (("watch", "1"),)), "watch pods"),
        (HttpRequest("GET", "/api/v1/pods", (("watch", "false"),)), "list pods"),
        (HttpRequest("GET", "/api/v1/namespaces/a/pods/b/log"), 'get log of pods "b" in namespace "a"'),
        (HttpRequest("POST", "/apis/apps/v1/namespaces/a/deployments"), 'create deployments.apps in namespace "a"'),
        (HttpRequest("DELETE", "/api/v1/nodes/n"), 'delete nodes "n"'),
        (HttpRequest("DELETE", "/api/v1/namespaces/a/pods"), 'delete all of pods in namespace "a"'),
        (
            HttpRequest("PATCH", "/api/v1/nodes/n", (), (("content-type", "application/apply-patch+yaml"),)),
            'apply nodes "n"',
        ),
        (
            HttpRequest("PATCH", "/api/v1/nodes/n", (), (("Content-Type", "application/merge-patch+json"),)),
            'patch nodes "n"',
        ),
        (HttpRequest("GET", "/version", (("token", "s3cret"),)), "GET /version"),
    ],
)
def test_a_request_is_described_in_words(request_, expected):
    assert describe_request(request_) == expected


@given(st.text())
def test_a_warning_is_read_back_as_it_was_printed(text):
    shown = "".join(char if char.isprintable() else " " for char in text)
    assert parse_warnings(print_warning(text)) == [shown]


def test_warnings_are_read_in_every_form():
    assert parse_warnings('299 - "unknown field \\"dat\\""') == ['unknown field "dat"']
    assert parse_warnings('299 - "a, b", 299 kube "c" "Wed, 21 Oct 2026 07:28:00 GMT",299 - "d"') == ["a, b", "c", "d"]
    assert parse_warnings(['299 - "a"', '199 - "other"', "nonsense", '299 - "b"']) == ["a", "b"]
    assert parse_warnings("") == []


def test_a_header_that_is_no_warning_is_read_in_one_pass():
    """A hostile server sends headers of spaces and digits; the square of their length would take minutes."""
    for unit in (" ", " ,", "299 ", "299 - "):
        assert parse_warnings(unit * (200_000 // len(unit))) == []
