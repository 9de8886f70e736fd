"""get: one object, never older than the request asks for."""

from __future__ import annotations

from steersman.apiserver.context import VerbContext
from steersman.apiserver.errors import bad_request, not_found, too_large_resource_version
from steersman.apiserver.forms import form_for
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Record
from steersman.apiserver.verbs.corrupt_objects.read_errors import read_one
from steersman.apiserver.verbs.options import read_version, version_of_get, wrong_version
from steersman.apiserver.verbs.responses import answer_object
from steersman.transport import ServerResponse
from steersman.wire import first_values


async def get(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a GET of an object or its status; both return the object."""
    form = form_for(context.definition, request)
    return await answer_object(context, request, form, await read(context, request))


async def read(context: VerbContext, request: ServerRequest) -> Record:
    """The object of a GET; 404 if it is missing."""
    options = first_values(request.wire.query) if request.wire.query else {}
    version = options.get("resourceVersion")
    if version is not None:
        await await_revision(context, _version(context, version))
    if options.get("export", "0").lower() not in {"0", "false"}:
        raise bad_request("the export parameter, deprecated since v1.14, is no longer supported")
    info = request.info
    record, _ = await context.storage.get(context.definition.storage_key(info.namespace, info.name))
    if record is None:
        raise not_found(context.definition.named, info.name)
    return await read_one(context, record)


def _version(context: VerbContext, text: str) -> int:
    if context.definition.ttl is None:
        return version_of_get(text)
    try:
        return read_version(text)
    except ValueError as error:
        # Events are read from the store itself, which reports this as the client's mistake.
        raise bad_request(f"invalid resource version: {wrong_version(text, error)}") from None


async def await_revision(context: VerbContext, wanted: int) -> None:
    """Wait until the store has reached a revision; 504 after a timeout."""
    current = await context.storage.revision()
    if wanted > current and not await context.feed.wait_for(wanted, context.limits.freshness):
        raise too_large_resource_version(wanted, await context.storage.revision())
