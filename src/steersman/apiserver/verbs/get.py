"""get: one object, never older than the request asks for."""

from __future__ import annotations

from steersman.apiserver.answers import answer
from steersman.apiserver.context import VerbContext
from steersman.apiserver.errors import not_found, too_large_resource_version
from steersman.apiserver.presenting import form_for
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Record
from steersman.apiserver.verbs.options import version_of_get
from steersman.transport import ServerResponse


async def get(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a GET of an object, or of its status, which is the object too."""
    form = form_for(context.definition, request)
    return answer(request, form.one(await read(context, request)))


async def read(context: VerbContext, request: ServerRequest) -> Record:
    """The object that a GET is about; 404 if it is not there."""
    for name, value in request.wire.query:
        if name == "resourceVersion":
            await await_revision(context, version_of_get(value))
            break
    info = request.info
    record, _ = await context.storage.get(context.definition.storage_key(info.namespace, info.name))
    if record is None:
        raise not_found(context.definition.named, info.name)
    return record


async def await_revision(context: VerbContext, wanted: int) -> None:
    """Wait until a revision has happened; 504 if it does not in time. What has happened is in the store."""
    current = await context.storage.revision()
    if wanted > current and not await context.feed.wait_for(wanted, context.limits.freshness):
        raise too_large_resource_version(wanted, await context.storage.revision())
