"""create: POST to a collection.

Guarantees
- An object gets its identity only here; fields that only the server may set are not taken from the request.
- A generated name that is taken is generated again, a few times.
- A dry run skips only the last step.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from steersman.aio import name_suffix
from steersman.apiserver.admission.attributes import Attributes
from steersman.apiserver.context import VerbContext
from steersman.apiserver.decoding.body import read_object
from steersman.apiserver.decoding.media_types import media_type_of
from steersman.apiserver.decoding.stored_size import stored_size
from steersman.apiserver.documents import copied, encode_served, encode_stored
from steersman.apiserver.errors import RequestRejected, already_exists, invalid, name_taken, too_large, unnamed
from steersman.apiserver.field_managers import keep_readable, without_managed
from steersman.apiserver.forms import form_for
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.registry.metadata import dedupe_owners, fill_system_fields, validate_new, wipe_system_fields
from steersman.apiserver.request import ServerRequest, read_body
from steersman.apiserver.storage import Mismatch, Record
from steersman.apiserver.verbs.managed_fields import managed_update
from steersman.apiserver.verbs.object_names import take_namespace
from steersman.apiserver.verbs.options import WriteOptions, read_version, write_options
from steersman.apiserver.verbs.responses import answer_object
from steersman.transport import ServerResponse

#: Attempts to generate a free name.
_ATTEMPTS = 8
_GENERATED_MAX = 58

DUPLICATE_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
)


async def create(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a POST to a collection."""
    definition = context.definition
    form = form_for(definition, request)
    media_type_of(request.wire.header("Content-Type"))
    body = read_body(request, context.limits.body)
    options = write_options(request, "CreateOptions")

    def new_object() -> Tree:
        obj = read_object(definition, request, body, options.field_validation)
        take_namespace(definition, request.info.namespace, obj["metadata"])
        wipe_system_fields(obj["metadata"])
        definition.strategy.default(obj)
        return obj

    obj = await context.workers.run(new_object, size=request.size)
    record = await create_object(context, request, obj, options)
    return await answer_object(context, request, form, record, status=201)


async def create_object(
    context: VerbContext,
    request: ServerRequest,
    obj: Tree,
    options: WriteOptions,
    *,
    admitted: Callable[[Tree], None] | None = None,
    allocates: bool = True,
    manages: bool = True,
) -> Record:
    """Store a new object whose body was read and whose defaults are filled in. The tree is consumed.

    ``admitted`` is called with its metadata when only its own validation can still fail. Without ``allocates``, it gets
    no scarce values. Without ``manages``, it already has managed fields, and needs them.
    """
    if manages:
        obj = await context.workers.run(lambda: _managed(context, request, obj, options), size=request.size)
    metadata: Tree = obj["metadata"]
    managed = metadata.get("managedFields")
    attributes = Attributes(
        context,
        request,
        "CREATE",
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        obj=obj,
        old=None,
        dry_run=options.dry_run,
    )
    await context.admission.admit(attributes)
    keep_readable(request, metadata, managed)
    if admitted is not None:
        admitted(metadata)
    warn_of_duplicate_owners(request, metadata, admitted=True)
    if "name" in metadata or "generateName" not in metadata:
        return await _store(context, attributes, obj, options, allocates=allocates, spares=manages)
    taken: RequestRejected | None = None
    for _ in range(_ATTEMPTS):
        attempt: Tree = copied(obj)
        prefix: str = metadata["generateName"]
        attempt["metadata"]["name"] = f"{prefix[:_GENERATED_MAX]}{name_suffix()}"
        try:
            return await _store(context, attributes, attempt, options, allocates=allocates, spares=manages)
        except RequestRejected as refused:
            if refused.status.reason != "AlreadyExists":
                raise
            taken = refused
    assert taken is not None
    raise taken


def _managed(context: VerbContext, request: ServerRequest, obj: Tree, options: WriteOptions) -> Tree:
    warn_of_duplicate_owners(request, obj["metadata"])
    return managed_update(context, request, None, obj, options.field_manager)


def warn_of_duplicate_owners(request: ServerRequest, metadata: Tree, *, admitted: bool = False) -> None:
    """Drop duplicate owner references, with a warning that says whether they were found after admission."""
    duplicates = dedupe_owners(metadata)
    if duplicates:
        when = " after mutating admission happens" if admitted else ""
        request.warn(DUPLICATE_OWNERS.format(when=when, uids=", ".join(duplicates)))


async def _store(
    context: VerbContext, attributes: Attributes, obj: Tree, options: WriteOptions, *, allocates: bool, spares: bool
) -> Record:
    strategy, size = context.definition.strategy, attributes.request.size
    metadata: Tree = obj["metadata"]
    await context.workers.run(lambda: _complete(attributes, obj, allocates=allocates), size=size)
    if allocates:
        await strategy.allocate(obj, None, context, dry_run=options.dry_run)
    try:
        attributes.obj, attributes.name = obj, metadata["name"]
        await _judge(context, attributes)
        return await _put(context, obj, options, size=size, spares=spares)
    except BaseException:
        if allocates:
            await strategy.released(obj, context)
        raise


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


async def _put(context: VerbContext, obj: Tree, options: WriteOptions, *, size: int, spares: bool) -> Record:
    definition, metadata = context.definition, obj["metadata"]
    name: str = metadata["name"]
    version: str = metadata.pop("resourceVersion", "")
    key = definition.storage_key(metadata.get("namespace", ""), name)
    generated = "generateName" in metadata
    await context.make_storable(obj)
    value = await context.workers.run(
        lambda: small_enough(context, obj, encode_served(definition, obj), spares=spares), size=size
    )
    if options.dry_run:
        there, _ = await context.storage.get(key)
        if there is not None:
            raise _taken(context, name, there, generated=generated)
        # It is not stored, so its version does not matter.
        return await context.readable(Record(key, value, 0, int(version) if _is_version(version) else 0))
    if _is_version(version):
        raise unnamed("resourceVersion should not be set on objects to be created")
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


def small_enough(context: VerbContext, obj: Tree, value: bytes, *, spares: bool) -> bytes:
    """The bytes of an object within the store's limit: ``value`` or, if that is too long, without its managed fields.

    413 if that does not help, or they must be kept.
    """
    limit = context.limits.object
    if len(value) > limit and spares and stored_size(context.definition, obj) > limit:
        obj = without_managed(obj)
        value = encode_stored(obj)
    if len(value) > limit and stored_size(context.definition, obj) > limit:
        raise too_large("etcdserver: request is too large")
    return value


def _taken(context: VerbContext, name: str, there: Record | None, *, generated: bool) -> RequestRejected:
    named = context.definition.named
    refused = name_taken(named, name) if generated else already_exists(named, name)
    if there is not None and b'"deletionTimestamp":' in there.value:
        message = f"object is being deleted: {refused.status.message}"
        return RequestRejected(msgspec.structs.replace(refused.status, message=message), refused.headers)
    return refused
