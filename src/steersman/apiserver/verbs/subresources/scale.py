"""scale: the number of replicas of an object, as its own object."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from steersman.apiserver.admission.plugins import WriteView
from steersman.apiserver.answers import answer
from steersman.apiserver.context import VerbContext
from steersman.apiserver.decoding.body import read_object
from steersman.apiserver.documents import copied, decode_served, encode_stored
from steersman.apiserver.errors import (
    RequestRejected,
    bad_request,
    internal,
    invalid,
    method_not_allowed,
    modified,
    unnamed,
)
from steersman.apiserver.field_managers import (
    SCALE,
    ScaledFields,
    applied,
    described,
    managed_scale,
    manager_of,
    updated,
    without_managed,
)
from steersman.apiserver.forms import form_for
from steersman.apiserver.forms.table import AGE_COLUMN, CUSTOM_AGE_COLUMN, NAME_COLUMN
from steersman.apiserver.registry.definition import Column, Definition, ScalePaths, Tree
from steersman.apiserver.registry.nested_values import nested_value
from steersman.apiserver.request import ServerRequest, read_body
from steersman.apiserver.storage import Record
from steersman.apiserver.verbs.apply import read_intent
from steersman.apiserver.verbs.get import read
from steersman.apiserver.verbs.object_names import check_name, take_namespace
from steersman.apiserver.verbs.options import WriteOptions, read_version, write_options
from steersman.apiserver.verbs.patch import count_growth, patch_type, patched_object
from steersman.apiserver.verbs.update import Change
from steersman.errors import SelectorError
from steersman.golang import cannot_unmarshal
from steersman.kinds import schema_of
from steersman.objects import Selector
from steersman.objects.field_problems import problem
from steersman.transport import ServerResponse
from steersman.wire import APPLY_PATCH

_INT32_MAX = 2**31 - 1


#: The definition of a scale; it is never stored.
_SERVED_SCALE = Definition(
    gvk=SCALE,
    resource="scales",
    schema=partial(schema_of, SCALE),
    columns=(
        replace(NAME_COLUMN, format=""),
        Column(
            name="Desired",
            type="integer",
            description="replicas is the desired number of instances for the scaled object.",
            cell=lambda obj: obj["spec"].get("replicas", 0),
        ),
        Column(
            name="Available",
            type="integer",
            description="replicas is the actual number of observed instances of the scaled object.",
            cell=lambda obj: obj["status"]["replicas"],
        ),
        AGE_COLUMN,
    ),
)


#: The same for a custom resource, with other descriptions.
_SERVED_CUSTOM_SCALE = replace(
    _SERVED_SCALE,
    columns=(
        NAME_COLUMN,
        replace(_SERVED_SCALE.columns[1], description="Number of desired replicas"),
        replace(_SERVED_SCALE.columns[2], description="Number of actual replicas"),
        CUSTOM_AGE_COLUMN,
    ),
)


async def answer_scale(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a GET, PUT or PATCH of a scale."""
    definition = context.definition
    served = _SERVED_CUSTOM_SCALE if definition.custom else _SERVED_SCALE
    form = form_for(served, request, messages=not definition.custom)
    match request.info.verb:
        case "get":
            record = await read(context, request)
        case "update":
            record = await _update(context, request)
        case "patch":
            record = await _patch(context, request)
        case _:
            raise method_not_allowed()
    decoded = partial(decode_served, definition, record)
    obj = await context.workers.answer(decoded, size=len(record.value), user=request.user.name)
    shown = scale_of(definition, obj)
    if request.info.verb == "get" and definition.custom:
        _check_replicas(definition, obj)
    return answer(request, form.one(record.with_value(encode_stored(shown))))


def _check_replicas(definition: Definition, obj: Tree) -> None:
    """500 for a custom resource without the number of replicas, as in kube-apiserver."""
    path = (definition.scale or ScalePaths()).spec_replicas
    if _at(obj, path) is None:
        raise internal(f'the spec replicas field ".{".".join(path)}" does not exist')


