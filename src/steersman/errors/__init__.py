"""The errors of the Kubernetes API and of the way to it, as one tree of exceptions.

Guarantees
- Every error of the API is an `ApiError`; an error response of a server is a `StatusError` and carries its `Status`.
- A message names the operation, the server's reason, and the next step if one is known.
- Errors can be pickled and copied, and contain no headers, credentials, or bodies of requests and responses.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, cast

from steersman.errors.status import (
    UNREADABLE as UNREADABLE,
    ApiStatus as ApiStatus,
    StatusCause as StatusCause,
    StatusDetails as StatusDetails,
    StatusMetadata as StatusMetadata,
    decode_status as decode_status,
    encode_status as encode_status,
)

__all__ = [
    "AlreadyExists",
    "AmbiguousItem",
    "ApiError",
    "ApiStatus",
    "BadRequest",
    "ConfigError",
    "Conflict",
    "ConnectionFailed",
    "CredentialsError",
    "DeadlineExceeded",
    "DecodeError",
    "Expired",
    "Forbidden",
    "GatewayTimeout",
    "Gone",
    "InternalError",
    "Invalid",
    "KindNotServed",
    "ManifestError",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotAnIntent",
    "NotCached",
    "NotEstablished",
    "NotFound",
    "NotLeading",
    "NotNew",
    "OutcomeUnknown",
    "OwnershipError",
    "PartialObject",
    "PlanFailed",
    "ProtocolError",
    "ReconcileStuck",
    "RequestEntityTooLarge",
    "SelectorError",
    "ServerTimeout",
    "ServiceUnavailable",
    "StatusCause",
    "StatusError",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
    "WouldRemove",
]


def error_leaves(error: BaseException) -> list[BaseException]:
    """The errors in an exception group and in its groups; a single error is its own only leaf."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return [leaf for member in group.exceptions for leaf in error_leaves(member)]
    return [error]


#: Exceptions that end the program, or a coroutine.
_EXITS = (KeyboardInterrupt, SystemExit, GeneratorExit)


def is_exit(error: BaseException) -> bool:
    """Whether an exception, or a member of a group, ends the program or a coroutine.

    Anything else that user code raises, even a BaseException such as the panic of an extension, is a failure of that code.
    """
    return any(isinstance(member, _EXITS) for member in error_leaves(error))


#: The longest Retry-After that is honored, in seconds.
RETRY_AFTER_MAX = 600.0


class ApiError(Exception):
    """The root of all errors of the API and of the connection to it."""


# --- error responses of a server ------------------------------------------------------------------------------------


class StatusError(ApiError):
    """The server rejected the request: `status` is its response, `tried` the operation. Prefer a subclass."""

    #: What to do next; empty if the server's message says enough.
    hint: str = ""

    def __init__(self, status: ApiStatus, *, tried: str = "") -> None:
        # only the status is an argument: pickle and copy rebuild the error from it, then restore `tried`
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
        """The individual causes, one per field, if the server listed them."""
        return self.status.causes

    @property
    def retry_after(self) -> float | None:
        """Seconds the server asks to wait before a retry, at most `RETRY_AFTER_MAX`; None if it does not say."""
        # Take the minimum first: the server may send an integer too large for a float.
        seconds = float(min(self.status.retry_after_seconds, RETRY_AFTER_MAX))
        return seconds if seconds > 0 else None

    def __str__(self) -> str:
        said, listed = self._said()
        label = " ".join(part for part in (str(self.code or ""), self.reason) if part)
        first = f"{self.tried}: {said}" if self.tried else said
        lines = [f"{first} ({label})" if label else first, *(f"  - {line}" for line in listed)]
        if hint := self._hint():
            lines.append(hint)
        return "\n".join(lines)

    def _said(self) -> tuple[str, list[str]]:
        """Return the server's message, and the causes to list on separate lines."""
        message = _shortened(self.status.message.strip()) or "the server gave no reason"
        # an unknown server may answer with a page of text
        if len(message) > _MESSAGE_MAX:
            message = message[:_MESSAGE_MAX] + "..."
        lines = [_cause_line(cause) for cause in self.causes]
        return (message, lines if len(lines) > 1 else [])

    def _hint(self) -> str:
        return self.hint


_MESSAGE_MAX = 8192


