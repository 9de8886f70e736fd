"""create: POST to a collection.

Guarantees
- An object gets its identity only here; fields that only the server may set are not taken from the request.
- A generated name that is taken is generated again, a few times.
- A dry run skips only the last step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from steersman.aio import name_suffix
from steersman.apiserver.admission.plugins import Attributes
from steersman.apiserver.context import VerbContext
from steersman.apiserver.decoding.body import read_object
from steersman.apiserver.decoding.media_types import media_type_of
from steersman.apiserver.documents import copied
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.field_managers import keep_readable
from steersman.apiserver.forms import form_for
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.registry.metadata import wipe_system_fields
from steersman.apiserver.request import ServerRequest, read_body
from steersman.apiserver.storage import Record
from steersman.apiserver.verbs.duplicate_owners import warn_of_duplicate_owners
from steersman.apiserver.verbs.managed_fields import managed_update
from steersman.apiserver.verbs.new_object import store_new
from steersman.apiserver.verbs.object_names import take_namespace
from steersman.apiserver.verbs.options import WriteOptions, write_options
from steersman.apiserver.verbs.responses import answer_object
from steersman.transport import ServerResponse

#: Attempts to generate a free name.
_ATTEMPTS = 8
_GENERATED_MAX = 58


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
        warn_of_duplicate_owners(request, obj["metadata"])
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
        field_manager, body = options.field_manager, obj
        obj = await context.workers.run(
            lambda: managed_update(context, request, None, body, field_manager), size=request.size
        )
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
    taken: RequestRejected | None = None
    for named in _named(obj):
        try:
            return await store_new(context, attributes, named, options, allocates=allocates, spares=manages)
        except RequestRejected as refused:
            if named is obj or refused.status.reason != "AlreadyExists":
                raise
            taken = refused
    assert taken is not None
    raise taken


def _named(obj: Tree) -> Iterator[Tree]:
    """An object with its own name, or copies of it with generated names, one for each attempt."""
    metadata: Tree = obj["metadata"]
    if "name" in metadata or "generateName" not in metadata:
        yield obj
        return
    prefix: str = metadata["generateName"]
    for _ in range(_ATTEMPTS):
        named: Tree = copied(obj)
        named["metadata"]["name"] = f"{prefix[:_GENERATED_MAX]}{name_suffix()}"
        yield named
