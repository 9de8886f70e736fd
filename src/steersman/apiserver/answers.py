"""Answers: bodies with kube-apiserver's headers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec
import yaml

from steersman.aio import is_bound
from steersman.apiserver.errors import Refused, not_this_form
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.workers import LARGE
from steersman.errors.status import ApiStatus, encode_status
from steersman.transport import ServerResponse
from steersman.wire import JSON, YAML, parse_accept, print_warning

#: The total length of warnings above which each is truncated, and the length to which it is.
WARNINGS_MAX, WARNING_MAX = 4096, 256
#: The maximum length of a YAML answer, which takes thirty times its size in memory.
YAML_MAX = 4 * 1024 * 1024
#: The compiled dumper is much faster, where available.
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_HEADERS = (("Cache-Control", "no-cache, private"), ("Content-Type", JSON))


def answer(request: ServerRequest, body: bytes, *, status: int = 200, content_type: str = JSON) -> ServerResponse:
    """An answer as one line of JSON, or as YAML, with the warnings of the request."""
    if request.wants_yaml and content_type == JSON:
        if len(body) >= LARGE and not is_bound():
            return _yaml_later(request, body, status)
        body, content_type = _as_yaml(body), YAML
    body = body if body.endswith(b"\n") else body + b"\n"
    if request.warnings or content_type != JSON:
        warnings = tuple(("Warning", print_warning(text)) for text in shortened(request.warnings))
        return ServerResponse(
            status=status, headers=(_HEADERS[0], ("Content-Type", content_type), *warnings), body=body
        )
    return ServerResponse(status=status, headers=_HEADERS, body=body)


def answer_pieces(request: ServerRequest, pieces: Iterable[bytes]) -> ServerResponse:
    """A long JSON answer, whose pieces are produced as the client reads them."""
    if request.wants_yaml or request.warnings:
        return answer(request, b"".join(pieces))
    return ServerResponse(status=200, headers=_HEADERS, body=_one_by_one(pieces))


def _yaml_later(request: ServerRequest, body: bytes, status: int) -> ServerResponse:
    """A long YAML answer, which a worker thread prints when the client begins to read."""
    if len(body) > YAML_MAX:
        why = f"YAML answers are limited to {YAML_MAX} bytes here: request JSON, or fewer objects with limit="
        return answer_refusal(ServerRequest(request.wire, user=request.user), not_this_form(why))
    warnings = tuple(("Warning", print_warning(text)) for text in shortened(request.warnings))

    async def printed() -> AsyncIterator[bytes]:
        yield await asyncio.to_thread(_as_yaml, body)

    return ServerResponse(status=status, headers=(_HEADERS[0], ("Content-Type", YAML), *warnings), body=printed())


async def _one_by_one(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _as_yaml(body: bytes) -> bytes:
    return yaml.dump(msgspec.json.decode(body), Dumper=_DUMPER, allow_unicode=True, default_flow_style=False).encode()


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


def answer_refusal(request: ServerRequest, refused: Refused) -> ServerResponse:
    """The answer to a rejected request."""
    if request.info.is_resource and not request.wants_yaml:
        request.wants_yaml = _prefers_yaml(request.wire.header("Accept"))
    reply = answer(request, encode_status(refused.status), status=refused.status.code or 500)
    reply.headers = (*reply.headers, *refused.headers)
    return reply


def _prefers_yaml(accept: str | None) -> bool:
    """Whether a client that is rejected before negotiation prefers YAML."""
    if not accept or YAML not in accept:
        return False
    plain = (clause.name for clause in parse_accept(accept) if not clause.representation[0])
    return next((name for name in plain if name in {JSON, YAML, "*/*"}), JSON) == YAML


def page_not_found() -> ServerResponse:
    """The answer to an unknown path."""
    headers = (_HEADERS[0], ("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"))
    return ServerResponse(status=404, headers=headers, body=b"404 page not found\n")
