"""Managed fields of a write, within the store's limit on an object."""

from __future__ import annotations

import msgspec

from steersman.apiserver.context import VerbContext
from steersman.apiserver.field_managers import managed_of, manager_of, updated, without_managed
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.request import ServerRequest


def managed_update(
    context: VerbContext, request: ServerRequest, old: Tree | None, new: Tree, field_manager: str
) -> Tree:
    """The object to write in place of ``new``, with its managed fields; ``old`` is None for a creation.

    An object that is too large for the store even without them gets none: it is rejected anyway.
    """
    if request.size > context.limits.object and _is_too_large(context, request, new):
        return without_managed(new)
    managed = managed_of(context.registry, context.definition, request.info.subresource)
    limit = context.limits.object

    def fits(length: int) -> bool:
        # What is much longer than its managed fields is not encoded to find that out: the store does.
        return length < limit // 8 or length + len(msgspec.json.encode(new)) <= limit

    return updated(managed, old, new, manager_of(request, field_manager), fits=fits)


def _is_too_large(context: VerbContext, request: ServerRequest, new: Tree) -> bool:
    """Whether the parts of an object that this request may change are too large for the store."""
    of_status = request.info.subresource == "status"
    parts = {
        name: value
        for name, value in new.items()
        if name != "metadata" and ((name == "status") == of_status or not context.definition.has_status)
    }
    return len(msgspec.json.encode(parts)) > context.limits.object
