"""eviction: the subresource that deletes a Pod if its PodDisruptionBudget allows it.

Guarantees
- A budget without a disruption left keeps the Pod: 429, with Retry-After.
- The disruption is subtracted from the budget before the Pod is deleted, by a write that fails on a concurrent change.
- Pods that have ended, or never started, need no budget. One that may start meanwhile is deleted only as it was judged.
- The Pod's status reports the eviction before the Pod is deleted.
"""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from steersman import kinds
from steersman.aio import utc_now
from steersman.apiserver.answers import answer_status
from steersman.apiserver.context import VerbContext
from steersman.apiserver.documents import decode_stored, encode_stored
from steersman.apiserver.errors import RequestRejected, bad_request, not_found, too_many_disruptions
from steersman.apiserver.forms import form_for
from steersman.apiserver.registry.builtin.types.trees import items, subtree
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.subresources import EVICTION
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Mismatch, Record
from steersman.apiserver.verbs.delete import delete_object
from steersman.apiserver.verbs.deletion_rules import check_preconditions
from steersman.apiserver.verbs.options import DeleteOptions, Preconditions, delete_options
from steersman.apiserver.verbs.subresources.posted_objects import posted_attributes, read_posted
from steersman.errors import ApiStatus, SelectorError
from steersman.objects import Selector, format_time
from steersman.transport import ServerResponse

_DEFINITION: Final = Definition(gvk=EVICTION, resource="evictions", schema=partial(kinds.schema_of, EVICTION))
_BUDGETS: Final = "policy/poddisruptionbudgets/"
_DONE: Final = frozenset({"Succeeded", "Failed", "Pending"})
_CONDITION: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
#: How often a Pod is judged, while it changes.
_ATTEMPTS: Final = 20
_SEVERAL: Final = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


class _Budget(NamedTuple):
    record: Record
    tree: Tree


