"""get and list of ComponentStatuses: kube-apiserver's deprecated report on the parts of a control plane; none is stored.

Guarantees
- The names are kube-apiserver's. The store is reported as ``etcd-0``, healthy if it answers.
- This server does not call other programs, so the health of the scheduler and of the controller manager is unknown.
"""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.apiserver.answers import answer
from steersman.apiserver.context import VerbContext
from steersman.apiserver.errors import Named, not_found
from steersman.apiserver.forms import ListMetadata, WholeForm, form_for
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Record, StorageError
from steersman.apiserver.verbs.list import list_options
from steersman.apiserver.watching.selection import Selection
from steersman.objects import GroupVersionKind
from steersman.transport import ServerResponse

COMPONENT_STATUS: Final = GroupVersionKind("", "v1", "ComponentStatus")
_STORE: Final = "etcd-0"
_COMPONENTS: Final = ("controller-manager", _STORE, "scheduler")
_UNCHECKED: Final = {"status": "Unknown", "error": "this server does not check other programs"}
#: As errors name it: in the singular.
_NAMED: Final = Named("", "componentstatus")


async def component_statuses(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a GET of one ComponentStatus, or of all."""
    form, info = form_for(context.definition, request), request.info
    if info.verb == "get":
        if info.name not in _COMPONENTS:
            raise not_found(_NAMED, info.name)
        return answer(request, form.one(await _record(context, info.name)))
    options = list_options(request)
    selection = Selection(context.definition, labels=options.label_selector, fields=options.field_selector)
    records = [await _record(context, name) for name in _COMPONENTS]
    selected = [record for record in records if selection.matches(record, None)]
    if not isinstance(form, WholeForm):
        return answer(request, form.page(selected, ListMetadata()))
    definition = context.definition
    items: list[Tree] = [msgspec.json.decode(record.value) for record in selected]
    # An item that is not stored has no resourceVersion, which the form would add.
    bare = [{name: value for name, value in item.items() if name not in {"kind", "apiVersion"}} for item in items]
    tree: Tree = {"kind": definition.list_kind, "apiVersion": definition.gvk.api_version, "metadata": {}, "items": bare}
    return answer(request, msgspec.json.encode(tree))


async def _record(context: VerbContext, name: str) -> Record:
    condition: Tree = {"type": "Healthy"} | (await _health(context) if name == _STORE else _UNCHECKED)
    gvk = COMPONENT_STATUS
    tree = {"kind": gvk.kind, "apiVersion": gvk.api_version, "metadata": {"name": name}, "conditions": [condition]}
    return Record(context.definition.storage_key("", name), msgspec.json.encode(tree), 0, 0)


async def _health(context: VerbContext) -> Tree:
    try:
        await context.storage.revision()
    except StorageError as error:
        return {"status": "False", "error": str(error)}
    return {"status": "True", "message": "ok"}
