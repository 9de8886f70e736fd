"""Objects that clients post to a subresource and that are not stored, such as an Eviction.

Guarantee: the body is checked in the order of a create: its format, its length, the options, and then its content.
"""

from __future__ import annotations

from steersman.apiserver.admission.plugins import Attributes, WriteView
from steersman.apiserver.context import VerbContext
from steersman.apiserver.decoding.body import read_object
from steersman.apiserver.decoding.media_types import media_type_of
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.request import ServerRequest, read_body
from steersman.apiserver.verbs.object_names import take_namespace
from steersman.apiserver.verbs.options import WriteOptions, write_options


async def read_posted(
    context: VerbContext, request: ServerRequest, definition: Definition
) -> tuple[Tree, WriteOptions]:
    """The object in the body of a request, in the namespace of its path, and the options of the write."""
    media_type_of(request.wire.header("Content-Type"))
    body = read_body(request, context.limits.body)
    options = write_options(request, "CreateOptions")
    obj = await context.workers.run(
        lambda: read_object(definition, request, body, options.field_validation), size=request.size
    )
    take_namespace(definition, request.info.namespace, obj["metadata"])
    return obj, options


def posted_attributes(
    context: VerbContext, request: ServerRequest, definition: Definition, obj: Tree, *, name: str, dry_run: bool
) -> Attributes:
    """What admission plugins see: the creation of the posted object, under the name of the object that it concerns."""
    return Attributes(
        context,
        request,
        "CREATE",
        namespace=request.info.namespace,
        name=name,
        obj=obj,
        old=None,
        dry_run=dry_run,
        view=WriteView(definition),
    )