# A server that rejects a patch repeats the whole object, which may be a Secret.
_WHOLE_OBJECT = re.compile(r'Invalid value: "\{.*\}":', re.DOTALL)


# A server that denies a grant lists every missing rule; a few show what is meant.
_LINES_SHOWN = 4


def _shortened(message: str) -> str:
    lines = _WHOLE_OBJECT.sub("Invalid value:", message).splitlines()
    if len(lines) > _LINES_SHOWN + 1:
        lines[_LINES_SHOWN:] = [f"(and {len(lines) - _LINES_SHOWN} more lines)"]
    return "\n".join(lines)


def _cause_line(cause: StatusCause) -> str:
    text = _shortened(cause.message or cause.reason)
    return f"{cause.field}: {text}" if cause.field else text


class BadRequest(StatusError):
    """The server cannot understand the request (400)."""


class Unauthorized(StatusError):
    """The server cannot authenticate the user (401)."""

    hint = "The credentials are missing, wrong or expired: check the user of the kubeconfig, or log in again."


class Forbidden(StatusError):
    """The server denies the request to this user (403): RBAC, admission or a terminating namespace."""

    @property
    def namespace_terminating(self) -> bool:
        """Whether the server denied a creation because its namespace is being deleted."""
        return any(cause.reason == "NamespaceTerminating" for cause in self.causes)

    def _hint(self) -> str:
        if self.namespace_terminating:
            return "The namespace is being deleted: nothing can be created in it."
        if " cannot " in self.status.message:
            return "The message names the missing RBAC verb, resource and group: bind a role that allows them to this user."
        return ""


class NotFound(StatusError):
    """The object does not exist, or the server does not serve the path (404)."""

    @property
    def is_unknown_path(self) -> bool:
        """Whether the server does not serve the resource at all: a CRD may be missing."""
        details = self.status.details
        return details is None or not (details.name or details.kind)

    def _hint(self) -> str:
        if self.is_unknown_path:
            return (
                "The server does not serve this resource: is its CRD applied, and are group, version and plural right?"
            )
        return ""


class KindNotServed(StatusError):
    """The server does not serve the kind: its CustomResourceDefinition is missing, or does not serve the version.

    Not a `NotFound`: code that treats NotFound as "already deleted" must not hide a missing kind.
    """

    #: The versions in which the server serves the kind: objects may exist in them. Empty if it serves none, or if unknown.
    versions: tuple[str, ...] = ()


class MethodNotAllowed(StatusError):
    """The resource does not support the verb (405)."""


class NotAcceptable(StatusError):
    """The server cannot answer in the requested format (406)."""


class FieldConflict(NamedTuple):
    """A field that an apply tried to set and that another field manager owns."""

    manager: str
    field: str


class Conflict(StatusError):
    """The object changed since it was read, or another field manager owns a field (409)."""

    @property
    def field_conflicts(self) -> tuple[FieldConflict, ...]:
        """The owner of each field, for the conflict of a server-side apply; otherwise empty."""
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
            return "Remove these fields from the applied object, or apply with force=True to take them over."
        return "Read the object again, change the new version and retry; retry_on_conflict does this."


_MANAGER = re.compile(r'conflict with ("(?:[^"\\]|\\.)*")')


def _manager_in(message: str) -> str:
    """The manager's name in `conflict with "name" using v1`; the whole message if it has another form."""
    found = _MANAGER.match(message)
    return re.sub(r"\\(.)", r"\1", found[1][1:-1]) if found else message


class AlreadyExists(StatusError):
    """An object of that name already exists (409)."""

    hint = "Choose another name or generate_name, or use apply or create_or_update if the object may exist."


class Gone(StatusError):
    """The requested resource no longer exists (410)."""


class Expired(Gone):
    """The resourceVersion or the continue token is older than the server's history (410)."""

    hint = "List again from the start, and watch from the new resourceVersion."

    @property
    def continue_(self) -> str:
        """A token to continue the list, which is then inconsistent; empty if the server sent none."""
        return self.status.metadata.continue_


class Invalid(StatusError):
    """The object violates rules of its kind (422); `causes` has one entry per field."""

    def _said(self) -> tuple[str, list[str]]:
        message, lines = super()._said()
        subject, found, _ = message.partition(" is invalid: ")
        # the message repeats every cause in one line: with the list below, its subject is enough
        return (f"{subject} is invalid", lines) if lines and found else (message, lines)

    def _hint(self) -> str:
        return "Correct the fields named above." if any(cause.field for cause in self.causes) else ""


