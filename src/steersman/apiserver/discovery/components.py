"""The schemas of an OpenAPI document: those of the kinds, their lists, and everything that they refer to.

Guarantees
- Every reference of a document leads to a schema of the same document.
- The schema of a kind names it (``x-kubernetes-group-version-kind``), as kubectl expects.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final, cast

from steersman import kinds
from steersman.apiserver.discovery.custom_schemas import published
from steersman.apiserver.discovery.descriptions import common_fields, describe
from steersman.apiserver.registry import Definition, Tree
from steersman.kinds import index
from steersman.objects import GroupVersionKind

_PREFIX: Final = "#/components/schemas/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
DELETE_OPTIONS: Final = f"{_META}.DeleteOptions"
PATCH: Final = f"{_META}.Patch"
STATUS: Final = f"{_META}.Status"
_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_KIND: Final = "x-kubernetes-group-version-kind"


def reference(name: str) -> Tree:
    """A reference to a schema of the same document."""
    return {"$ref": f"{_PREFIX}{name}"}


def schema_name(definition: Definition) -> str:
    """The name of the schema of a resource's kind."""
    return kind_name(definition.gvk) if definition.custom else builtin_name(definition.gvk) or kind_name(definition.gvk)


def kind_name(gvk: GroupVersionKind) -> str:
    """The name of a custom kind: its group reversed, as in Java."""
    return ".".join((*reversed(gvk.group.split(".")), gvk.version, gvk.kind))


@cache
def builtin_name(gvk: GroupVersionKind) -> str:
    """The name of a built-in kind's definition; empty for other kinds."""
    for package, module in index.PACKAGES.items():
        if index.MODULES.get(module) == (gvk.group, gvk.version):
            try:
                kinds.definition(f"{package}.{gvk.kind}")
            except LookupError:
                return ""
            return f"{package}.{gvk.kind}"
    return ""


class Components:
    """Collects the schemas of one document."""

    def __init__(self) -> None:
        self._schemas: dict[str, Tree] = {}
        for name in (DELETE_OPTIONS, PATCH, STATUS):
            self._take(name)

    def add(self, definition: Definition) -> str:
        """Add the schemas of a resource's kind and of its lists. Returns the name."""
        name = schema_name(definition)
        if definition.custom or not builtin_name(definition.gvk):
            self._schemas[name] = schema = _custom_schema(definition)
            self._follow(schema)
        else:
            self._take(name)
        if "list" in definition.verbs:
            listed = f"{name.removesuffix(definition.gvk.kind)}{definition.list_kind}"
            self._schemas[listed] = schema = _list_schema(definition, name)
            self._follow(schema)
        return name

    def add_kind(self, gvk: GroupVersionKind, otherwise: str) -> str:
        """Add the schema of a built-in kind, such as that of a subresource. Returns its name, or ``otherwise``."""
        name = builtin_name(gvk)
        if not name:
            return otherwise
        self._take(name)
        return name

    def tree(self) -> Tree:
        """All schemas by name."""
        return {name: self._schemas[name] for name in sorted(self._schemas)}

    def _take(self, name: str) -> None:
        waiting = [name]
        while waiting:
            name = waiting.pop()
            if name not in self._schemas:
                self._schemas[name] = schema = _described(name)
                waiting += _references(schema)

    def _follow(self, schema: Tree) -> None:
        for name in _references(schema):
            self._take(name)


@cache
def _described(name: str) -> Tree:
    """A built-in definition with its descriptions; shared, so do not change it."""
    try:
        schema = kinds.definition(name)
    except LookupError:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    said = describe(name)
    is_object = f"{_META}.ObjectMeta" in _references(schema.get("properties", {}).get("metadata"))
    texts = {**common_fields(), **said.fields} if is_object else said.fields
    described: Tree = {"description": said.text, **schema} if said.text else dict(schema)
    if "properties" in schema:
        described["properties"] = {
            field: {"description": texts[field], **node} if field in texts else node
            for field, node in schema["properties"].items()
        }
    return described


def _custom_schema(definition: Definition) -> Tree:
    """The schema of a custom kind, with the fields of every object."""
    return {**published(definition), _KIND: [_named(definition.gvk, definition.gvk.kind)]}


def _list_schema(definition: Definition, name: str) -> Tree:
    return {
        "description": f"{definition.list_kind} is a list of {definition.gvk.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"description": common_fields()["apiVersion"], "type": "string"},
            "items": {
                "description": f"List of {definition.resource}. More info: {_CONVENTIONS}",
                "type": "array",
                "items": reference(name),
            },
            "kind": {"description": common_fields()["kind"], "type": "string"},
            "metadata": {
                "description": f"Standard list metadata. More info: {_CONVENTIONS}#types-kinds",
                "allOf": [reference(f"{_META}.ListMeta")],
            },
        },
        _KIND: [_named(definition.gvk, definition.list_kind)],
    } | (
        {"x-kubernetes-selectable-fields": [{"fieldPath": path} for path in definition.selectable]}
        if definition.custom and definition.selectable
        else {}
    )


def _named(gvk: GroupVersionKind, kind: str) -> Tree:
    return {"group": gvk.group, "kind": kind, "version": gvk.version}


def _references(node: object) -> Iterator[str]:
    """The names of all schemas that a schema refers to."""
    if isinstance(node, dict):
        for key, value in cast("Tree", node).items():
            if key == "$ref" and isinstance(value, str):
                yield value.removeprefix(_PREFIX)
            else:
                yield from _references(value)
    elif isinstance(node, list):
        for value in cast("list[object]", node):
            yield from _references(value)
