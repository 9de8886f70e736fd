"""Media types of bodies."""

from __future__ import annotations

import re

from steersman.apiserver.errors import unsupported_media_type
from steersman.wire import JSON, PROTOBUF, YAML

_MEDIA_TYPE = re.compile(r"\s*([^\s;,]+/[^\s;,]+)\s*(?:;\s*[^\s;,=]+=(?:[^\s;,\"]+|\"[^\"]*\")\s*)*")


def media_type_of(content_type: str | None) -> str:
    """The media type of a body; 415 if it is not supported."""
    if not content_type:
        return JSON
    match = _MEDIA_TYPE.fullmatch(content_type)
    given = match[1].lower() if match is not None else ""
    if given not in {JSON, YAML, PROTOBUF}:
        raise unsupported_media_type((JSON, YAML, PROTOBUF))
    return given
