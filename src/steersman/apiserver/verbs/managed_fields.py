"""Managed fields of a write, within the store's limit on an object."""

from __future__ import annotations

import msgspec

from steersman.apiserver.context import VerbContext
from steersman.apiserver.decoding.stored_size import stored_size
from steersman.apiserver.documents import encode_stored
from steersman.apiserver.errors import too_large
from steersman.apiserver.field_managers import (
    Managed,
    WebhookResults,
    managed_of,
    manager_of,
    updated,
    without_managed,
)
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.request import ServerRequest


def managed_update(
    context: VerbContext,
    request: ServerRequest,
    old: Tree | None,
    new: Tree,
    field_manager: str,
    results: WebhookResults | None = None,
) -> Tree:
    """The object to write in place of ``new``, with its managed fields; ``old`` is None for a creation.

    An object that is too large for the store even without them gets none: it is rejected anyway.
    """
    if request.size > context.limits.object and _is_too_large(context, request, new):
        return without_managed(new)
    managed = managed_of(context.registry, context.definition, request.info.subresource, results)
    limit = context.limits.object

    def fits(length: int) -> bool:
        # Computing the size of an object is slow. With few managed fields, only the store computes it.
        return length < limit // 8 or length + stored_size(context.definition, new) <= limit

    # The managed fields of a small object are small, and not even counted.
    before = msgspec.json.encode(old["metadata"].get("managedFields")) if old is not None else b""
    is_small = request.size < limit // 256 and len(before) < limit // 16
    return updated(managed, old, new, manager_of(request, field_manager), fits=None if is_small else fits)


def check_applied(context: VerbContext, request: ServerRequest, managed: Managed, intent: Tree) -> None:
    """413 if an applied object is too large for the store with its managed fields, before they are computed."""
    limit = context.limits.object
    if request.size * 3 < limit:
        return
    try:
        stored, length = managed.fields.recorded(intent)
    except RecursionError:
        # The apply rejects it with its own message.
        return
    if length + stored_size(context.definition, stored) > limit:
        raise too_large("etcdserver: request is too large")


def _is_too_large(context: VerbContext, request: ServerRequest, new: Tree) -> bool:
    """Whether the parts of an object that this request may change are too large for the store."""
    of_status = request.info.subresource == "status"
    parts = {
        name: value
        for name, value in new.items()
        if name != "metadata" and ((name == "status") == of_status or not context.definition.has_status)
    }
    return stored_size(context.definition, parts) > context.limits.object


def small_enough(context: VerbContext, obj: Tree, value: bytes, *, spares: bool) -> bytes:
    """The bytes of an object within the store's limit: ``value`` or, if that is too long, without its managed fields.

    413 if that does not help, or they must be kept.
    """
    limit = context.limits.object
    while len(value) > limit and stored_size(context.definition, obj) > limit:
        if not spares:
            raise too_large("etcdserver: request is too large")
        obj, spares = without_managed(obj), False
        value = encode_stored(obj)
    return value
