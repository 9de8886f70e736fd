"""A prepared apply: checked and encoded once, before deciding whether to send it."""

from __future__ import annotations

from typing import Any, Generic

import msgspec

from steersman.client.bindings import Binding, VerbCall
from steersman.client.kind_bindings import KindBindings
from steersman.client.stages.observers import Intent
from steersman.client.stages.write_settings import WriteSettings
from steersman.errors import ApiStatus, Conflict, Invalid, NotAnIntent
from steersman.objects import (
    AnyObject,
    Key,
    Object,
    Unstructured,
    check_cluster_scoped,
    encode_any,
    replace,
    set_owner,
    was_read,
)
from steersman.wire import PatchOptions

#: A resource version that no object ever has. An apply with it creates a missing object and conflicts with an existing
#: one: servers compare versions only with an existing object. (The largest value that every server can parse.)
NO_VERSION = "9223372036854775807"

_METADATA = b'"metadata":{'


class PreparedApply(Generic[AnyObject]):
    """The content of an apply."""

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
    position = body.find(_METADATA)
    start = position + len(_METADATA)
    return start if position > 0 and body.count(b"{", 0, position) == 1 and body[start : start + 1] != b"}" else -1


def another_uid(error: Invalid, uid: str) -> Conflict:
    """A Conflict for an object with another uid, which the server reports as an invalid change of metadata.uid."""
    message = f"another object than the one with uid {uid} exists under this name"
    return Conflict(ApiStatus(message=message, reason="Conflict", code=409), tried=error.tried)


async def prepare_apply(
    kinds: KindBindings,
    settings: WriteSettings,
    obj: AnyObject,
    *,
    owner: Object | Unstructured | None = None,
    force: bool = False,
    field_manager: str | None = None,
    subresource: str = "",
    dry_run: bool = False,
    token: bytes = b"",
) -> PreparedApply[AnyObject]:
    """Check and encode an apply once, for callers that decide later whether and how to send it."""
    binding = await kinds.bind_object(obj)
    key = kinds.key(binding, obj.key)
    manager = field_manager or settings.field_manager
    if not manager:
        raise ValueError(
            f"{VerbCall('apply', binding.gvk, key)}: apply needs a field manager; write"
            " Manager(name='site-operator') or Client.connect(field_manager='site-operator'). The server records"
            " field ownership under this name: keep it the same across runs"
        )
    if was_read(obj):
        raise NotAnIntent(
            f"{VerbCall('apply', binding.gvk, key)}: the object was read from the server, and applying it would"
            " claim all its fields; build an object with the fields you want to set, or call update() or"
            " patch_from()"
        )
    if owner is not None:
        obj = owned_by(obj, owner, key)
    options = PatchOptions(
        dry_run=dry_run, field_manager=manager, field_validation=settings.field_validation, force=force or None
    )
    declared = None if isinstance(obj, Unstructured) else type(obj)
    intent = Intent(binding.gvk, key, encode_any(obj), manager, subresource, declared, token)
    return PreparedApply(binding, obj, intent, options)


def owned_by(obj: AnyObject, owner: Object | Unstructured, key: Key) -> AnyObject:
    """A copy of ``obj`` with ``owner`` as its controller; the caller's object is unchanged."""
    if not key.namespace:
        check_cluster_scoped(obj, owner)
    if isinstance(obj, Unstructured):
        own: dict[str, Any] = {**obj.metadata, "namespace": key.namespace} if key.namespace else {**obj.metadata}
        copy: Any = Unstructured({**obj.tree, "metadata": own})
    else:
        copy = replace(obj, metadata=replace(obj.metadata, namespace=key.namespace or None))
    set_owner(copy, owner)
    return copy