async def evict(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a POST of an eviction."""
    form_for(_DEFINITION, request, tables=False)
    eviction, options = await read_posted(context, request, _DEFINITION)
    name = request.info.name
    attributes = posted_attributes(context, request, _DEFINITION, eviction, name=name, dry_run=options.dry_run)
    await context.admission.admit(attributes)
    # A webhook may have changed it.
    if eviction["metadata"].get("name", "") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    await context.admission.validate(attributes)
    deletion = _deletion(request, eviction.get("deleteOptions"), dry_run=options.dry_run)
    refused: RequestRejected | None = None
    for _ in range(_ATTEMPTS):
        refused = await _evicted(context, request, deletion)
        if refused is None:
            return answer_status(request, ApiStatus(status="Success", code=201), code=201)
    assert refused is not None
    raise refused


async def _evicted(context: VerbContext, request: ServerRequest, deletion: DeleteOptions) -> RequestRejected | None:
    """Judge and delete the Pod of a request. Returns a conflict if it changed meanwhile: it must be judged again."""
    info = request.info
    record, _ = await context.storage.get(context.definition.storage_key(info.namespace, info.name))
    if record is None:
        raise not_found(context.definition.named, info.name)
    pod, spared = decode_stored(record), ""
    if _needs_budget(pod):
        spared = await _take_disruption(context, pod, dry_run=deletion.is_dry_run)
    is_fixed = not _has_version(deletion) and (bool(spared) or _may_start(pod))
    options = _with_version(deletion, record) if is_fixed else deletion
    try:
        if not deletion.is_dry_run:
            options = await _note_in_status(context, record, options)
        await delete_object(context, request, info.namespace, info.name, options)
    except RequestRejected as refused:
        if not is_fixed or refused.status.code != HTTPStatus.CONFLICT:
            raise
        if spared:
            raise _still_processed(spared) from None
        return refused
    return None


def _deletion(request: ServerRequest, given: Any, *, dry_run: bool) -> DeleteOptions:
    """The options of the deletion; a dry run of the eviction is a dry run of the deletion."""
    options = delete_options(request, msgspec.json.encode(given)) if given else DeleteOptions()
    return msgspec.structs.replace(options, dry_run=["All"]) if dry_run else options


def _needs_budget(pod: Tree) -> bool:
    return _phase(pod) not in _DONE and "deletionTimestamp" not in pod["metadata"]


def _may_start(pod: Tree) -> bool:
    return _phase(pod) == "Pending" and "deletionTimestamp" not in pod["metadata"]


def _phase(pod: Tree) -> str:
    return subtree(pod, "status").get("phase", "")


def _has_version(options: DeleteOptions) -> bool:
    return options.preconditions is not None and options.preconditions.resource_version is not None


def _with_version(options: DeleteOptions, record: Record) -> DeleteOptions:
    """The options of a deletion that applies only to this version of the Pod."""
    preconditions = options.preconditions or Preconditions()
    preconditions = msgspec.structs.replace(preconditions, resource_version=str(record.modified))
    return msgspec.structs.replace(options, preconditions=preconditions)


async def _take_disruption(context: VerbContext, pod: Tree, *, dry_run: bool) -> str:
    """Subtract a disruption from the Pod's budget. Returns the name of a budget that spares the Pod as it is now."""
    while True:
        budget = await _budget(context, pod)
        if budget is None:
            return ""
        if _is_exempt(pod, budget.tree):
            return budget.tree["metadata"]["name"]
        status = _checked(budget.tree)
        status["disruptionsAllowed"] -= 1
        status["disruptedPods"] = (status.get("disruptedPods") or {}) | {
            pod["metadata"]["name"]: format_time(utc_now())
        }
        if dry_run:
            return ""
        try:
            await context.storage.put(budget.record.key, encode_stored(budget.tree), expect=budget.record.modified)
        except Mismatch:
            continue
        return ""


async def _note_in_status(context: VerbContext, record: Record | None, options: DeleteOptions) -> DeleteOptions:
    """Record the eviction in the Pod's status, for the Pod's controller. Returns the options for the Pod as it is then."""
    while record is not None:
        pod = decode_stored(record)
        check_preconditions(context.definition, pod, record, options)
        status: Tree = pod.setdefault("status", {})
        conditions = items(status, "conditions")
        present = next((condition for condition in conditions if condition.get("type") == _CONDITION["type"]), None)
        if present is not None and present | _CONDITION == present:
            break
        since = {"lastProbeTime": None, "lastTransitionTime": format_time(utc_now())}
        if present is not None and present.get("status") == _CONDITION["status"]:
            since = {name: present.get(name) for name in since}
        new = {"type": "", "status": "", **since, **_CONDITION}
        status["conditions"] = (
            [new if condition is present else condition for condition in conditions] if present else [*conditions, new]
        )
        try:
            record = await context.storage.put(record.key, encode_stored(pod), expect=record.modified)
        except Mismatch as mismatch:
            record = mismatch.current
            continue
        return _with_version(options, record) if _has_version(options) else options
    return options


async def _budget(context: VerbContext, pod: Tree) -> _Budget | None:
    """The budget of a Pod; a Pod with two cannot be evicted."""
    page = await context.storage.list(f"{_BUDGETS}{pod['metadata']['namespace']}/")
    budgets = [
        _Budget(record, tree) for record in page.records if _selects(tree := decode_stored(record), pod["metadata"])
    ]
    if len(budgets) > 1:
        # kube-apiserver calls it an internal error, but the request is at fault.
        raise bad_request(_SEVERAL)
    return budgets[0] if budgets else None


def _selects(budget: Tree, metadata: Tree) -> bool:
    selector: Tree | None = subtree(budget, "spec").get("selector")
    if selector is None:
        return False
    try:
        return Selector.from_label_selector(selector).matches(metadata.get("labels", {}))
    except SelectorError:
        return False


def _is_exempt(pod: Tree, budget: Tree) -> bool:
    """Whether an unready Pod needs no disruption, by the budget's policy or because enough others are healthy."""
    conditions = items(subtree(pod, "status"), "conditions")
    if any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions):
        return False
    if subtree(budget, "spec").get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = subtree(budget, "status")
    return status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0


def _checked(budget: Tree) -> Tree:
    """The status of a budget with a disruption left."""
    metadata: Tree = budget["metadata"]
    status: Tree = budget.setdefault("status", {})
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise _still_processed(metadata["name"])
    if status.get("disruptionsAllowed", 0) <= 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        why = f"The disruption budget {metadata['name']} needs {needs} healthy pods and has {has} currently"
        raise too_many_disruptions(why)
    return status


def _still_processed(name: str) -> RequestRejected:
    return too_many_disruptions(f"The disruption budget {name} is still being processed by the server.", seconds=10)