class RequestEntityTooLarge(StatusError):
    """The request is larger than the server accepts (413)."""

    hint = "Split the object: the store limits an object, including managedFields, to about 1.5 MB."


class UnsupportedMediaType(StatusError):
    """The server does not accept this media type here (415)."""

    hint = "Custom resources do not support strategic merge patches: send a MergePatch, or apply."


class TooManyRequests(StatusError):
    """The server sheds load, or an eviction must wait (429); it did not process the request."""

    def _hint(self) -> str:
        return f"Retry after {self.retry_after:g} s." if self.retry_after else ""


class InternalError(StatusError):
    """The server failed (500, and other 5xx without their own class)."""


class ServiceUnavailable(StatusError):
    """The server, or a component it needs, is unavailable (503)."""


class ServerTimeout(StatusError):
    """The server could not complete the request in time and asks to retry (500)."""


class GatewayTimeout(StatusError):
    """The request timed out on its way or in the server (504, reason Timeout); a write may have happened."""


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

#: Classes are named after their reasons, except for GatewayTimeout.
_BY_REASON: dict[str, type[StatusError]] = {
    **{cls.__name__: cls for cls in (*_BY_CODE.values(), AlreadyExists, Expired, InternalError, ServerTimeout)},
    "Timeout": GatewayTimeout,
}


def error_from_status(status: ApiStatus, *, tried: str) -> StatusError:
    """Choose the exception for a failure: by its reason, then by its code. `tried` names the operation."""
    cls = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code)
    if cls is None:
        cls = InternalError if 500 <= status.code < 600 else StatusError
    return cls(status, tried=tried)


# --- errors without a response --------------------------------------------------------------------------------------


class OutcomeUnknown(ApiError):
    """A write may or may not have happened: read the object before retrying. The cause says what failed."""


class ConnectionFailed(ApiError):
    """The server could not be reached, or the connection broke before the response was complete.

    If `sent` is false, no byte of the request reached the server, so it certainly was not processed.
    """

    def __init__(self, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.sent = sent


class DeadlineExceeded(ApiError):
    """The time for a request, or for the next bytes of a stream, ran out.

    If `sent` is false, no byte of the request reached the server, so it certainly was not processed.
    """

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class ProtocolError(ApiError):
    """The response is not Kubernetes API: another service may listen at this address."""


class DecodeError(ApiError):
    """One object could not be decoded; others are not affected."""


class ManifestProblem(NamedTuple):
    """One mistake in a manifest; ``file`` is empty if the caller named none."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}" if self.file else f"line {self.line}: {self.reason}"


class ManifestError(ApiError):
    """A manifest has mistakes: `problems` has the file, line and reason of each, in the order of the text."""

    def __init__(self, problems: Iterable[ManifestProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


class ConfigError(ApiError):
    """The client's configuration is unusable."""


class CredentialsError(ConfigError):
    """Credentials are unavailable: an unreadable token file, a failed exec plugin. A retry may succeed."""


class NotEstablished(ApiError):
    """The server accepted a definition but does not serve it."""


# --- errors of a program: nothing was sent ---------------------------------------------------------------------------


class NotNew(ApiError):
    """`create` was called with an object that already exists on the server."""


class PartialObject(ApiError):
    """`update` was called with an object that was only partially read."""


class NotAnIntent(ApiError):
    """`apply` was called with an object that was read from the server."""


class WouldRemove(ApiError):
    """`install` was called with a definition that lacks a version or a field of the installed one."""


class AmbiguousItem(ApiError):
    """A list was rebuilt so that an undeclared field could belong to several items, or be lost."""


class NotCached(ApiError):
    """The read is outside of what the cache holds."""


class NotLeading(ApiError):
    """A write was rejected because its term is over: another candidate may lead. Nothing was sent."""


class PlanFailed(ApiError):
    """There is no plan: the controllers cannot start, or one of their reconciles does not end."""


class ReconcileStuck(PlanFailed):
    """A reconcile swallowed its cancellation. Its task, and the manager around it, still run on this event loop."""


class OwnershipError(ValueError):
    """An owner reference that Kubernetes would reject, or that would mislead its garbage collector."""


class SelectorError(ValueError):
    """A selector that Kubernetes would reject."""
