"""Everything that can go wrong between a program and a Kubernetes API server, as one tree of exceptions.

Guarantees
- Every error of the API is an `ApiError`; one that a server answered with is a `StatusError` and carries its `Status`.
- A message says what was tried, what the server said, and what to do next where that is known.
- Errors can be pickled and copied, and hold neither headers nor credentials nor the bodies of requests and answers.
"""

import re
from typing import NamedTuple

from steersman.objects.status import Status, StatusCause


class ApiError(Exception):
    """The root: whatever the API, or the way to it, can answer with."""


# --- what a server answered ------------------------------------------------------------------------------------------


class StatusError(ApiError):
    """The server refused: `status` holds its answer, `tried` what was asked of it. Catch a subclass where one fits."""

    #: What to do next; empty where the server's own message is all there is to say.
    hint: str = ""

    def __init__(self, status: Status, *, tried: str = "") -> None:
        # the status alone is the argument: pickle and copy rebuild the error from it and restore `tried` after
        super().__init__(status)
        self.status = status
        self.tried = tried

    @property
    def code(self) -> int:
        """The HTTP status code."""
        return self.status.code

    @property
    def reason(self) -> str:
        """Kubernetes' machine-readable reason, such as "AlreadyExists"; may be empty."""
        return self.status.reason

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        """The single causes, one for each field, where the server named them."""
        return self.status.causes

    @property
    def retry_after(self) -> float | None:
        """Seconds the server asks to wait before the next try; None when it does not say."""
        return float(self.status.retry_after_seconds) or None

    def __str__(self) -> str:
        said, listed = self._said()
        label = " ".join(part for part in (str(self.code or ""), self.reason) if part)
        first = f"{self.tried}: {said}" if self.tried else said
        lines = [f"{first} ({label})" if label else first, *(f"  - {line}" for line in listed)]
        if hint := self._hint():
            lines.append(hint)
        return "\n".join(lines)

    def _said(self) -> tuple[str, list[str]]:
        """Return the server's sentence, and the causes that deserve a line of their own."""
        message = _shortened(self.status.message.strip()) or "the server gave no reason"
        # an unexpected answer of an unknown server may come as a page of text
        if len(message) > _MESSAGE_MAX:
            message = message[:_MESSAGE_MAX] + "..."
        lines = [_cause_line(cause) for cause in self.causes]
        return (message, lines if len(lines) > 1 else [])

    def _hint(self) -> str:
        return self.hint


_MESSAGE_MAX = 8192


# A server that refuses a patch repeats the whole object, which may be a Secret.
_WHOLE_OBJECT = re.compile(r'Invalid value: "\{.*\}":', re.DOTALL)


def _shortened(message: str) -> str:
    return _WHOLE_OBJECT.sub("Invalid value:", message)


def _cause_line(cause: StatusCause) -> str:
    text = _shortened(cause.message or cause.reason)
    return f"{cause.field}: {text}" if cause.field else text


class BadRequest(StatusError):
    """The request cannot be understood (400)."""


class Unauthorized(StatusError):
    """The server does not know who is asking (401)."""

    hint = "The credentials were missing, wrong or expired: check the user of the kubeconfig, or log in again."


class Forbidden(StatusError):
    """The server knows who is asking, and the answer is no (403): RBAC, admission or a terminating namespace."""

    def _hint(self) -> str:
        if any(cause.reason == "NamespaceTerminating" for cause in self.causes):
            return "The namespace is being deleted: nothing can be created in it any more."
        if " cannot " in self.status.message:
            return "The message names the missing RBAC verb, resource and group: bind a role that allows them to this user."
        return ""


class NotFound(StatusError):
    """There is no such object, or the server does not serve such a path (404)."""

    @property
    def is_unknown_path(self) -> bool:
        """Whether the server lacks the resource itself, not one object of it: a CRD may be missing."""
        details = self.status.details
        return details is None or not (details.name or details.kind)

    def _hint(self) -> str:
        if self.is_unknown_path:
            return (
                "The server does not serve this resource: is its CRD applied, and are group, version and plural right?"
            )
        return ""


class MethodNotAllowed(StatusError):
    """The resource has no such verb (405)."""


class NotAcceptable(StatusError):
    """The server cannot answer in the form asked for (406)."""


class FieldConflict(NamedTuple):
    """A field that an apply wanted to set and another field manager owns."""

    manager: str
    field: str


class Conflict(StatusError):
    """The object changed since it was read, or another field manager owns a field (409)."""

    @property
    def field_conflicts(self) -> tuple[FieldConflict, ...]:
        """Who owns which field, if this is the conflict of a server-side apply; empty otherwise."""
        return tuple(
            FieldConflict(_manager_in(cause.message), cause.field)
            for cause in self.causes
            if cause.reason == "FieldManagerConflict"
        )

    def _said(self) -> tuple[str, list[str]]:
        conflicts = self.field_conflicts
        if not conflicts:
            return super()._said()
        count = len({field for _, field in conflicts})
        fields = "1 field belongs" if count == 1 else f"{count} fields belong"
        owned = [f'{field} is owned by "{manager}"' for manager, field in conflicts]
        return (f"{fields} to another field manager", owned)

    def _hint(self) -> str:
        if self.field_conflicts:
            return "Leave these fields out of what is applied, or apply with force=True to take them over."
        return "Read the object again, change the new version and retry; retry_on_conflict does this."


