"""The deletion of an object that cannot be read: a custom resource whose conversion fails.

Guarantees
- An object that can be read stays, whatever the request says.
- The deletion needs a permission of its own, and runs neither admission nor finalizers.
"""

from __future__ import annotations

from steersman.apiserver.answers import answer_status
from steersman.apiserver.context import VerbContext
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.errors import RequestRejected, conflict, forbidden, internal, not_found
from steersman.apiserver.identity import Access
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Mismatch, Record
from steersman.apiserver.verbs.allocation import remove
from steersman.apiserver.verbs.object_names import engine_key
from steersman.apiserver.verbs.options import UNSAFE, DeleteOptions
from steersman.errors import ApiStatus, StatusDetails
from steersman.transport import ServerResponse

_VERB = "unsafe-delete-ignore-read-errors"
#: The groups and resources that kube-apiserver stores in its own way, which has no unsafe deletion.
_WITHOUT = frozenset({("", "namespaces")})
_WITHOUT_GROUPS = frozenset({"rbac.authorization.k8s.io"})


async def delete_unreadable(context: VerbContext, request: ServerRequest, options: DeleteOptions) -> ServerResponse:
    """Answer a DELETE of an object that cannot be read; 409 if it can be."""
    definition, info = context.definition, request.info
    group = definition.gvk.group
    if (group, definition.resource) in _WITHOUT or group in _WITHOUT_GROUPS:
        raise internal(f"no unsafe deleter provided, can not honor {UNSAFE}")
    namespace = info.namespace if definition.namespaced else ""
    await _check_permission(context, request, namespace)
    record, _ = await context.storage.get(definition.storage_key(namespace, info.name))
    while True:
        if record is None:
            raise not_found(definition.named, info.name)
        if await _is_readable(context, record):
            key = engine_key(definition, namespace, info.name)
            why = "unsafe deletion is not allowed because the object is decodable from storage"
            words = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
            raise conflict(definition.named, info.name, words)
        if options.is_dry_run:
            break
        try:
            await remove(context, record, decode_stored(record))
            break
        except Mismatch as mismatch:
            record = mismatch.current
    details = StatusDetails(name=info.name, kind=definition.gvk.kind)
    return answer_status(request, ApiStatus(status="Success", details=details, code=200), code=200)


async def _is_readable(context: VerbContext, record: Record) -> bool:
    try:
        await context.readable(record)
    except RequestRejected:
        return False
    return True


async def _check_permission(context: VerbContext, request: ServerRequest, namespace: str) -> None:
    definition, name = context.definition, request.info.name
    if request.authorizer is None:
        return
    wanted = Access(
        user=request.user,
        verb=_VERB,
        group=definition.gvk.group,
        version=definition.gvk.version,
        resource=definition.resource,
        namespace=namespace,
        name=name,
    )
    decision = await request.authorizer(wanted)
    if not decision.allowed:
        raise forbidden(definition.named, name, f'not permitted to do "{_VERB}", reason: {decision.reason}')
