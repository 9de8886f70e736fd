"""New objects: completed, validated and stored, once admission plugins have changed them.

Guarantees
- The server alone sets the identity of an object, and fields that a creator may not set are cleared.
- An object that is rejected gives back the scarce values that it got.
- A dry run skips only the last steps.
- What is checked of its namespace and of its definition holds when it is stored, however long its webhooks have taken.
"""

from __future__ import annotations

from contextlib import nullcontext

import msgspec

from steersman.apiserver.admission.plugins import Attributes
from steersman.apiserver.context import VerbContext
from steersman.apiserver.documents import encode_served
from steersman.apiserver.errors import RequestRejected, already_exists, invalid, name_taken, unnamed
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.registry.metadata import fill_system_fields, validate_new
from steersman.apiserver.storage import Mismatch, Record
from steersman.apiserver.verbs.allocation import allocated
from steersman.apiserver.verbs.managed_fields import small_enough
from steersman.apiserver.verbs.options import WriteOptions, read_version


async def store_new(
    context: VerbContext, attributes: Attributes, obj: Tree, options: WriteOptions, *, allocates: bool, spares: bool
) -> Record:
    """Store an object that has a name. The tree is consumed.

    Without ``allocates``, it gets no scarce values. ``spares``: it may lose its managed fields, if it is too large.
    """
    size, metadata = attributes.request.size, obj["metadata"]
    await context.workers.run(lambda: _complete(attributes, obj, allocates=allocates), size=size)
    allocation = allocated(context, obj, None, dry_run=options.dry_run) if allocates else nullcontext()
    async with allocation:
        attributes.obj, attributes.name = obj, metadata["name"]
        await _judge(context, attributes)
        return await _put(context, attributes, obj, options, spares=spares)


def _complete(attributes: Attributes, obj: Tree, *, allocates: bool) -> None:
    """Fill in the fields that the server sets, and validate the object."""
    request, definition = attributes.request, attributes.definition
    strategy, metadata = definition.strategy, obj["metadata"]
    fill_system_fields(metadata)
    if definition.has_status and not strategy.keeps_new_status:
        obj.pop("status", None)
        if not definition.custom:
            obj["status"] = {}
    if strategy.counts_generations:
        metadata["generation"] = 1
    for text in strategy.prepare_warnings(obj):
        request.warn(text)
    strategy.prepare_create(obj)
    strategy.record_user(obj, request.user)
    judged = strategy.validate_create if allocates else strategy.validate_unallocated
    problems = strategy.validate_type(obj) or validate_new(definition, metadata, judged(obj))
    if problems:
        raise invalid(definition.refused_as(obj), metadata.get("name", ""), problems)
    for text in strategy.warnings(obj, None):
        request.warn(text)
    strategy.complete(obj)


async def _judge(context: VerbContext, attributes: Attributes) -> None:
    request = attributes.request
    if request.info.verb != "create" and request.authorize is not None:
        # Permission to change objects does not include creating them.
        await request.authorize("create")
    await context.admission.validate(attributes)


async def _put(
    context: VerbContext, attributes: Attributes, obj: Tree, options: WriteOptions, *, spares: bool
) -> Record:
    definition, metadata = context.definition, obj["metadata"]
    name: str = metadata["name"]
    version: str = metadata.pop("resourceVersion", "")
    key = definition.storage_key(metadata.get("namespace", ""), name)
    generated = "generateName" in metadata
    await context.make_storable(obj)
    value = await context.workers.run(
        lambda: small_enough(context, obj, encode_served(definition, obj), spares=spares), size=attributes.request.size
    )
    if options.dry_run:
        there, _ = await context.storage.get(key)
        if there is not None:
            raise _taken(context, name, there, generated=generated)
        # It is not stored, so its version does not matter.
        return await context.readable(Record(key, value, 0, int(version) if _is_version(version) else 0))
    if _is_version(version):
        raise unnamed("resourceVersion should not be set on objects to be created")
    await context.admission.repeat(attributes)
    try:
        return await context.readable(await context.storage.put(key, value, expect=0, ttl=definition.ttl))
    except Mismatch as mismatch:
        raise _taken(context, name, mismatch.current, generated=generated) from None


def _is_version(text: str) -> bool:
    """Whether a text is an object's version; other texts are ignored, as in kube-apiserver."""
    try:
        return read_version(text) > 0
    except ValueError:
        return False


def _taken(context: VerbContext, name: str, there: Record | None, *, generated: bool) -> RequestRejected:
    named = context.definition.named
    refused = name_taken(named, name) if generated else already_exists(named, name)
    if there is not None and b'"deletionTimestamp":' in there.value:
        message = f"object is being deleted: {refused.status.message}"
        return RequestRejected(msgspec.structs.replace(refused.status, message=message), refused.headers)
    return refused