def scale_of(definition: Definition, obj: Tree) -> Tree:
    """The scale of an object."""
    paths = definition.scale or ScalePaths()
    metadata: Tree = {
        name: obj["metadata"][name]
        for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if name in obj["metadata"]
    }
    if definition.custom:
        spec, status, selector = _of_custom(paths, obj)
    else:
        spec, status = _at(obj, paths.spec_replicas), _at(obj, paths.status_replicas)
        selector = _selector(None if paths.selector is None else _at(obj, paths.selector))
    reported: Tree = {"replicas": status if isinstance(status, int) else 0}
    if selector:
        reported["selector"] = selector
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": metadata,
        "spec": {"replicas": spec} if spec else {},
        "status": reported,
    }


def _of_custom(paths: ScalePaths, obj: Tree) -> tuple[int, int, str]:
    """The replicas and the selector of a custom resource; 500 if its schema was changed and one has another type."""
    places = (
        (paths.spec_replicas, int, "int64"),
        (paths.status_replicas, int, "int64"),
        (paths.selector, str, "string"),
    )
    values: list[Any] = []
    for path, expected, called in places:
        value, wrong = nested_value(obj, path, expected, called) if path is not None else (None, "")
        if wrong:
            raise unnamed(wrong)
        values.append(value or expected())
    spec, status, selector = values
    return _as_int32(spec), _as_int32(status), selector


def _as_int32(value: int) -> int:
    """A number as Go converts it to int32: its lowest bits."""
    return (value + 2**31) % 2**32 - 2**31


def _at(obj: Tree, path: tuple[str, ...]) -> Any:
    value: Any = obj
    for name in path:
        value = cast("Tree", value).get(name) if isinstance(value, dict) else None
    return value


def _selector(selector: Any) -> str:
    if isinstance(selector, str):
        return selector
    if not isinstance(selector, dict):
        return ""
    tree = cast("Tree", selector)
    try:
        if "matchLabels" in tree or "matchExpressions" in tree:
            return str(Selector.from_label_selector(tree))
        return str(Selector.of(tree))
    except (SelectorError, TypeError, AttributeError):
        return ""


async def _update(context: VerbContext, request: ServerRequest) -> Any:
    body = read_body(request, context.limits.body)
    options = write_options(request, "UpdateOptions")

    def wanted(_: Tree) -> Tree:
        return read_object(_SERVED_SCALE, request, body, options.field_validation)

    first = await context.workers.run(lambda: wanted({}), size=request.size)
    uid: str = _checked(context.definition, request, first)["metadata"].get("uid", "")
    scaling = _Scaling(context, request, options, wanted)
    return await _made(Change(context, request, options, scaling, uid=uid, manages=False), context.definition)


async def _made(change: Change, definition: Definition) -> Record:
    """Make a change that admission sees as one of the scale."""

    def take(obj: Tree, scale: Tree) -> None:
        _put(definition, obj, _replicas(definition, scale, obj["metadata"]["name"]))

    change.view = WriteView(_SERVED_SCALE, partial(scale_of, definition), take)
    # The schema may not have the field, if it was changed.
    change.prunes = definition.custom
    return await change.make()


async def _patch(context: VerbContext, request: ServerRequest) -> Any:
    definition = context.definition
    form = patch_type(definition, request)
    body = read_body(request, context.limits.body)
    options = write_options(request, "PatchOptions", applies=form == APPLY_PATCH)
    count_growth(request, form, body)

    def patched(scale: Tree) -> Tree:
        return patched_object(_SERVED_SCALE, request, (form, body), scale, options)

    def merged(scale: Tree) -> Tree:
        intent = read_intent(request, body, options)
        manager = manager_of(request, options.field_manager)
        result = applied(managed_scale(), scale, intent, manager=manager, force=bool(options.force))
        if definition.custom and without_managed(result) != without_managed(scale):
            # kube-apiserver fails here: it treats the scale as a version of the custom resource.
            why = f"request to convert CR to an invalid group/version: {SCALE.api_version}"
            raise unnamed(f"failed to convert new object ({described(SCALE, intent)}) to proper version: {why}")
        return result

    scaling = _Scaling(context, request, options, merged if form == APPLY_PATCH else patched, form=form)
    return await _made(Change(context, request, options, scaling, manages=False), definition)


