"""Bodies of deletions: the options that they hold, as JSON."""

from __future__ import annotations

import msgspec

from steersman.apiserver import protobuf
from steersman.apiserver.decoding.media_types import media_type_of
from steersman.apiserver.errors import bad_request
from steersman.apiserver.go_types.shapes import referred
from steersman.apiserver.json_trees import check_values
from steersman.apiserver.request import ServerRequest
from steersman.wire import JSON, YAML

_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


def read_delete_options(request: ServerRequest, body: bytes) -> bytes:
    """The options of a deletion in a body, as JSON."""
    media_type = media_type_of(request.wire.header("Content-Type"))
    if media_type == JSON:
        check_values(body)
        return body
    if media_type == YAML:
        return _yaml_as_json(body)
    try:
        _, kind, message = envelope = protobuf.read_envelope(body)
        # For any other kind, only the mismatch is reported.
        tree = protobuf.read_message(message, referred(_DELETE_OPTIONS)) if kind in {"", "DeleteOptions"} else {}
    except (protobuf.Malformed, UnicodeEncodeError) as error:
        raise bad_request(str(error)) from None
    return msgspec.json.encode({"kind": kind, "apiVersion": envelope.api_version, **tree})


def _yaml_as_json(body: bytes) -> bytes:
    from steersman.apiserver.decoding.yaml_text import UnreadableYaml, read_yaml  # noqa: PLC0415 - few clients send YAML

    try:
        return msgspec.json.encode(read_yaml(body)[0])
    except (UnreadableYaml, UnicodeEncodeError) as error:
        raise bad_request(str(error)) from None
