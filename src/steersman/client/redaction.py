"""Errors and warnings of the server without the secret values of the request that caused them."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from steersman.errors import ApiError, StatusError
from steersman.objects.secret_values import HIDDEN, Redaction
from steersman.wire import HttpRequest, parse_path

#: Values of a Secret that the server quotes from its store, so that no request contains them: one, or the whole object.
_QUOTED = re.compile(r"((?:data|stringData)(?:\[[^\]]*\]|\.[\w.-]+)?: [A-Z]\w+ value: )(\"(?:[^\"\\]|\\.)*\"|[^\s:,]+)")
_WHOLE = re.compile(r"Invalid value: \"\{.*\}\"", re.DOTALL)
#: Reasons of causes that name a namespace or a field manager, on which callers decide, and never a value.
_QUOTES_NOTHING = frozenset({"NamespaceTerminating", "FieldManagerConflict"})


def redacted_text(text: str, request: HttpRequest) -> str:
    """A message of the server about a request, without secret values."""
    secret = _is_about_secrets(request)
    return _clean(text, Redaction(request.body, secret=secret) if request.body else Redaction(None), secret=secret)


def redacted(error: ApiError, request: HttpRequest) -> ApiError:
    """The same error without secret values."""
    if isinstance(error, StatusError):
        secret = _is_about_secrets(request)
        hide_values(error, Redaction(request.body, secret=secret) if request.body else Redaction(None), secret=secret)
    return error


def hide_values(error: StatusError, redaction: Redaction, *, secret: bool = False) -> None:
    """Remove secret values from an error's status; ``secret`` says that it is about a Secret."""
    status = error.status
    changed: dict[str, Any] = {"message": _clean(status.message, redaction, secret=secret)}
    if status.details is not None and status.causes:
        causes = tuple(
            msgspec.structs.replace(cause, message=_clean(cause.message, redaction, secret=secret))
            if cause.reason not in _QUOTES_NOTHING
            else cause
            for cause in status.causes
        )
        changed["details"] = msgspec.structs.replace(status.details, causes=causes)
    error.status = msgspec.structs.replace(status, **changed)
    error.args = (error.status,)


def _clean(text: str, redaction: Redaction, *, secret: bool) -> str:
    if secret:
        text = _QUOTED.sub(rf"\1{HIDDEN}", _WHOLE.sub(f"Invalid value: {HIDDEN}", text))
    return redaction(text)


def _is_about_secrets(request: HttpRequest) -> bool:
    try:
        place = parse_path(request.path)
    except ValueError:
        return False
    return place is not None and (place.group, place.resource) == ("", "secrets")