def _checked(definition: Definition, request: ServerRequest, wanted: Tree) -> Tree:
    take_namespace(definition, request.info.namespace, wanted["metadata"])
    check_name(request.info.name, wanted["metadata"])
    return wanted


class _Scaling:
    """The change of an object through its scale; ``make`` makes the new scale from the current one."""

    def __init__(
        self,
        context: VerbContext,
        request: ServerRequest,
        options: WriteOptions,
        make: Callable[[Tree], Tree],
        *,
        form: str = "",
    ) -> None:
        self._context = context
        self._definition = context.definition
        self._request = request
        self._options = options
        self._make = make
        #: The form of a patch, if it is one.
        self._form = form

    def __call__(self, current: Tree) -> Tree:
        metadata: Tree = current["metadata"]
        fields = ScaledFields(self._context.registry, self._definition, metadata.get("managedFields"))
        scale = scale_of(self._definition, current)
        entries = fields.of_scale()
        if entries:
            scale["metadata"]["managedFields"] = entries
        before = copied(scale)
        wanted = _checked(self._definition, self._request, self._make(scale))
        replicas = _replicas(self._definition, wanted, self._request.info.name)
        self._check_version(wanted, current)
        if self._form != APPLY_PATCH:
            manager = manager_of(self._request, self._options.field_manager)
            wanted = updated(managed_scale(), before, _written(wanted), manager)
        _put(self._definition, current, replicas)
        owned = fields.of_object(wanted["metadata"].get("managedFields"))
        if owned:
            metadata["managedFields"] = owned
        else:
            metadata.pop("managedFields", None)
        return current

    def _check_version(self, wanted: Tree, current: Tree) -> None:
        try:
            version = read_version(wanted["metadata"].get("resourceVersion", ""))
        except ValueError as error:
            raise unnamed(str(error)) from None
        if version and str(version) != current["metadata"]["resourceVersion"]:
            raise modified(self._definition.named, self._request.info.name)


def _put(definition: Definition, obj: Tree, replicas: int) -> None:
    """Set the number of replicas of an object."""
    place = obj
    path = (definition.scale or ScalePaths()).spec_replicas
    for name in path[:-1]:
        inner: Any = place.get(name)
        place[name] = place = cast("Tree", inner) if isinstance(inner, dict) else {}
    place[path[-1]] = replicas


def _written(wanted: Tree) -> Tree:
    """A scale as its type encodes it: zero replicas are omitted."""
    spec: Tree = wanted.get("spec") or {}
    return {**wanted, "spec": {name: value for name, value in spec.items() if value}}


def _replicas(definition: Definition, wanted: Tree, name: str) -> int:
    spec: Any = wanted.get("spec") or {}
    replicas: Any = cast("Tree", spec).get("replicas", 0) if isinstance(spec, dict) else None
    if replicas is None:
        replicas = 0
    if not isinstance(replicas, int) or isinstance(replicas, bool) or abs(replicas) > _INT32_MAX:
        raise _unreadable(replicas)
    # Only its own rules apply to a custom resource.
    if replicas < 0 and not definition.custom:
        words = "must be greater than or equal to 0"
        raise invalid(SCALE, name, [problem("spec.replicas", "FieldValueInvalid", replicas, words)])
    return replicas


def _unreadable(value: Any) -> RequestRejected:
    given = "string" if isinstance(value, str) else "number" if isinstance(value, int | float) else "object"
    why = cannot_unmarshal(given, "int32", "ScaleSpec.spec.replicas")
    return bad_request(f'Scale in version "v1" cannot be handled as a Scale: {why}')
