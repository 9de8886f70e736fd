"""binding: the subresource with which a scheduler assigns a Pod to a node; ``bindings`` is an older path to it.

Guarantees
- A Pod is bound once: a second binding fails with the node that it has.
- Only the annotations of the binding, and the condition that reports it, change in the Pod.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from steersman import kinds
from steersman.aio import utc_now
from steersman.apiserver.answers import answer_status
from steersman.apiserver.context import VerbContext
from steersman.apiserver.documents import decode_stored, encode_stored
from steersman.apiserver.errors import Named, bad_request, conflict, invalid, not_found
from steersman.apiserver.field_managers import managed_of, manager_of, updated
from steersman.apiserver.forms import form_for
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.subresources import BINDING
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Mismatch
from steersman.apiserver.verbs.subresources.posted_objects import posted_attributes, read_posted
from steersman.errors import ApiStatus
from steersman.objects import format_time
from steersman.objects.field_problems import FieldProblem, each, problem
from steersman.schemas.names import dns_subdomain
from steersman.transport import ServerResponse

_DEFINITION: Final = Definition(gvk=BINDING, resource="bindings", schema=partial(kinds.schema_of, BINDING))
_NAMED: Final = Named("", "pods/binding")
_TARGETS: Final = ("", "Node")


async def create_binding(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a POST of a binding."""
    form_for(_DEFINITION, request, tables=False)
    binding, options = await read_posted(context, request, _DEFINITION)
    info = request.info
    managed = managed_of(context.registry, _DEFINITION, info.subresource)
    binding = updated(managed, None, binding, manager_of(request, options.field_manager))
    metadata = binding["metadata"]
    name: str = info.name or metadata.get("name", "")
    attributes = posted_attributes(context, request, _DEFINITION, binding, name=name, dry_run=options.dry_run)
    await context.admission.admit(attributes)
    # A webhook may have changed it.
    name = metadata.get("name", "")
    if info.name and info.name != name:
        raise bad_request("name in URL does not match name in Binding object")
    target: Tree = binding.get("target") or {}
    problems = _problems(target)
    if problems:
        raise invalid(BINDING, name, problems)
    await context.admission.validate(attributes)
    await _assign(context, metadata, target["name"], dry_run=options.dry_run)
    return answer_status(request, ApiStatus(status="Success", code=201), code=201)


def _problems(target: Tree) -> list[FieldProblem]:
    kind = target.get("kind", "")
    problems: list[FieldProblem] = []
    if kind not in _TARGETS:
        words = 'supported values: "Node", "<empty>"'
        problems.append(problem("target.kind", "FieldValueNotSupported", kind, words))
    if not target.get("name"):
        problems.append(problem("target.name", "FieldValueRequired"))
    elif kind in _TARGETS:
        problems += each("target.name", target["name"], dns_subdomain(target["name"]))
    return problems


async def _assign(context: VerbContext, metadata: Tree, node: str, *, dry_run: bool) -> None:
    name: str = metadata.get("name", "")
    pods = context.registry.any_version("", "pods")
    if pods is None:
        raise not_found(Named("", "pods"), name)
    key = pods.storage_key(metadata["namespace"], name)
    record, _ = await context.storage.get(key)
    while True:
        if record is None:
            raise not_found(pods.named, name)
        pod = decode_stored(record)
        uid: str = metadata.get("uid", "")
        if uid and uid != pod["metadata"]["uid"]:
            actual = pod["metadata"]["uid"]
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {actual}"
            raise conflict(_NAMED, name, why)
        _give_node(pod, metadata, node)
        if dry_run:
            return
        try:
            await context.storage.put(key, encode_stored(pod), expect=record.modified)
        except Mismatch as mismatch:
            record = mismatch.current
        else:
            return


def _give_node(pod: Tree, binding: Tree, node: str) -> None:
    metadata, spec, name = pod["metadata"], pod["spec"], pod["metadata"]["name"]
    if "deletionTimestamp" in metadata:
        raise conflict(_NAMED, name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise conflict(_NAMED, name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise conflict(_NAMED, name, f"pod {name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = node
    for field in ("annotations", "labels"):
        if added := binding.get(field):
            metadata[field] = metadata.get(field, {}) | added
    condition: Tree = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": format_time(utc_now()),
    }
    status: Tree = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    others = [other for other in status.get("conditions", ()) if other.get("type") != "PodScheduled"]
    status["conditions"] = [*others, condition]
