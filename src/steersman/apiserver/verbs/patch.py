"""patch: a change given as a difference.

Guarantees
- A patch applies to the current object, whatever its sender saw. One with a resourceVersion applies only to that
  version.
- An unknown form of patch is rejected, never treated as another.

`steersman.apiserver.verbs.apply` implements server-side apply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from steersman.apiserver.context import VerbContext
from steersman.apiserver.decoding.json_text import parse_json
from steersman.apiserver.decoding.patch_result import read_patched, said_twice
from steersman.apiserver.errors import RequestRejected, bad_request, invalid, too_large, unnamed, unsupported_media_type
from steersman.apiserver.forms import form_for
from steersman.apiserver.go_types.reader import SHOWN_MAX, Unreadable
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.request import ServerRequest, read_body
from steersman.apiserver.verbs.apply import apply
from steersman.apiserver.verbs.object_names import check_name, take_namespace
from steersman.apiserver.verbs.options import WriteOptions, write_options
from steersman.apiserver.verbs.responses import answer_object
from steersman.apiserver.verbs.update import Change
from steersman.errors import UNREADABLE, ApiStatus, StatusDetails
from steersman.golang import cannot_unmarshal, json_problem, json_type, printed_value
from steersman.objects import GroupKind
from steersman.objects.field_problems import invalid as invalid_field
from steersman.patches import (
    MAX_OPERATIONS,
    JsonPatch,
    JsonPatchError,
    PatchError,
    StrategicMergeError,
    apply_merge_patch,
    apply_strategic_merge,
    growth_of,
)
from steersman.transport import ServerResponse
from steersman.wire import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH

#: Makes the patched tree from the current one, which it may consume.
Patch = Callable[[Tree], Any]

_OF_CUSTOM = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
_REJECTED = "the server rejected our request due to an error in our request"
#: How the message about a valid text begins whose values do not fit.
_VALID = "json: cannot unmarshal"


async def patch(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a PATCH of an object or of its status."""
    definition, info = context.definition, request.info
    form_of_patch = patch_type(definition, request)
    if form_of_patch == APPLY_PATCH:
        return await apply(context, request)
    form = form_for(definition, request)
    body = read_body(request, context.limits.body)
    options = write_options(request, "PatchOptions")
    count_growth(request, form_of_patch, body)
    # kube-apiserver rejects a text that is no JSON before it looks for the object.
    await context.workers.run(lambda: _check_json(body), size=len(body))

    def patched(current: Tree) -> Tree:
        # Parse again at each attempt: parts of a patch become parts of the object, which is consumed.
        return _patched(definition, request, (form_of_patch, body), current, options)

    change = Change(context, request, options, patched, part=info.subresource)
    return await answer_object(context, request, form, await change.make())


def count_growth(request: ServerRequest, form: str, body: bytes) -> None:
    """Count what a JSON patch can add to an object as part of the request's size."""
    if form == JSON_PATCH:
        request.size = max(request.size, growth_of(body))


def patch_type(definition: Definition, request: ServerRequest) -> str:
    """The form of a patch; 415 if the resource does not accept it."""
    given = (request.wire.header("Content-Type") or "").partition(";")[0].strip()
    if given in _OF_CUSTOM or (given == STRATEGIC_MERGE_PATCH and not definition.custom):
        return given
    if definition.custom:
        raise unsupported_media_type(_OF_CUSTOM)
    status = ApiStatus(
        status="Failure",
        message="415: Unsupported Media Type",
        reason="UnsupportedMediaType",
        details=StatusDetails(),
        code=415,
    )
    raise RequestRejected(status)


def _read_patch(definition: Definition, form: str, body: bytes, *, lenient: bool = False) -> Patch:
    """The function for a patch; 400 if its text is invalid.

    ``lenient``: kube-apiserver parses the text once less if unknown fields do not matter, so its message differs.
    """
    prefix = "" if lenient or form == STRATEGIC_MERGE_PATCH else "error decoding patch: "
    try:
        tree = _parse(body, prefix, "jsonPatchOp.value" if form == JSON_PATCH else "")
    except RequestRejected as refused:
        if lenient and form == MERGE_PATCH and refused.status.message.startswith(_VALID):
            raise bad_request("Invalid JSON Patch") from None
        raise
    if form == JSON_PATCH:
        return _json_patch(tree, lenient=lenient)
    if tree is None and form == MERGE_PATCH:
        raise bad_request("Invalid JSON Patch")
    if tree is None:
        return lambda current: current
    if not isinstance(tree, dict):
        if lenient and form == MERGE_PATCH:
            return lambda _: tree
        raise bad_request(prefix + cannot_unmarshal(json_type(tree), "map[string]interface {}"))
    if form == MERGE_PATCH:
        return lambda current: apply_merge_patch(current, tree)
    schema = definition.schema()
    return lambda current: apply_strategic_merge(current, cast("Tree", tree), schema)


def _check_json(body: bytes) -> None:
    """Reject a text that is no JSON; other problems of it are found later."""
    try:
        _parse(body, _VALID)
    except RequestRejected as refused:
        if not refused.status.message.startswith(_VALID):
            raise


def _parse(body: bytes, prefix: str, untyped: str = "") -> Any:
    try:
        return parse_json(body)
    except (*UNREADABLE, PatchError) as error:
        why = json_problem(body, error, "map[string]interface {}", untyped=untyped)
        raise bad_request(f"{prefix}{why}" if why.startswith(_VALID) else "invalid JSON patch") from None


