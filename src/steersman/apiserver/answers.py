"""Answers: bodies with the headers that kube-apiserver sends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec
import yaml

from steersman.apiserver.errors import Refused
from steersman.apiserver.request import ServerRequest
from steersman.objects.status import Status, encode_status
from steersman.transport import ServerResponse
from steersman.wire import JSON, YAML, parse_accept, print_warning

#: How many characters warnings have together before each is cut, and to how many.
WARNINGS_MAX, WARNING_MAX = 4096, 256
#: The one that is compiled is much faster, where there is one.
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_HEADERS = (("Cache-Control", "no-cache, private"), ("Content-Type", JSON))


def answer(request: ServerRequest, body: bytes, *, status: int = 200, content_type: str = JSON) -> ServerResponse:
    """An answer of JSON, one line, or the same as YAML; with the warnings that the request has gathered."""
    if request.wants_yaml and content_type == JSON:
        body, content_type = _as_yaml(body), YAML
    body = body if body.endswith(b"\n") else body + b"\n"
    if request.warnings or content_type != JSON:
        warnings = tuple(("Warning", print_warning(text)) for text in shortened(request.warnings))
        return ServerResponse(
            status=status, headers=(_HEADERS[0], ("Content-Type", content_type), *warnings), body=body
        )
    return ServerResponse(status=status, headers=_HEADERS, body=body)


def answer_pieces(request: ServerRequest, pieces: Iterable[bytes]) -> ServerResponse:
    """An answer of JSON that is long: its pieces are asked for as its client reads them."""
    if request.wants_yaml or request.warnings:
        return answer(request, b"".join(pieces))
    return ServerResponse(status=200, headers=_HEADERS, body=_one_by_one(pieces))


async def _one_by_one(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _as_yaml(body: bytes) -> bytes:
    return yaml.dump(msgspec.json.decode(body), Dumper=_DUMPER, allow_unicode=True, default_flow_style=False).encode()


def shortened(warnings: list[str]) -> list[str]:
    """Warnings as kube-apiserver sends them: when they are long together, each is cut, and the last ones are left out."""
    if sum(map(len, warnings)) <= WARNINGS_MAX:
        return warnings
    told: list[str] = []
    given = written = 0
    for text in warnings:
        # What came before it was too much was sent already, and stays, cut.
        if given > WARNINGS_MAX and written >= WARNINGS_MAX:
            break
        given += len(text)
        told.append(text[:WARNING_MAX])
        written += len(told[-1])
    return told


def answer_status(request: ServerRequest, status: Status, *, code: int = 200) -> ServerResponse:
    """An answer that is a Status."""
    return answer(request, encode_status(status), status=code)


def answer_refusal(request: ServerRequest, refused: Refused) -> ServerResponse:
    """The answer to a request that is refused."""
    if request.info.is_resource and not request.wants_yaml:
        request.wants_yaml = _prefers_yaml(request.wire.header("Accept"))
    reply = answer(request, encode_status(refused.status), status=refused.status.code or 500)
    reply.headers = (*reply.headers, *refused.headers)
    return reply


def _prefers_yaml(accept: str | None) -> bool:
    """Whether somebody who was refused before a form was found reads YAML first."""
    if not accept or YAML not in accept:
        return False
    plain = (clause.name for clause in parse_accept(accept) if not clause.representation[0])
    return next((name for name in plain if name in {JSON, YAML, "*/*"}), JSON) == YAML


def page_not_found() -> ServerResponse:
    """The answer to a path that means nothing."""
    headers = (_HEADERS[0], ("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"))
    return ServerResponse(status=404, headers=headers, body=b"404 page not found\n")
