"""Converts failed responses to exceptions of `steersman.errors`, and parses warnings.

Guarantees
- Every response of 300 and above, and every 200 with a Status of failure, becomes one exception of the tree.
- A response that is not from a Kubernetes API server (a proxy's page, an empty body) is reported as such.
- No message shows a JSON body: it may be a Secret.
"""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus

import msgspec

from steersman.errors import (
    ApiError,
    ApiStatus,
    ProtocolError,
    StatusDetails,
    StatusError,
    decode_status,
    error_from_status,
)
from steersman.wire.content import APPLY_PATCH
from steersman.wire.frames import WatchFrame
from steersman.wire.options import is_watch
from steersman.wire.paths import parse_path
from steersman.wire.requests import WRITE_VERBS, HttpRequest

_TEXT_MAX = 200
_TITLE = re.compile(rb"<title[^>]*>([^<]{1,200})</title>", re.IGNORECASE)


def _might_be_status(body: bytes) -> bool:
    """Whether a body starts like a Status; quick, and a False is always right."""
    return b'"Status"' in body[:160]


def raise_for_failure(body: bytes, *, tried: str) -> None:
    """Raise if the body of a successful response is a Status of failure."""
    if _might_be_status(body):
        status = decode_status(body)
        if status is not None and status.status == "Failure":
            raise error_from_status(status, tried=tried)


def error_from_response(status: int, headers: Mapping[str, str], body: bytes, *, tried: str) -> ApiError:
    """The error of a response of 300 and above. `headers` is looked up in the case written here."""
    if 300 <= status < 400:
        return ProtocolError(
            f"{tried}: the server redirects ({status}), which the Kubernetes API never does:"
            " check the address of the server; it may be a login page"
        )
    answer = decode_status(body)
    if answer is None or answer.status == "Success":
        answer = ApiStatus(status="Failure", code=status, message=_explain(status, headers, body))
    elif not answer.code:
        answer = msgspec.structs.replace(answer, code=status)
    if not answer.retry_after_seconds and (seconds := _retry_after(headers)):
        details = msgspec.structs.replace(answer.details or StatusDetails(), retry_after_seconds=seconds)
        answer = msgspec.structs.replace(answer, details=details)
    return error_from_status(answer, tried=tried)


def error_from_frame(frame: WatchFrame, *, tried: str) -> StatusError | ProtocolError:
    """The error in a watch frame of type ERROR."""
    status = decode_status(frame.object)
    if status is None:
        return ProtocolError(f"{tried}: the server ended the watch with an error that is not a Status")
    return error_from_status(status, tried=tried)


def _retry_after(headers: Mapping[str, str]) -> int:
    """Parse the Retry-After header in seconds; a date would need a clock, and Kubernetes sends none."""
    text = headers.get("Retry-After", "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _explain(status: int, headers: Mapping[str, str], body: bytes) -> str:
    """Describe a response that is not a Status."""
    content_type = headers.get("Content-Type", "").partition(";")[0].strip().lower()[:60]
    if not body.strip():
        said = "an empty body"
    elif title := _TITLE.search(body[:65536]):
        said = f'a web page, "{_printable(title[1])}"'
    elif content_type == "text/plain" and not body.lstrip().startswith((b"{", b"[")):
        # one-line messages of Go programs and proxies: "404 page not found", "upstream connect error"
        return f"the server returned {_phrase(status)}: {_printable(body)}"
    else:
        said = f"{len(body)} bytes of {content_type or 'an unnamed type'}"
    return (
        f"the server returned {_phrase(status)} with {said} instead of a Kubernetes Status:"
        " a proxy or another service may be answering"
    )


def _phrase(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _printable(text: bytes) -> str:
    words = " ".join(text[: 4 * _TEXT_MAX].decode("utf-8", "replace").split())
    shown = "".join(char if char.isprintable() else "?" for char in words)
    return shown if len(shown) <= _TEXT_MAX else shown[:_TEXT_MAX] + "..."


_VERBS = {**WRITE_VERBS, "GET": "get", "HEAD": "get"}


def describe_request(request: HttpRequest) -> str:
    """Describe a request: `update configmaps "a" in namespace "b"`; omits queries and headers."""
    path = parse_path(request.path)
    if path is None:
        return f"{request.method} {request.path}"
    verb = _VERBS.get(request.method, request.method)
    if path.name is None and verb == "get":
        verb = "watch" if is_watch(request.query) else "list"
    elif path.name is None and verb == "delete":
        verb = "delete all of"
    elif verb == "patch" and (request.header("Content-Type") or "").startswith(APPLY_PATCH):
        verb = "apply"
    resource = f"{path.resource}.{path.group}" if path.group else path.resource
    parts = [verb]
    if path.subresource is not None:
        parts += [path.subresource, "of"]
    parts.append(resource)
    if path.name is not None:
        parts.append(f'"{path.name}"')
    if path.namespace is not None:
        parts.append(f'in namespace "{path.namespace}"')
    return " ".join(parts)


# Possessive, so that an invalid header is scanned once, however many spaces it has.
_WARNING = re.compile(r'\s*+,?+\s*+(\d{3})\s++(\S++)\s++"((?:[^"\\]|\\.)*+)"(?:\s++"[^"]*+")?+')


def parse_warnings(headers: str | Iterable[str]) -> list[str]:
    """Parse `Warning` headers, one or several in each value; all but code 299 are dropped."""
    texts: list[str] = []
    for value in (headers,) if isinstance(headers, str) else headers:
        position = 0
        while found := _WARNING.match(value, position):
            position = found.end()
            if found[1] == "299":
                texts.append(re.sub(r"\\(.)", r"\1", found[3]))
    return texts


def print_warning(text: str) -> str:
    """Print a `Warning` header as kube-apiserver does; control characters become spaces."""
    plain = text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
