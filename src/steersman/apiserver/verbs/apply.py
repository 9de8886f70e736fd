"""apply: a PATCH with the intent of its sender, which leaves the rest to others (server-side apply).

Guarantees
- Fields that were applied before and are not now are removed, unless another manager owns them. Fields of other
  managers are taken only if the apply is forced.
- A missing object is created; an apply that changes nothing keeps the resourceVersion.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any, NoReturn, cast

from steersman.aio import collector_paused
from steersman.apiserver.context import VerbContext
from steersman.apiserver.decoding.patch_result import read_patched
from steersman.apiserver.errors import RequestRejected, bad_request, conflict, unnamed
from steersman.apiserver.field_managers import applied, described, managed_of, manager_of, results_for, without_managed
from steersman.apiserver.forms import form_for
from steersman.apiserver.go_types.reader import Unreadable
from steersman.apiserver.json_trees import check_names, check_values
from steersman.apiserver.registry.builtin.types.trees import inner
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.request import ServerRequest, read_body
from steersman.apiserver.verbs.managed_fields import check_applied
from steersman.apiserver.verbs.object_names import check_name, take_namespace
from steersman.apiserver.verbs.options import WriteOptions, write_options
from steersman.apiserver.verbs.responses import answer_object
from steersman.apiserver.verbs.update import Change
from steersman.golang import cannot_unmarshal, json_type
from steersman.transport import ServerResponse


async def apply(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer an apply of an object or of its status."""
    definition, subresource = context.definition, request.info.subresource
    form = form_for(definition, request)
    body = read_body(request, context.limits.body)
    options = write_options(request, "PatchOptions", applies=True)
    applying = _Applying(context, request, body, options)
    change = Change(context, request, options, applying.on, part=subresource, manages=False)
    change.results = applying.results
    if not subresource or definition.strategy.create_on_update:
        change.create = applying.anew
    record = await change.make()
    return await answer_object(context, request, form, record, status=201 if change.created else 200)


def _read_yaml(body: bytes) -> tuple[Any, list[str]]:
    from steersman.apiserver.decoding.yaml_text import UnreadableYaml, read_yaml  # noqa: PLC0415 - few clients send YAML

    try:
        return read_yaml(body)
    except UnreadableYaml as error:
        if body.lstrip().startswith(b"{"):
            raise bad_request(f"error decoding patch: error converting YAML to JSON: {error}") from None
        raise bad_request(f"error encoding patch: {error}") from None


def read_intent(request: ServerRequest, body: bytes, options: WriteOptions) -> Tree:
    """The intent: YAML, of which JSON is a subset; 400 if it is not an object."""
    tree, twice = read_plain_json(body) or _read_yaml(body)
    if twice and options.field_validation == "Strict":
        problems = "error converting YAML to JSON: yaml: unmarshal errors:\n  " + "\n  ".join(twice)
        raise bad_request(f"error strict decoding patch: {problems}")
    for text in twice if options.field_validation == "Warn" else ():
        request.warn(text)
    if tree is None:
        return {}
    check_names(tree, len(body))
    if not isinstance(tree, dict):
        why = cannot_unmarshal(json_type(tree), "map[string]interface {}")
        raise bad_request(f"error decoding patch: error unmarshaling JSON: while decoding JSON: {why}")
    return cast("Tree", tree)


def read_plain_json(body: bytes) -> tuple[Any, list[str]] | None:
    """The tree of a JSON text that means the same in YAML, which parses far slower; None for any other text."""
    if not body.startswith(b"{") or not body.isascii() or _NOT_PLAIN.search(body):
        return None
    check_values(body)
    try:
        with collector_paused():
            return _decode(body.decode("ascii")), []
    except (ValueError, RecursionError):
        return None


def _without_twice(pairs: list[tuple[str, Any]]) -> Tree:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a field is there twice")
    return members


