"""The server's errors, with kube-apiserver's messages.

Guarantees
- Every raised `RequestRejected` becomes exactly one Status answer: code, reason, details and message as the engine's.
- No message contains data of another request.
"""

from __future__ import annotations

from collections.abc import Sequence

from steersman.errors import ApiStatus, StatusCause, StatusDetails, StatusMetadata
from steersman.objects import GroupKind, GroupVersionKind
from steersman.objects.field_problems import PROBLEMS_MAX, FieldProblem
from steersman.wire import Pairs

#: The maximum total length of all reported problems of one object, except the first problem.
_PROBLEMS_LENGTH = 1024 * 1024


class RequestRejected(Exception):
    """The request fails with this Status."""

    def __init__(self, status: ApiStatus, headers: Pairs = ()) -> None:
        super().__init__(status.message)
        self.status = status
        self.headers = headers

    def with_headers(self, *added: tuple[str, str]) -> RequestRejected:
        """The same rejection with headers added to its own."""
        return RequestRejected(self.status, (*self.headers, *added))


class Named:
    """A resource as errors name it: ``configmaps``, ``deployments.apps``."""

    __slots__ = ("group", "resource")

    def __init__(self, group: str, resource: str) -> None:
        self.group = group
        self.resource = resource

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


def _failure(
    code: int,
    reason: str,
    message: str,
    details: StatusDetails | None = None,
    *,
    headers: Pairs = (),
    metadata: StatusMetadata | None = None,
) -> RequestRejected:
    status = ApiStatus(
        status="Failure",
        code=code,
        reason=reason,
        message=message,
        details=details,
        metadata=metadata or StatusMetadata(),
    )
    return RequestRejected(status, headers)


def _about(named: Named, name: str, causes: tuple[StatusCause, ...] = ()) -> StatusDetails:
    return StatusDetails(name=name, group=named.group, kind=named.resource, causes=causes)


def not_found(named: Named, name: str) -> RequestRejected:
    """The object does not exist."""
    return _failure(404, "NotFound", f'{named} "{name}" not found', _about(named, name))


def no_such_resource() -> RequestRejected:
    """The group, version, resource or subresource does not exist."""
    return _failure(404, "NotFound", "the server could not find the requested resource", StatusDetails())


def already_exists(named: Named, name: str) -> RequestRejected:
    """An object of this name already exists."""
    return _failure(409, "AlreadyExists", f'{named} "{name}" already exists', _about(named, name))


def conflict(named: Named, name: str, why: str) -> RequestRejected:
    """The request is based on an outdated state."""
    message = f'Operation cannot be fulfilled on {named} "{name}": {why}'
    return _failure(409, "Conflict", message, _about(named, name))


def modified(named: Named, name: str) -> RequestRejected:
    """Another writer changed the object first."""
    return conflict(
        named, name, "the object has been modified; please apply your changes to the latest version and try again"
    )


def forbidden(named: Named | None, name: str, why: str, causes: tuple[StatusCause, ...] = ()) -> RequestRejected:
    """The request is not allowed. Without a resource it concerns a path."""
    if named is None or not (named.resource or named.group):
        return _failure(403, "Forbidden", f"forbidden: {why}", StatusDetails(name=name))
    subject = f'{named} "{name}"' if name else str(named)
    return _failure(403, "Forbidden", f"{subject} is forbidden: {why}", _about(named, name, causes))


def unauthorized() -> RequestRejected:
    """The sender is unknown."""
    return _failure(401, "Unauthorized", "Unauthorized")


def bad_request(message: str) -> RequestRejected:
    """The request is malformed."""
    return _failure(400, "BadRequest", message)


def invalid(kind: GroupVersionKind | GroupKind, name: str, problems: Sequence[FieldProblem]) -> RequestRejected:
    """The object violates rules of its kind. Only the first problems are listed if there are too many."""
    problems = _first_problems(problems)
    # Repeated sentences are omitted; the causes are complete.
    sentences = list(dict.fromkeys(str(problem) for problem in problems))
    words = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
    subject = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    causes = tuple(
        StatusCause(reason=problem.reason, message=problem.message, field=problem.path) for problem in problems
    )
    details = StatusDetails(name=name, group=kind.group, kind=kind.kind, causes=causes)
    return _failure(422, "Invalid", f'{subject} "{name}" is invalid: {words}', details)


