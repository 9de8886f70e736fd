"""delete: one object, at once or when its finalizers and its grace period have ended.

Guarantees
- An object is deleted only if it satisfies the preconditions at the moment of deletion.
- An object with finalizers, or with a grace period, is marked and answered; it is not gone yet.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from steersman.apiserver.admission.plugins import Attributes
from steersman.apiserver.answers import answer_status
from steersman.apiserver.context import VerbContext
from steersman.apiserver.decoding.delete_options import read_delete_options
from steersman.apiserver.documents import decode_served, encode_served
from steersman.apiserver.errors import not_found
from steersman.apiserver.forms import form_for
from steersman.apiserver.forms.form import blank_object
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.request import ServerRequest, read_body
from steersman.apiserver.storage import Mismatch, Record
from steersman.apiserver.verbs.allocation import remove
from steersman.apiserver.verbs.corrupt_objects.read_errors import read_one
from steersman.apiserver.verbs.corrupt_objects.unsafe_deletion import delete_unreadable
from steersman.apiserver.verbs.deletion_rules import check_preconditions, decide, refuse_lost_version
from steersman.apiserver.verbs.options import DeleteOptions, delete_options
from steersman.apiserver.verbs.responses import answer_object
from steersman.errors import ApiStatus, StatusDetails
from steersman.patches import quickly_equal
from steersman.transport import ServerResponse


class Outcome(NamedTuple):
    """The result of a deletion: `record` is the last state, at the answered revision."""

    record: Record
    uid: str
    is_gone: bool
    #: Whether it was marked, so that the object itself is answered.
    is_marked: bool


async def delete(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a DELETE of an object."""
    form = form_for(context.definition, request)
    options = await read_options(context, request)
    if options.ignore_store_read_error_with_cluster_breaking_potential:
        return await delete_unreadable(context, request, options)
    info = request.info
    namespace = info.namespace if context.definition.namespaced else ""
    outcome = await delete_object(context, request, namespace, info.name, options)
    code = 202 if not outcome.is_gone and options.orphan_dependents is False else 200
    if outcome.is_marked or context.definition.returns_deleted:
        return await answer_object(context, request, form, outcome.record, status=code)
    return answer_status(request, success(context, info.name, outcome.uid), code=code)


async def read_options(context: VerbContext, request: ServerRequest) -> DeleteOptions:
    """The options of a deletion, from body or query."""
    body = read_body(request, context.limits.body)

    def options_read() -> DeleteOptions:
        return delete_options(request, read_delete_options(request, body) if body else body)

    options = await context.workers.run(options_read, size=request.size)
    warning = context.definition.strategy.deletion_warning
    unsafe = options.ignore_store_read_error_with_cluster_breaking_potential
    if warning and not unsafe and options.propagation_policy is None and options.orphan_dependents is None:
        request.warn(warning)
    return options


def success(context: VerbContext, name: str, uid: str) -> ApiStatus:
    """The answer for an object that is gone."""
    named = context.definition.named
    details = StatusDetails(name=name, group=named.group, kind=named.resource, uid=uid)
    return ApiStatus(status="Success", details=details)


async def delete_object(
    context: VerbContext, request: ServerRequest, namespace: str, name: str, options: DeleteOptions
) -> Outcome:
    """Delete an object, or mark it; 404 if it is missing."""
    key = context.definition.storage_key(namespace, name)
    record, _ = await context.storage.get(key)
    while True:
        if record is None:
            raise not_found(context.definition.named, name)
        try:
            return await _try(context, request, record, options)
        except Mismatch as mismatch:
            record = mismatch.current


def _blank(context: VerbContext) -> Record:
    """kube-apiserver's answer to a dry run that would remove the last finalizer: an empty object."""
    definition = context.definition
    tree: Tree = {"kind": definition.gvk.kind, "apiVersion": definition.gvk.api_version}
    if not definition.custom:
        tree |= {"metadata": {}, **blank_object(definition)}
        return Record("", encode_served(definition, tree), 0, 0)
    return Record("", msgspec.json.encode(tree), 0, 0)


async def _try(context: VerbContext, request: ServerRequest, record: Record, options: DeleteOptions) -> Outcome:
    definition, strategy = context.definition, context.definition.strategy
    record = await read_one(context, record)
    obj, old = decode_served(definition, record), decode_served(definition, record)
    metadata: Tree = old["metadata"]
    check_preconditions(definition, old, record, options)
    attributes = Attributes(
        context,
        request,
        "DELETE",
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        obj=None,
        old=old,
        dry_run=options.is_dry_run,
        options=options,
    )
    await context.admission.admit(attributes)
    decision = decide(strategy, obj, options)
    uid: str = metadata.get("uid", "")
    if decision.kind == "pending":
        # Nothing changes, so kube-apiserver asks no validating webhook or policy.
        return Outcome(record, uid, is_gone=False, is_marked=False)
    await context.admission.validate(attributes)
    if decision.stores and not quickly_equal(obj, old):
        await context.make_storable(obj)
        value = encode_served(definition, obj)
        if options.is_dry_run:
            dry = await context.readable(record.with_value(value))
            return Outcome(dry, uid, is_gone=decision.kind == "end", is_marked=True)
        put = context.storage.put(record.key, value, expect=record.modified, ttl=definition.ttl)
        record = await context.readable(await put)
    if decision.kind == "mark":
        return Outcome(record, uid, is_gone=False, is_marked=True)
    loses_finalizers = not decision.stores and bool(metadata.get("finalizers"))
    if options.is_dry_run:
        shown = _blank(context) if loses_finalizers else record
        return Outcome(shown, uid, is_gone=True, is_marked=loses_finalizers)
    if loses_finalizers:
        refuse_lost_version(definition, record, options)
    revision = await remove(context, record, old)
    return Outcome(Record(record.key, record.value, record.created, revision), uid, is_gone=True, is_marked=False)