def _json_patch(tree: Any, *, lenient: bool) -> Patch:
    words = "json: cannot unmarshal {} into Go value of type "
    of_all = words + "jsonpatch.Patch" if lenient else f"error decoding patch: {words}[]handlers.jsonPatchOp"
    of_one = words + "jsonpatch.Operation" if lenient else f"error decoding patch: {words}handlers.jsonPatchOp"
    if tree is None:
        tree = []
    if not isinstance(tree, list):
        raise bad_request(of_all.format(json_type(tree)))
    operations = cast("list[Any]", tree)
    if len(operations) > MAX_OPERATIONS:
        raise too_large(
            f"Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    for operation in operations:
        if operation is not None and not isinstance(operation, dict):
            raise bad_request(of_one.format(json_type(operation)))
    try:
        parsed = JsonPatch.parse([_as_go_reads(operation) for operation in operations])
    except PatchError:
        raise _rejected() from None
    return parsed.apply


def _as_go_reads(operation: Any) -> Any:
    """An operation as kube-apiserver completes it: a missing value is null, and a path begins after its first slash."""
    if not isinstance(operation, dict):
        return operation
    read = dict(cast("Tree", operation))
    operation_name = read.get("op")
    if isinstance(operation_name, str) and operation_name in {"add", "replace", "test"}:
        read.setdefault("value", None)
    for name in ("path", "from"):
        path = read.get(name)
        if isinstance(path, str) and "/" in path and not path.startswith("/"):
            read[name] = f"/{path.partition('/')[2]}"
    return read


def _rejected() -> RequestRejected:
    return RequestRejected(
        ApiStatus(status="Failure", message=_REJECTED, reason="Invalid", details=StatusDetails(), code=422)
    )


def _apply_patch(make: Patch, current: Tree) -> Any:
    """The tree that a patch makes from another; 422 if it does not apply."""
    try:
        return make(current)
    except JsonPatchError:
        raise _rejected() from None
    except StrategicMergeError as error:
        raise _strategic_refusal(error) from None
    except PatchError as error:
        raise bad_request(str(error)) from None


def _strategic_refusal(error: StrategicMergeError) -> RequestRejected:
    if error.code == 400:
        return bad_request(str(error))
    return unnamed(str(error), code=error.code)


def _unreadable_patch(printed: str, refused: RequestRejected, *, as_unstructured: bool = False) -> RequestRejected:
    """The answer to a patch whose result, as printed, is not an object of its kind.

    The result of a strategic merge patch is not parsed from text, so mismatches have other messages.
    """
    said = refused.status.message.partition(": ")[2] or refused.status.message
    if as_unstructured and isinstance(refused.__cause__, Unreadable):
        said = refused.__cause__.of_tree
    return invalid(GroupKind("", ""), "", [invalid_field("patch", printed, said)])


def _patched(
    definition: Definition, request: ServerRequest, told_as: tuple[str, bytes], current: Tree, options: WriteOptions
) -> Tree:
    obj = patched_object(definition, request, told_as, current, options)
    take_namespace(definition, request.info.namespace, obj["metadata"])
    check_name(request.info.name, obj["metadata"])
    definition.strategy.default(obj)
    return obj


def patched_object(
    definition: Definition, request: ServerRequest, told_as: tuple[str, bytes], current: Tree, options: WriteOptions
) -> Tree:
    """The object of a kind that a patch makes from the current one; ``told_as`` is the form of the patch and its text."""
    form, body = told_as
    lenient = options.field_validation == "Ignore"
    managed_before = current["metadata"].get("managedFields")
    # Found before the patch is read: its tree is in memory once at a time.
    twice = [] if form == JSON_PATCH or lenient else said_twice(body)
    tree = _apply_patch(_read_patch(definition, form, body, lenient=lenient), current)
    if form == STRATEGIC_MERGE_PATCH and isinstance(tree, dict):
        # The result is decoded into the served type, whatever kind it declares.
        result = cast("Tree", tree)
        for key, value in (("kind", definition.gvk.kind), ("apiVersion", definition.gvk.api_version)):
            result[key] = value if isinstance(result.get(key, ""), str) else result[key]
    managed, is_empty = _unchanged_managed(managed_before, tree), tree == {}
    if managed is not None:
        # Do not decode them again: they cost as much as the rest.
        del tree["metadata"]["managedFields"]
    try:
        obj = read_patched(definition, request, tree, options.field_validation, twice=twice)
    except RequestRejected as refused:
        if managed is not None and tree:
            tree["metadata"]["managedFields"] = managed
        if refused.status.code != 400:
            raise
        if form == STRATEGIC_MERGE_PATCH:
            printed = printed_value(parse_json(body)) if len(body) <= SHOWN_MAX else "..."
            raise _unreadable_patch(printed, refused, as_unstructured=True) from None
        # A tree that is too large to be shown has been used up.
        used_up = tree == {} and not is_empty
        raise _unreadable_patch("..." if used_up else msgspec.json.encode(tree).decode(), refused) from None
    return obj


def _unchanged_managed(before: Any, tree: Any) -> Any:
    """The managed fields of a patched tree, if unchanged."""
    metadata: Any = cast("Tree", tree).get("metadata") if isinstance(tree, dict) else None
    managed = cast("Tree", metadata).get("managedFields") if isinstance(metadata, dict) else None
    return managed if managed is not None and managed == before else None