_MANAGER = re.compile(r'conflict with ("(?:[^"\\]|\\.)*")')


def _manager_in(message: str) -> str:
    """Take the manager's name out of `conflict with "name" using v1`; the whole message if it reads otherwise."""
    found = _MANAGER.match(message)
    return re.sub(r"\\(.)", r"\1", found[1][1:-1]) if found else message


class AlreadyExists(StatusError):
    """An object of that name is there already (409)."""

    hint = "Choose another name or generate_name, or use apply or create_or_update if the object may exist."


class Gone(StatusError):
    """What was asked for existed once (410)."""


class Expired(Gone):
    """The resourceVersion or the continue token is older than what the server remembers (410)."""

    hint = "List again from the start, and watch from the new resourceVersion."

    @property
    def continue_(self) -> str:
        """A token to go on listing with, at the price of a list that is no longer one moment; empty if not given."""
        return self.status.metadata.continue_


class Invalid(StatusError):
    """The object breaks rules of its kind (422); `causes` has one entry for each field."""

    def _said(self) -> tuple[str, list[str]]:
        message, lines = super()._said()
        subject, found, _ = message.partition(" is invalid: ")
        # the sentence repeats every cause in one line: with a list below it, its subject says enough
        return (f"{subject} is invalid", lines) if lines and found else (message, lines)

    def _hint(self) -> str:
        return "Correct the fields named above." if any(cause.field for cause in self.causes) else ""


class RequestEntityTooLarge(StatusError):
    """The request is larger than the server takes (413)."""

    hint = "Split the object: the store holds about 1.5 MB for each object, all fields and managedFields together."


class UnsupportedMediaType(StatusError):
    """The server does not read this kind of body here (415)."""

    hint = "Custom resources take no strategic merge patch: send a MergePatch, or apply."


class TooManyRequests(StatusError):
    """The server sheds load, or an eviction must wait (429); it did not process the request."""

    def _hint(self) -> str:
        return f"Try again after {self.retry_after:g} s." if self.retry_after else ""


class InternalError(StatusError):
    """The server failed (500, and other 5xx without a class of their own)."""


class ServiceUnavailable(StatusError):
    """The server, or a part it needs, is not there at the moment (503)."""


class ServerTimeout(StatusError):
    """The server could not do it in time and asks to try again (500)."""


class GatewayTimeout(StatusError):
    """The request ran out of time on its way or in the server (504, reason Timeout); a write may have happened."""


_BY_REASON: dict[str, type[StatusError]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "MethodNotAllowed": MethodNotAllowed,
    "NotAcceptable": NotAcceptable,
    "Conflict": Conflict,
    "AlreadyExists": AlreadyExists,
    "Gone": Gone,
    "Expired": Expired,
    "Invalid": Invalid,
    "RequestEntityTooLarge": RequestEntityTooLarge,
    "UnsupportedMediaType": UnsupportedMediaType,
    "TooManyRequests": TooManyRequests,
    "InternalError": InternalError,
    "ServiceUnavailable": ServiceUnavailable,
    "ServerTimeout": ServerTimeout,
    "Timeout": GatewayTimeout,
}

_BY_CODE: dict[int, type[StatusError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    406: NotAcceptable,
    409: Conflict,
    410: Gone,
    413: RequestEntityTooLarge,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
    503: ServiceUnavailable,
    504: GatewayTimeout,
}


def error_from_status(status: Status, *, tried: str) -> StatusError:
    """Choose the exception for a failure: by its reason, then by its code. `tried` says what was asked for."""
    cls = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code)
    if cls is None:
        cls = InternalError if 500 <= status.code < 600 else StatusError
    return cls(status, tried=tried)


# --- what no server answered -----------------------------------------------------------------------------------------


class OutcomeUnknown(ApiError):
    """A write may or may not have happened: read the object before trying again. The cause says what broke."""


class ConnectionFailed(ApiError):
    """The server could not be reached, or the connection broke before the whole answer was here.

    With `sent` false no byte of the request can have reached the server, so it certainly was not processed.
    """

    def __init__(self, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent


class DeadlineExceeded(ApiError):
    """The time allowed for a request, or for the next bytes of a stream, ran out.

    With `sent` false no byte of the request can have reached the server, so it certainly was not processed.
    """

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class ProtocolError(ApiError):
    """The server sent something that is not the Kubernetes API: another service may listen there."""


class DecodeError(ApiError):
    """One object could not be decoded; others are not affected."""


class ConfigError(ApiError):
    """The configuration of the client cannot be used."""
