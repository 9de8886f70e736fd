"""Answers: bodies with kube-apiserver's headers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec

from steersman.aio import is_bound
from steersman.apiserver import protobuf
from steersman.apiserver.errors import RequestRejected, not_this_form
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.workers import LARGE
from steersman.errors import ApiStatus, encode_status
from steersman.transport import ServerResponse
from steersman.wire import JSON, PROTOBUF, YAML, Pairs, parse_accept, print_warning

#: The total length of warnings above which each is truncated, and the length to which it is.
WARNINGS_MAX, WARNING_MAX = 4096, 256
#: The maximum length of a YAML answer, which takes thirty times its size in memory.
YAML_MAX = 4 * 1024 * 1024
#: The media type of an error, by the accepted media type.
_ERRORS = {JSON: JSON, YAML: YAML, PROTOBUF: PROTOBUF, "*/*": JSON, "application/*": JSON}
_HEADERS = (("Cache-Control", "no-cache, private"), ("Content-Type", JSON))


def answer(request: ServerRequest, body: bytes, *, status: int = 200, content_type: str = JSON) -> ServerResponse:
    """Convert a JSON body to the negotiated media type, and answer with the warnings of the request."""
    if request.media_type != JSON and content_type == JSON:
        if len(body) >= LARGE and not is_bound():
            return _answer_later(request, body, status)
        body, content_type = _converted(request.media_type, body)
    if content_type == JSON and not body.endswith(b"\n"):
        body += b"\n"
    if request.warnings or content_type != JSON:
        headers = (_HEADERS[0], ("Content-Type", content_type), *_warnings(request))
        return ServerResponse(status=status, headers=headers, body=body)
    return ServerResponse(status=status, headers=_HEADERS, body=body)


def answer_pieces(request: ServerRequest, pieces: Iterable[bytes]) -> ServerResponse:
    """A long JSON answer, whose pieces are produced as the client reads them."""
    if request.media_type != JSON or request.warnings:
        return answer(request, b"".join(pieces))
    return ServerResponse(status=200, headers=_HEADERS, body=_one_by_one(pieces))


def _answer_later(request: ServerRequest, body: bytes, status: int) -> ServerResponse:
    """A long answer in another format than JSON. A worker thread converts it when the client starts to read."""
    media_type = request.media_type
    if media_type == YAML and len(body) > YAML_MAX:
        why = f"YAML answers are limited to {YAML_MAX} bytes here: request JSON, or fewer objects with limit="
        return answer_refusal(ServerRequest(request.wire, user=request.user), not_this_form(why))

    async def printed() -> AsyncIterator[bytes]:
        yield (await asyncio.to_thread(_converted, media_type, body))[0]

    headers = (_HEADERS[0], ("Content-Type", media_type), *_warnings(request))
    return ServerResponse(status=status, headers=headers, body=printed())


def _converted(media_type: str, body: bytes) -> tuple[bytes, str]:
    """A JSON body in another media type, and that type. Returns JSON if the body has no such form."""
    if media_type == YAML:
        return _as_yaml(body), YAML
    message = protobuf.to_protobuf(body)
    return (body, JSON) if message is None else (message, PROTOBUF)


def _warnings(request: ServerRequest) -> Pairs:
    return tuple(("Warning", print_warning(text)) for text in shortened(request.warnings))


async def _one_by_one(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _as_yaml(body: bytes) -> bytes:
    import yaml  # noqa: PLC0415 - few clients want YAML

    # The compiled dumper is much faster, where available.
    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(msgspec.json.decode(body), Dumper=dumper, allow_unicode=True, default_flow_style=False).encode()


def shortened(warnings: list[str]) -> list[str]:
    """Warnings as kube-apiserver sends them: if they are long in total, each is truncated and the last are omitted."""
    if sum(map(len, warnings)) <= WARNINGS_MAX:
        return warnings
    told: list[str] = []
    given = written = 0
    for text in warnings:
        # Warnings before the limit were already sent, and stay, truncated.
        if given > WARNINGS_MAX and written >= WARNINGS_MAX:
            break
        given += len(text)
        told.append(text[:WARNING_MAX])
        written += len(told[-1])
    return told


def answer_status(request: ServerRequest, status: ApiStatus, *, code: int = 200) -> ServerResponse:
    """An answer that is a Status."""
    return answer(request, encode_status(status), status=code)


def answer_refusal(request: ServerRequest, refused: RequestRejected) -> ServerResponse:
    """The answer to a rejected request."""
    if request.info.is_resource:
        request.media_type = _preferred(request.wire.header("Accept"))
    reply = answer(request, encode_status(refused.status), status=refused.status.code or 500)
    reply.headers = (*reply.headers, *refused.headers)
    return reply


def _preferred(accept: str | None) -> str:
    """The media type of an error: the first one that the client accepts for plain objects, or JSON."""
    if not accept or (YAML not in accept and PROTOBUF not in accept):
        return JSON
    plain = (clause.name for clause in parse_accept(accept) if not clause.representation[0])
    return next((_ERRORS[name] for name in plain if name in _ERRORS), JSON)


def page_not_found() -> ServerResponse:
    """The answer to an unknown path."""
    headers = (_HEADERS[0], ("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"))
    return ServerResponse(status=404, headers=headers, body=b"404 page not found\n")