def _first_problems(problems: Sequence[FieldProblem]) -> Sequence[FieldProblem]:
    """The first problems, limited so that an answer is no longer than a body may be."""
    if len(problems) <= 1:
        return problems
    left = _PROBLEMS_LENGTH
    for number, problem in enumerate(problems):
        left -= len(problem.path) + len(problem.message)
        if left < 0 or number >= PROBLEMS_MAX:
            return problems[: max(1, number)]
    return problems


def method_not_allowed() -> RequestRejected:
    """The resource does not support the verb."""
    message = "the server does not allow this method on the requested resource"
    return _failure(405, "MethodNotAllowed", message, StatusDetails())


def not_supported(named: Named, action: str) -> RequestRejected:
    """The resource has no such verb."""
    message = f'{action} is not supported on resources of kind "{named}"'
    return _failure(405, "MethodNotAllowed", message, StatusDetails(group=named.group, kind=named.resource))


def not_acceptable(offers: Sequence[str]) -> RequestRejected:
    """The server has none of the representations that the client accepts."""
    return not_this_form(f"only the following media types are accepted: {', '.join(offers)}")


def not_this_form(message: str) -> RequestRejected:
    """The object has no such representation."""
    return _failure(406, "NotAcceptable", message)


def no_media_type(offers: Sequence[str]) -> RequestRejected:
    """The server prints none of the media types that the client accepts."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offers)}"
    return _failure(406, "NotAcceptable", message, StatusDetails())


def unsupported_media_type(offers: Sequence[str]) -> RequestRejected:
    """The server does not read this format of a body."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(offers)}"
    return _failure(415, "UnsupportedMediaType", message)


def expired(message: str, *, continue_: str = "") -> RequestRejected:
    """The requested history is gone; ``continue_`` continues from here, inconsistently."""
    return _failure(410, "Expired", message, metadata=StatusMetadata(continue_=continue_))


def too_large(message: str = "request entity too large") -> RequestRejected:
    """The body is longer than allowed."""
    return _failure(413, "RequestEntityTooLarge", message)


def too_many_requests(seconds: int = 1) -> RequestRejected:
    """Too many requests are in flight."""
    message = "Too many requests, please try again later."
    return _failure(
        429,
        "TooManyRequests",
        message,
        StatusDetails(retry_after_seconds=seconds),
        headers=(("Retry-After", str(seconds)),),
    )


def too_many_disruptions(why: str, *, seconds: int = 0) -> RequestRejected:
    """An eviction would disrupt more Pods than their budget allows."""
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    cause = StatusCause(reason="DisruptionBudget", message=why)
    details = StatusDetails(causes=(cause,), retry_after_seconds=seconds)
    return _failure(
        429, "TooManyRequests", message, details, headers=(("Retry-After", str(seconds)),) if seconds else ()
    )


def too_large_resource_version(wanted: int, current: int) -> RequestRejected:
    """The requested revision has not happened yet."""
    message = f"Too large resource version: {wanted}, current: {current}"
    cause = StatusCause(reason="ResourceVersionTooLarge", message="Too large resource version")
    details = StatusDetails(causes=(cause,), retry_after_seconds=1)
    return _failure(504, "Timeout", f"Timeout: {message}", details, headers=(("Retry-After", "1"),))


def internal(message: str) -> RequestRejected:
    """The server itself failed."""
    cause = StatusCause(message=message)
    return _failure(500, "InternalError", f"Internal error occurred: {message}", StatusDetails(causes=(cause,)))


def unnamed(message: str, *, code: int = 500) -> RequestRejected:
    """A failure without a reason: kube-apiserver treats some unreadable values as its own error."""
    return _failure(code, "", message)


def unavailable(message: str) -> RequestRejected:
    """Something that the request needs cannot be reached."""
    return _failure(503, "ServiceUnavailable", message)


def name_taken(named: Named, name: str) -> RequestRejected:
    """The generated name is taken."""
    message = f'{named} "{name}" already exists, the server was not able to generate a unique name for the object'
    details = StatusDetails(name=name, group=named.group, kind=named.resource, retry_after_seconds=1)
    return _failure(409, "AlreadyExists", message, details, headers=(("Retry-After", "1"),))


def timeout(message: str, *, seconds: int = 0) -> RequestRejected:
    """The request exceeded its deadline."""
    return _failure(504, "Timeout", f"Timeout: {message}", StatusDetails(retry_after_seconds=seconds))
