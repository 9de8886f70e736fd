"""Subresources of custom kinds, answered by functions of the program."""

from __future__ import annotations

from steersman.apiserver.context import VerbContext
from steersman.apiserver.documents import decode_served
from steersman.apiserver.errors import method_not_allowed
from steersman.apiserver.handlers import SubresourceRequest, answered
from steersman.apiserver.registry.definition import Subresource
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.verbs.get import read
from steersman.transport import ServerResponse
from steersman.wire import first_values


async def call_handler(context: VerbContext, request: ServerRequest, subresource: Subresource) -> ServerResponse:
    """Answer a request for a subresource of an existing object with its handler."""
    handler, info, wire = subresource.handler, request.info, request.wire
    assert handler is not None
    if info.verb not in subresource.verbs or wire.method == "HEAD":
        raise method_not_allowed()
    record = await read(context, request)
    asked = SubresourceRequest(
        verb=info.verb,
        namespace=info.namespace,
        name=info.name,
        query=first_values(wire.query),
        body=wire.body or b"",
        user=request.user.name,
        obj=decode_served(context.definition, record),
    )
    subject = f"{context.definition.resource}/{info.subresource} of {info.name}"
    return await answered(request, subject, handler(asked), content_type=subresource.content_type)
