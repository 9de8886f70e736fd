"""A prepared apply: checked and encoded once, before deciding whether to send it."""

from __future__ import annotations

from typing import Any, Generic

import msgspec

from steersman.client.bindings import Binding
from steersman.client.verbs.observers import Intent
from steersman.errors import ApiStatus, Conflict, Invalid
from steersman.objects import AnyObject
from steersman.wire import PatchOptions

#: A resource version that no object ever has. An apply with it creates a missing object and conflicts with an existing
#: one: servers compare versions only with an existing object. (The largest value that every server can parse.)
NO_VERSION = "9223372036854775807"

_METADATA = b'"metadata":{'


class PreparedApply(Generic[AnyObject]):
    """The content of an apply; made by ``_prepare_apply``."""

    __slots__ = ("binding", "intent", "obj", "options")

    def __init__(self, binding: Binding[Any], obj: AnyObject, intent: Intent, options: PatchOptions) -> None:
        self.binding = binding
        self.obj = obj
        self.intent = intent
        self.options = options

    def body_at(self, resource_version: str, uid: str = "") -> bytes:
        """The body, with a version and a uid if given. The intent omits both, so that it stays comparable."""
        named = {"resourceVersion": resource_version} if resource_version else {}
        if uid:
            named["uid"] = uid
        body = self.intent.body
        if not named:
            return body
        start = start_of_metadata(body)
        if start < 0:
            tree = msgspec.json.decode(body)
            tree["metadata"] = {**named, **tree["metadata"]}
            return msgspec.json.encode(tree)
        return b"%b%b,%b" % (body[:start], msgspec.json.encode(named)[1:-1], body[start:])


def start_of_metadata(body: bytes) -> int:
    """Where the fields of the object's own metadata begin; -1 if a scan cannot tell.

    Only metadata before any other nested object is certainly the object's own, and only if it is not empty.
    """
    found = body.find(_METADATA)
    start = found + len(_METADATA)
    return start if found > 0 and body.count(b"{", 0, found) == 1 and body[start : start + 1] != b"}" else -1


def another_uid(error: Invalid, uid: str) -> Conflict:
    """A Conflict for an object with another uid, which the server reports as an invalid change of metadata.uid."""
    message = f"another object than the one with uid {uid} exists under this name"
    return Conflict(ApiStatus(message=message, reason="Conflict", code=409), tried=error.tried)
