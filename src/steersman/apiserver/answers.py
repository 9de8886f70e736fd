"""Answers: bodies with kube-apiserver's headers.

A verb or route answers in JSON. `in_media_type` is the only place that encodes a whole answer otherwise, while the
request has its place in the limits; `LongList` encodes those that are sent in pieces.
"""

from __future__ import annotations

from functools import partial

from steersman.apiserver.encodings import LongList, encoded
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.workers import Workers
from steersman.errors import ApiStatus, encode_status
from steersman.transport import ServerResponse
from steersman.wire import JSON, PROTOBUF, YAML, Pairs, parse_accept, print_warning

#: The total length of warnings above which each is truncated, and the length to which it is.
WARNINGS_MAX, WARNING_MAX = 4096, 256
#: The media type of an error, by the accepted media type.
_ERRORS = {JSON: JSON, YAML: YAML, PROTOBUF: PROTOBUF, "*/*": JSON, "application/*": JSON}
_CACHING = ("Cache-Control", "no-cache, private")
_HEADERS = (_CACHING, ("Content-Type", JSON))


class JsonAnswer(ServerResponse):
    """An answer in JSON, which `in_media_type` encodes as negotiated."""


def answer(request: ServerRequest, body: bytes, *, status: int = 200) -> ServerResponse:
    """Answer with a JSON body and the warnings of the request."""
    if not body.endswith(b"\n") and request.media_type == JSON:
        body += b"\n"
    headers = (*_HEADERS, *_warnings(request)) if request.warnings else _HEADERS
    return JsonAnswer(status=status, headers=headers, body=body)


def answer_list(request: ServerRequest, body: LongList) -> ServerResponse:
    """Answer with a list that is encoded as the client reads it."""
    request.sends_pieces = True
    headers = (_CACHING, ("Content-Type", request.media_type), *_warnings(request))
    return ServerResponse(status=200, headers=headers, body=body)


async def in_media_type(request: ServerRequest, reply: ServerResponse, workers: Workers) -> ServerResponse:
    """An answer in the media type of the request."""
    if request.media_type == JSON or not isinstance(reply, JsonAnswer) or not isinstance(reply.body, bytes):
        return reply
    body = reply.body
    work = partial(encoded, request.media_type, body)
    return _with_body(reply, *await workers.answer(work, size=len(body), user=request.user.name))


def _with_body(reply: ServerResponse, body: bytes, content_type: str) -> ServerResponse:
    headers = tuple((name, content_type if name == "Content-Type" else value) for name, value in reply.headers)
    return ServerResponse(status=reply.status, headers=headers, body=body)


def _warnings(request: ServerRequest) -> Pairs:
    return tuple(("Warning", print_warning(text)) for text in shortened(request.warnings))


def shortened(warnings: list[str]) -> list[str]:
    """Warnings as kube-apiserver sends them: if they are long in total, each is truncated and the last are omitted."""
    if sum(map(len, warnings)) <= WARNINGS_MAX:
        return warnings
    sent: list[str] = []
    given = written = 0
    for text in warnings:
        # Warnings before the limit were already sent, and stay, truncated.
        if given > WARNINGS_MAX and written >= WARNINGS_MAX:
            break
        given += len(text)
        sent.append(text[:WARNING_MAX])
        written += len(sent[-1])
    return sent


def answer_status(request: ServerRequest, status: ApiStatus, *, code: int = 200) -> ServerResponse:
    """An answer that is a Status."""
    return answer(request, encode_status(status), status=code)


def answer_refusal(request: ServerRequest, refused: RequestRejected) -> ServerResponse:
    """The answer to a rejected request."""
    if request.info.is_resource:
        request.media_type = _preferred(request.wire.header("Accept"))
    body = encode_status(refused.status)
    reply = answer(request, body, status=refused.status.code or 500)
    reply.headers = (*reply.headers, *refused.headers)
    # A Status is short: it needs no thread, and no place.
    return reply if request.media_type == JSON else _with_body(reply, *encoded(request.media_type, body))


def _preferred(accept: str | None) -> str:
    """The media type of an error: the first one that the client accepts for plain objects, or JSON."""
    if not accept or (YAML not in accept and PROTOBUF not in accept):
        return JSON
    plain = (clause.name for clause in parse_accept(accept) if not clause.representation[0])
    return next((_ERRORS[name] for name in plain if name in _ERRORS), JSON)


def page_not_found() -> ServerResponse:
    """The answer to an unknown path."""
    headers = (_CACHING, ("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"))
    return ServerResponse(status=404, headers=headers, body=b"404 page not found\n")
