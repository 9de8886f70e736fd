"""deletecollection: DELETE of all selected objects of a namespace, one after another.

Not atomic, as in kube-apiserver: a failure in the middle does not restore earlier objects. An object that another
request deleted first is not a failure. Other requests are answered between two deletions.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from steersman.apiserver.context import VerbContext
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.forms import form_for
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.verbs.delete import delete_object, read_options
from steersman.apiserver.verbs.list import Listing, list_options
from steersman.apiserver.verbs.options import refuse_options, unsafe_problem
from steersman.apiserver.verbs.responses import answer_records
from steersman.transport import ServerResponse


async def delete_collection(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a DELETE of a collection, with the list of deleted objects."""
    definition = context.definition
    form = form_for(definition, request)
    selected = list_options(request)
    if selected.resource_version and not selected.resource_version_match:
        # kube-apiserver reads pages, for which a version means exactly that version.
        selected = replace(selected, resource_version_match="Exact")
    listing = Listing(context, request, selected)
    options = await read_options(context, request)
    if options.ignore_store_read_error_with_cluster_breaking_potential:
        why = "is not allowed with DELETECOLLECTION, try again after removing the option"
        raise refuse_options("DeleteOptions", [unsafe_problem(why)])
    records, meta = await listing.read()
    for record in records:
        parts = record.key.removeprefix(definition.prefix).split("/")
        namespace, name = (parts[0], parts[1]) if definition.namespaced else ("", parts[0])
        try:
            await delete_object(context, request, namespace, name, options)
        except RequestRejected as refused:
            if refused.status.code != 404:
                raise
        # A store in memory answers at once.
        await asyncio.sleep(0)
    return await answer_records(context, request, form, records, meta)
