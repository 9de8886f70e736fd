"""The error tree: which failure becomes which exception, and what a person reads."""

from __future__ import annotations

import copy
import pickle

import pytest

from steersman import errors
from steersman.errors import (
    ApiError,
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    StatusError,
    TooManyRequests,
    error_from_status,
)
from steersman.errors.status import (
    ApiStatus,
    StatusCause,
    StatusDetails,
    StatusMetadata,
    decode_status,
    encode_status,
)


def failure(code: int, reason: str = "", message: str = "no", **details) -> ApiStatus:
    return ApiStatus(
        status="Failure",
        code=code,
        reason=reason,
        message=message,
        details=StatusDetails(**details) if details else None,
    )


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.MethodNotAllowed),
        (406, "NotAcceptable", errors.NotAcceptable),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Gone", errors.Gone),
        (410, "Expired", errors.Expired),
        (422, "Invalid", errors.Invalid),
        (413, "RequestEntityTooLarge", errors.RequestEntityTooLarge),
        (415, "UnsupportedMediaType", errors.UnsupportedMediaType),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.InternalError),
        (503, "ServiceUnavailable", errors.ServiceUnavailable),
        (500, "ServerTimeout", errors.ServerTimeout),
        (504, "Timeout", errors.GatewayTimeout),
    ],
)
def test_the_reason_chooses_the_class(code, reason, expected):
    assert type(error_from_status(failure(code, reason), tried="x")) is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (404, errors.NotFound),
        (409, errors.Conflict),
        (410, errors.Gone),
        (429, errors.TooManyRequests),
        (500, errors.InternalError),
        (502, errors.InternalError),
        (504, errors.GatewayTimeout),
        (418, errors.StatusError),
        (0, errors.StatusError),
    ],
)
@pytest.mark.parametrize("reason", ["", "SomethingNew"])
def test_without_a_known_reason_the_code_chooses(code, expected, reason):
    """A proxy, or a newer server, may answer with a reason we have never heard of."""
    assert type(error_from_status(failure(code, reason), tried="x")) is expected


def test_an_expired_list_is_gone_and_offers_its_token():
    status = ApiStatus(status="Failure", code=410, reason="Expired", metadata=StatusMetadata(continue_="tok"))
    error = error_from_status(status, tried="list pods")
    assert isinstance(error, errors.Gone)
    assert isinstance(error, Expired)
    assert error.continue_ == "tok"
    assert "List again" in str(error)


def test_a_message_says_what_was_tried_and_what_the_server_said():
    error = error_from_status(
        failure(404, "NotFound", 'configmaps "a" not found', name="a", kind="configmaps"),
        tried='get configmaps "a"',
    )
    assert str(error) == 'get configmaps "a": configmaps "a" not found (404 NotFound)'


def test_an_unknown_path_suggests_the_crd():
    """The engine answers a missing resource with empty details and a missing object with filled ones."""
    missing = error_from_status(
        ApiStatus(status="Failure", code=404, reason="NotFound", message="no", details=StatusDetails()), tried="x"
    )
    assert isinstance(missing, NotFound)
    assert missing.is_unknown_path
    assert "CRD" in str(missing)


def test_several_causes_get_a_line_each_and_are_not_said_twice():
    error = error_from_status(
        failure(
            422,
            "Invalid",
            'ConfigMap "A_" is invalid: [metadata.name: Invalid value: "A_", data[x y]: Invalid value: "x y"]',
            causes=(
                StatusCause(reason="FieldValueInvalid", message='Invalid value: "A_"', field="metadata.name"),
                StatusCause(reason="FieldValueInvalid", message='Invalid value: "x y"', field="data[x y]"),
            ),
        ),
        tried="create",
    )
    assert isinstance(error, Invalid)
    assert str(error).splitlines() == [
        'create: ConfigMap "A_" is invalid (422 Invalid)',
        '  - metadata.name: Invalid value: "A_"',
        '  - data[x y]: Invalid value: "x y"',
        "Correct the fields named above.",
    ]


def test_a_single_cause_stays_in_the_sentence():
    error = error_from_status(
        failure(
            422, "Invalid", 'X "a" is invalid: spec.n: too big', causes=(StatusCause(message="m", field="spec.n"),)
        ),
        tried="create",
    )
    assert "spec.n: too big" in str(error)


