"""Shapes: the types into which kube-apiserver decodes built-in kinds, derived from their schemas.

Guarantees
- A shape holds what messages need: the type of a value, its name in Go, and the positions of embedded structs.
- Shapes are made on first access of a field, once for each definition, and shared.
"""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import msgspec

from steersman.kinds import definitions, index
from steersman.kinds.registry import module_of
from steersman.objects import GroupVersionKind

Tree: TypeAlias = dict[str, Any]
Kind: TypeAlias = Literal[
    "struct",
    "map",
    "list",
    "string",
    "int",
    "float",
    "bool",
    "bytes",
    "time",
    "micro",
    "quantity",
    "int-or-string",
    "any",
]

_REFERENCES: dict[str, Kind] = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "micro",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
}
#: Fields whose rules distinguish empty from absent.
_DISTINGUISHED = {
    ("io.k8s.api.core.v1.Secret", "data"),
    ("io.k8s.api.core.v1.ConfigMap", "binaryData"),
    ("io.k8s.api.autoscaling.v2.HPAScalingRules", "policies"),
    ("io.k8s.api.core.v1.PersistentVolumeClaimSpec", "accessModes"),
    ("io.k8s.api.core.v1.PersistentVolumeSpec", "capacity"),
    ("io.k8s.api.core.v1.VolumeResourceRequirements", "requests"),
    ("io.k8s.api.networking.v1.IngressSpec", "rules"),
}
#: Kinds of types that null empties, also after another value: maps, slices, and times, which decode themselves.
NULLABLE: frozenset[Kind] = frozenset({"map", "list", "bytes", "time", "micro"})
#: Kinds of all groups that are registered, but are not objects.
OF_ALL_GROUPS = frozenset(
    GroupVersionKind("", "v1", kind)
    for kind in ("Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList")
)
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class Place(NamedTuple):
    """A field of a struct: its shape, and the embedded structs on the way to it."""

    shape: Shape
    embedded: tuple[str, ...]
    #: Whether the server cannot distinguish a zero or empty value from an absent one, and omits it.
    omitted: bool
    #: Whether a null takes an earlier value of the field back.
    nullable: bool


class Shape:
    """A type.

    ``go`` is its name in Go, ``name`` that of a struct without its package, ``definition`` that of its schema.
    """

    def __init__(self, kind: Kind, go: str, *, definition: str = "", node: Tree | None = None) -> None:
        self.kind: Kind = kind
        self.go = go
        self.name = definition.rpartition(".")[2] or go.rpartition(".")[2]
        self.definition = definition
        self._node: Tree = node or {}

    @cached_property
    def fields(self) -> dict[str, Place]:
        """The fields of a struct."""
        types = _go_types().types.get(self.definition, {})
        omitted = _go_types().omitted.get(self.definition, ())
        pointers = _go_types().pointers.get(self.definition, ())
        properties: dict[str, Tree] = self._node.get("properties") or {}
        found: dict[str, Place] = {}
        for name, node in properties.items():
            go, *embedded = types.get(name, [""])
            is_omitted = name in omitted and (self.definition, name) not in _DISTINGUISHED
            shape = _shape(node, go)
            found[name] = Place(shape, tuple(embedded), is_omitted, name in pointers or shape.kind in NULLABLE)
        return found

    @property
    def required(self) -> tuple[str, ...]:
        """The fields of a struct that the server always prints."""
        return tuple(self._node.get("required") or ())

    @cached_property
    def inner(self) -> Shape:
        """The shape of a list's items or a map's values."""
        key = "items" if self.kind == "list" else "additionalProperties"
        prefix = "[]" if self.kind == "list" else "map[string]"
        # A list of named strings is named as such; a named map says nothing about its values.
        go = self.go.removeprefix(prefix) if self.go.startswith(prefix) else ""
        return _shape(self._node.get(key) or {}, go)


class _GoTypes(msgspec.Struct):
    """What schemas do not contain, by definition and field."""

    #: The name of a type, empty if it has none of its own, and the embedded structs that the field comes from.
    types: dict[str, dict[str, list[str]]]
    #: Fields that are omitted when they are zero.
    omitted: dict[str, frozenset[str]]
    #: Fields that are pointers.
    pointers: dict[str, frozenset[str]]


@cache
def _go_types() -> _GoTypes:
    raw = Path(__file__).with_name("go_types.json").read_bytes()
    return msgspec.json.decode(raw, type=_GoTypes)


def shape_of(kind: GroupVersionKind) -> Shape | None:
    """The shape of a built-in kind; None for other kinds."""
    try:
        return _builtin_shape(kind)
    except LookupError:
        return None


def is_registered(kind: GroupVersionKind) -> bool:
    """Whether kube-apiserver has a type for a kind: for an object, a list of them, or neither."""
    item = GroupVersionKind(kind.group, kind.version, kind.kind.removesuffix("List"))
    return shape_of(item) is not None or kind in OF_ALL_GROUPS


@cache
def _builtin_shape(kind: GroupVersionKind) -> Shape:
    """Raises LookupError for other kinds: clients name them, so the cache must not keep them."""
    module = module_of(kind.group_version)
    for package, held_in in index.PACKAGES.items():
        if held_in == module:
            try:
                return referred(f"{package}.{kind.kind}")
            except LookupError:
                continue
    raise LookupError(f"{kind} is no built-in kind")


@cache
def object_meta() -> Shape:
    """The shape of the metadata of every object."""
    return referred(_OBJECT_META)


@cache
def referred(definition: str) -> Shape:
    """The shape of a definition, such as ``io.k8s.api.core.v1.Container``. Raises LookupError if there is none."""
    package, _, name = definition.rpartition(".")
    go = f"{package.rpartition('.')[2]}.{name}"
    kind = _REFERENCES.get(definition)
    if kind is not None:
        return Shape(kind, go, definition=definition)
    node = definitions.definition(definition)
    if node.get("type") == "object" and "properties" in node:
        return Shape("struct", go, definition=definition, node=node)
    if node.get("type") == "string":
        return Shape("string", go)
    return Shape("any", go, definition=definition)


def _shape(node: Tree, go: str) -> Shape:  # noqa: PLR0911 - one return a type
    parts = cast("list[Tree]", node.get("allOf") or [])
    reference = node.get("$ref") or next((part["$ref"] for part in parts if "$ref" in part), None)
    if isinstance(reference, str):
        return referred(reference.rpartition("/")[2])
    match node.get("type"):
        case "array":
            inner = _shape(node.get("items") or {}, "")
            return Shape("list", go or f"[]{inner.go}", node=node)
        case "object" if "additionalProperties" in node:
            inner = _shape(node["additionalProperties"], "")
            return Shape("map", go or f"map[string]{inner.go}", node=node)
        case "string":
            is_bytes = node.get("format") == "byte"
            return Shape("bytes", "[]uint8") if is_bytes else Shape("string", go or "string")
        case "integer":
            return Shape("int", go or node.get("format") or "int64")
        case "number":
            return Shape("float", go or "float64")
        case "boolean":
            return Shape("bool", go or "bool")
        case _:
            return Shape("any", go)
