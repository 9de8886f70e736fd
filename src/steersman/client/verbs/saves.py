"""Composed writes: read, change and write in one call, sending nothing if nothing changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from steersman.client.bindings import Binding, VerbCall
from steersman.client.checks import check_constraints, check_whole
from steersman.client.results import OperationResult
from steersman.client.retries import retry_on_conflict
from steersman.client.stages.pipeline import Pipeline
from steersman.client.stages.senders import send_write
from steersman.errors import AlreadyExists, NotFound
from steersman.objects import (
    AnyObject,
    Kind,
    Object,
    Unstructured,
    encode_any,
    has_status_subresource,
    same_json,
    tree_as_read,
)


async def create_or_write(
    obj: AnyObject,
    mutate: Callable[[AnyObject], None],
    *,
    get: Callable[[Any, Any], Awaitable[Any]],
    create: Callable[[AnyObject], Awaitable[AnyObject]],
    write: Callable[[AnyObject], Awaitable[AnyObject]],
) -> OperationResult[AnyObject]:
    """Change and write an existing object, or create it; start over after a conflict, up to five times in all."""
    kind: Any = Kind(obj.api_version, obj.kind) if isinstance(obj, Unstructured) else type(obj)
    mutated = False

    async def attempt() -> OperationResult[AnyObject]:
        nonlocal mutated
        try:
            current: AnyObject = await get(kind, obj.key)
        except NotFound:
            if not mutated:
                mutate(obj)
                mutated = True
            try:
                return OperationResult("created", await create(obj))
            except AlreadyExists:
                current = await get(kind, obj.key)
        mutate(current)
        if same_json(msgspec.json.decode(encode_any(current)), tree_as_read(current)):
            return OperationResult("unchanged", current)
        return OperationResult("updated", await write(current))

    return await retry_on_conflict(attempt)


async def save(pipeline: Pipeline, obj: AnyObject) -> OperationResult[AnyObject]:
    """Write the changes of an object that was read: the object, then its status."""
    before = tree_as_read(obj)
    if before is None:
        raise ValueError(f"{obj.kind} {obj.key} was not read from the server; call create() or apply() instead")
    wanted: dict[str, Any] = msgspec.json.decode(encode_any(obj))
    binding = await pipeline.kinds.bind_object(obj)
    split = await _has_status(pipeline, binding, obj)
    changed = {name for name in wanted | before if not same_json(wanted.get(name), before.get(name))}
    status_changed, object_changed = "status" in changed, bool(changed - {"status"})
    saved = obj
    key = pipeline.kinds.key(binding, obj.key)
    if object_changed or (status_changed and not split):
        tried = VerbCall("update", binding.gvk, key)
        check_whole(obj, tried)
        if pipeline.settings.validate:
            check_constraints(obj, tried)
        body = encode_any(obj)
        saved = await send_write(pipeline.sender, "update", binding, key, body, pipeline.settings.options())
    if status_changed and split:
        body = _with_status(saved, wanted.get("status"))
        options = pipeline.settings.options()
        saved = await send_write(pipeline.sender, "update", binding, key, body, options, subresource="status")
    return OperationResult("updated" if object_changed or status_changed else "unchanged", saved)


async def _has_status(pipeline: Pipeline, binding: Binding[Any], obj: Object | Unstructured) -> bool:
    if isinstance(obj, Unstructured):
        described = await pipeline.kinds.discovery.resource_of(binding.gvk)
        return any(subresource.name == "status" for subresource in described.subresources)
    return has_status_subresource(type(obj))


def _with_status(saved: Object | Unstructured, status: Any) -> bytes:
    """The object as just saved, with the wanted status."""
    tree: dict[str, Any] = msgspec.json.decode(encode_any(saved))
    if status is None:
        tree.pop("status", None)
    else:
        tree["status"] = status
    return msgspec.json.encode(tree)