def test_an_apply_conflict_names_managers_and_fields_and_the_way_out():
    """The person who meets it must learn who owns what, and that force takes it over."""
    error = error_from_status(
        failure(
            409,
            "Conflict",
            "Apply failed with 2 conflicts: ...",
            causes=(
                StatusCause(reason="FieldManagerConflict", message='conflict with "curl" using v1', field=".data.x"),
                StatusCause(
                    reason="FieldManagerConflict",
                    message='conflict with "a \\"b\\"" with subresource "status" using v1 at 2026-01-01T00:00:00Z',
                    field=".status",
                ),
            ),
        ),
        tried="apply",
    )
    assert isinstance(error, Conflict)
    assert error.field_conflicts == (("curl", ".data.x"), ('a "b"', ".status"))
    text = str(error)
    assert '.data.x is owned by "curl"' in text
    assert "force=True" in text
    assert "retry_on_conflict" not in text


def test_a_stale_write_points_to_retry():
    error = error_from_status(failure(409, "Conflict", "the object has been modified"), tried="update")
    assert isinstance(error, Conflict)
    assert error.field_conflicts == ()
    assert "retry_on_conflict" in str(error)


def test_a_terminating_namespace_is_not_blamed_on_rbac():
    error = error_from_status(
        failure(403, "Forbidden", "unable to create new content", causes=(StatusCause(reason="NamespaceTerminating"),)),
        tried="create",
    )
    assert isinstance(error, Forbidden)
    assert "being deleted" in str(error)
    assert "RBAC" not in str(error)


def test_retry_after_is_none_when_the_server_does_not_say():
    assert error_from_status(failure(429, "TooManyRequests"), tried="x").retry_after is None
    error = error_from_status(failure(429, "TooManyRequests", retry_after_seconds=7), tried="x")
    assert isinstance(error, TooManyRequests)
    assert error.retry_after == 7.0
    assert "after 7 s" in str(error)


def test_a_huge_message_is_cut():
    """A proxy's error page must not fill the log."""
    assert len(str(error_from_status(failure(500, "", "x" * 10_000_000), tried="t"))) < 10_000


def every_error() -> list[ApiError]:
    found: list[ApiError] = []
    pending: list[type[ApiError]] = [errors.ApiError]
    while pending:
        cls = pending.pop()
        pending += [sub for sub in cls.__subclasses__() if sub.__module__ == errors.__name__]
        if issubclass(cls, StatusError):
            found.append(cls(failure(409, "Conflict", name="a"), tried="update a"))
        elif cls in {ConnectionFailed, DeadlineExceeded}:
            found += [cls("message", sent=True), cls("message", sent=False)]
        else:
            found.append(cls("message"))
    return found


@pytest.mark.parametrize("error", every_error(), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("through", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_errors_survive_pickle_and_copy(error, through):
    """An error raised in a worker process must arrive whole."""
    again = through(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_a_status_prints_as_the_engine_prints_it():
    raw = (
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps \\"zz\\" not found",'
        b'"reason":"NotFound","details":{"name":"zz","kind":"configmaps"},"code":404}'
    )
    status = decode_status(raw)
    assert status is not None
    assert encode_status(status) == raw


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff\xfe",
        b"404 page not found",
        b'{"kind":"Pod","apiVersion":"v1"}',
        b'{"kind":"Status","apiVersion":"example.com/v1"}',
        b'{"kind":"Status","apiVersion":"v1","code":"x"}',
        b'{"a":' * 100_000,
        b'{"kind":"Status","apiVersion":"v1","status":"Failure"',
    ],
)
def test_what_is_not_a_status_is_none(raw):
    assert decode_status(raw) is None


@pytest.mark.parametrize(
    ("asked", "waits"),
    [(999_999_999, 600.0), (2**62, 600.0), (10**400, 600.0), (-5, None), (0, None), (7, 7.0)],
    ids=["years", "ages", "no float", "negative", "zero", "seconds"],
)
def test_no_server_makes_a_program_wait_for_ever(asked, waits):
    """Caches and controllers wait as long as this says."""
    assert error_from_status(failure(429, "TooManyRequests", retry_after_seconds=asked), tried="x").retry_after == waits
