"""Answers: bodies with the headers that kube-apiserver sends."""

from __future__ import annotations

from steersman.apiserver.errors import Refused
from steersman.apiserver.request import ServerRequest
from steersman.objects.status import Status, encode_status
from steersman.transport import ServerResponse
from steersman.wire import JSON, print_warning

_HEADERS = (("Cache-Control", "no-cache, private"), ("Content-Type", JSON))


def answer(request: ServerRequest, body: bytes, *, status: int = 200, content_type: str = JSON) -> ServerResponse:
    """An answer of JSON, one line, with the warnings that the request has gathered."""
    body = body if body.endswith(b"\n") else body + b"\n"
    if request.warnings or content_type != JSON:
        warnings = tuple(("Warning", print_warning(text)) for text in request.warnings)
        return ServerResponse(
            status=status, headers=(_HEADERS[0], ("Content-Type", content_type), *warnings), body=body
        )
    return ServerResponse(status=status, headers=_HEADERS, body=body)


def answer_status(request: ServerRequest, status: Status, *, code: int = 200) -> ServerResponse:
    """An answer that is a Status."""
    return answer(request, encode_status(status), status=code)


def answer_refusal(request: ServerRequest, refused: Refused) -> ServerResponse:
    """The answer to a request that is refused."""
    reply = answer(request, encode_status(refused.status), status=refused.status.code or 500)
    reply.headers = (*reply.headers, *refused.headers)
    return reply


def page_not_found() -> ServerResponse:
    """The answer to a path that means nothing."""
    headers = (("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"))
    return ServerResponse(status=404, headers=headers, body=b"404 page not found\n")
