"""A whole JSON body in another media type."""

from __future__ import annotations

from steersman.apiserver import protobuf
from steersman.apiserver.json_trees import decode_tree
from steersman.wire import JSON, PROTOBUF, YAML


def encoded(media_type: str, body: bytes) -> tuple[bytes, str]:
    """A JSON body in another media type, and that type. Returns JSON if the body has no such form."""
    if media_type == YAML:
        from steersman.apiserver.encodings.yaml_writer import to_yaml  # noqa: PLC0415 - few clients want YAML

        return to_yaml(decode_tree(body)), YAML
    message = protobuf.to_protobuf(body)
    return (body, JSON) if message is None else (message, PROTOBUF)