def _small(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError("a number that YAML may read as another one")
    return int(text)


def _none(text: str) -> NoReturn:
    raise ValueError(f"YAML has other words for {text}")


_decode = json.JSONDecoder(
    object_pairs_hook=_without_twice, parse_int=_small, parse_float=_none, parse_constant=_none
).decode
#: Characters that YAML reads differently, or not at all, and escapes that it may read differently.
_NOT_PLAIN = re.compile(rb'\\(?![nrt"\\])|[\t\x7f]')
_DIGITS = 15


class _Applying:
    """Turns intents into objects."""

    def __init__(self, context: VerbContext, request: ServerRequest, body: bytes, options: WriteOptions) -> None:
        self._context = context
        self._definition = context.definition
        self._request = request
        self._body = body
        self._options = options
        #: The conversions that the managed fields need, if a webhook makes them.
        self.results = results_for(context.definition.conversion)
        self._managed = managed_of(context.registry, context.definition, request.info.subresource, self.results)

    def on(self, live: Tree) -> Tree:
        """The object after the apply."""
        return self._made(live)

    def anew(self) -> Tree:
        """The object that the apply creates."""
        obj = self._made(None)
        uid: str = obj["metadata"].get("uid", "")
        if uid:
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(self._definition.named, self._request.info.name, why)
        return obj

    def _made(self, live: Tree | None) -> Tree:
        definition, request = self._definition, self._request
        intent = read_intent(request, self._body, self._options)
        check_applied(self._context, request, self._managed, intent)
        manager = manager_of(request, self._options.field_manager)
        tree = applied(self._managed, live, intent, manager=manager, force=bool(self._options.force))
        # An intent may lack metadata.
        tree["metadata"] = inner(tree, "metadata")
        # Converted from another version, it may lack its schema's defaults: only a change adds them.
        is_filled = definition.custom and live is not None and without_managed(tree) == without_managed(live)
        managed = tree["metadata"].pop("managedFields", None)
        merged = deepcopy(tree) if definition.custom and _has_null(tree) else None
        try:
            # Fields outside the schema were already rejected.
            obj = read_patched(definition, request, tree, "Ignore")
        except RequestRejected as refused:
            raise self._unconverted(intent, refused) from None
        take_namespace(definition, request.info.namespace, obj["metadata"])
        check_name(request.info.name, obj["metadata"])
        if not is_filled:
            definition.strategy.default(obj)
        if managed is not None:
            obj["metadata"]["managedFields"] = managed
        if merged is not None:
            _put_nulls_back(obj, merged)
        return obj

    def _unconverted(self, intent: Tree, refused: RequestRejected) -> RequestRejected:
        """The answer to an intent that merges, but gives no object of its kind."""
        words = refused.status.message.partition(": ")[2] or refused.status.message
        if isinstance(refused.__cause__, Unreadable):
            words = refused.__cause__.of_tree
        what = described(self._definition.gvk, intent)
        kind = what.partition("; ")[2]
        into = f"unable to convert unstructured object to {kind}: {words}"
        return unnamed(f"failed to convert new object ({what}) to proper version: {into}")


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_null(inner) for inner in cast("Tree", value).values())
    return any(map(_has_null, cast("list[Any]", value))) if isinstance(value, list) else value is None


def _put_nulls_back(obj: Any, merged: Any) -> None:
    """Restore the nulls that defaulting dropped: an applied custom resource is validated with them."""
    if isinstance(obj, dict) and isinstance(merged, dict):
        members = cast("Tree", obj)
        for name, value in cast("Tree", merged).items():
            if name == "metadata":
                continue
            if value is None:
                members.setdefault(name, None)
            elif name in members:
                _put_nulls_back(members[name], value)
    elif isinstance(obj, list) and isinstance(merged, list):
        for item, value in zip(cast("list[Any]", obj), cast("list[Any]", merged), strict=False):
            _put_nulls_back(item, value)
