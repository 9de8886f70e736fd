"""Merge schemas: how the values of a kind merge and compare, according to its schema.

Guarantees:

- The same schema gives the same merge behavior as in kube-apiserver: list types and map keys, atomic maps, free-form
  objects, defaults of map keys, the patch strategies of built-in kinds, and overrides of a ``$ref``.
- References are resolved on first visit, so recursive schemas are harmless. A merge schema is made once per kind, can
  be shared, and never changes its answers.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from steersman.patches.errors import PatchError

Resolver: TypeAlias = Callable[[str], Mapping[str, Any]]
"""Finds the schema that a ``$ref`` names."""

ValueKind: TypeAlias = Literal["plain", "quantity", "time", "seconds", "bytes", "int-or-string"]
"""How two scalars compare; ``seconds`` is a time that the server truncates to the second (metav1.Time)."""

ListType: TypeAlias = Literal["atomic", "set", "map"]
ScalarType: TypeAlias = Literal["string", "numeric", "boolean", "untyped"]

_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW_EXTENSION: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_TIME: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"

# Every object has Kubernetes' metadata, whatever a custom resource's own schema declares.
_OBJECT_META: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "creationTimestamp": {"type": "string", "format": "date-time"},
        "deletionGracePeriodSeconds": {"type": "integer"},
        "deletionTimestamp": {"type": "string", "format": "date-time"},
        "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "generateName": {"type": "string"},
        "generation": {"type": "integer"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "managedFields": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic"},
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "blockOwnerDeletion": {"type": "boolean"},
                    "controller": {"type": "boolean"},
                    "kind": {"type": "string"},
                    "name": {"type": "string"},
                    "uid": {"type": "string"},
                },
            },
        },
        "resourceVersion": {"type": "string"},
        "selfLink": {"type": "string"},
        "uid": {"type": "string"},
    },
}
_STRING: Final[dict[str, Any]] = {"type": "string"}

_SCALARS: Final[dict[ScalarType, frozenset[type]]] = {
    "string": frozenset({str}),
    "numeric": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "untyped": frozenset({str, int, float, bool}),
}


#: Stands for a place that was not visited yet.
_UNVISITED: Final[Any] = object()


class _Shared:
    """State shared by all places of one schema."""

    __slots__ = ("is_quantity", "preserve", "references", "resolve")

    def __init__(
        self, resolve: Resolver | None, is_quantity: Callable[[Mapping[str, Any]], bool], *, preserve: bool
    ) -> None:
        self.resolve = resolve
        self.is_quantity = is_quantity
        self.preserve = preserve
        self.references: dict[tuple[str, str | None], MergeSchema] = {}


class MergeSchema:
    """The schema of a kind, or one place in it.

    ``schema`` is a structural schema (of a CRD) or a component of an OpenAPI v3 document; ``resolve`` finds the target
    of a ``$ref``. ``is_quantity`` recognizes quantities that neither a ``$ref`` nor the usual pattern identifies.
    """

    __slots__ = (
        "_items",
        "_properties",
        "_schema",
        "_shared",
        "_undeclared",
        "_unfolds",
        "allows_list",
        "allows_map",
        "allows_scalar",
        "is_atomic_map",
        "list_type",
        "map_keys",
        "places",
        "scalar_type",
        "scalars",
        "value_kind",
    )

    allows_scalar: bool
    allows_list: bool
    allows_map: bool
    is_atomic_map: bool
    list_type: ListType
    map_keys: tuple[str, ...]
    scalar_type: ScalarType
    scalars: frozenset[type]
    """The types of scalars that an apply may hold here."""
    value_kind: ValueKind
    places: "Mapping[str, MergeSchema | None]"
    """The schemas of fields and map values by name; None if no such field may exist."""

    def __init__(
        self,
        schema: Mapping[str, Any],
        *,
        resolve: Resolver | None = None,
        is_quantity: Callable[[Mapping[str, Any]], bool] | None = None,
        preserve_unknown_fields: bool = False,
    ) -> None:
        shared = _Shared(resolve, is_quantity or looks_like_quantity, preserve=preserve_unknown_fields)
        _, schema = _dereferenced(shared, schema)
        self._read(shared, schema, preserve=preserve_unknown_fields, is_object=True)

    @classmethod
    def from_openapi(cls, document: Mapping[str, Any], *, group: str, version: str, kind: str) -> "MergeSchema":
        """The schema of a kind from an OpenAPI v3 document, as served by ``/openapi/v3/apis/GROUP/VERSION``."""
        components: Mapping[str, Mapping[str, Any]] = document.get("components", {}).get("schemas", {})
        wanted = {"group": group, "version": version, "kind": kind}
        for component in components.values():
            if any(each == wanted for each in component.get("x-kubernetes-group-version-kind", ())):
                return cls(component, resolve=lambda reference: components[reference.rpartition("/")[2]])
        raise PatchError(
            f"the OpenAPI document holds no schema of {kind} in {group or 'core'}/{version}; fetch that group-version's document"
        )

    @classmethod
    def untyped(cls) -> "MergeSchema":
        """A substitute for a missing schema: objects merge field by field, lists are atomic."""
        return DEDUCED

    def _read(self, shared: _Shared, schema: Mapping[str, Any], *, preserve: bool, is_object: bool = False) -> None:
        self._shared = shared
        self._schema = schema
        # A schema opts in itself and everything nested in it, but not what it refers to.
        self._unfolds = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
        self.places = _Places(self)
        self._items: MergeSchema | None = None
        self._undeclared: MergeSchema | None = _UNVISITED
        self._properties: Mapping[str, Any] = schema.get("properties") or {}
        if is_object or schema.get("x-kubernetes-embedded-resource") is True:
            self._properties = _with_object_fields(self._properties)
        kind = schema.get("type") or ""
        self.allows_scalar = kind not in {"object", "array"}
        self.allows_list = kind in {"", "array"}
        self.allows_map = kind in {"", "object"}
        self.is_atomic_map = schema.get("x-kubernetes-map-type") == "atomic"
        self.list_type, self.map_keys = _list_type(schema)
        self.scalar_type = _scalar_type(schema)
        self.scalars = _SCALARS[self.scalar_type] if self.allows_scalar else frozenset()
        self.value_kind = _value_kind(shared, schema) if self.allows_scalar else "plain"

    @property
    def is_map(self) -> bool:
        """Whether this is a map of like values under free names, such as labels, and not an object with named fields."""
        return isinstance(self._schema.get("additionalProperties"), Mapping) and not self._properties

    def declares(self, name: str) -> bool:
        """Whether the schema names this field."""
        return name in self._properties

    def field(self, name: str) -> "MergeSchema | None":
        """The schema of a field or map value; None if no such field may exist."""
        return self.places[name]

    def first_visit(self, name: str) -> "MergeSchema":
        """The schema of a declared field on its first visit; `places` caches it."""
        return _place(self._shared, self._properties[name], preserve=self._unfolds)

    @property
    def of_undeclared(self) -> "MergeSchema | None":
        """The schema of every field and map value that is not declared; None if there may be none."""
        if self._undeclared is _UNVISITED:
            self._undeclared = self._find_undeclared()
        return self._undeclared

    def _find_undeclared(self) -> "MergeSchema | None":
        additional = self._schema.get("additionalProperties")
        if isinstance(additional, Mapping):
            # One place for all: the names come from data and must not fill the memory.
            return _place(self._shared, cast("Mapping[str, Any]", additional), preserve=self._unfolds)
        if additional is None:
            return DEDUCED if self._unfolds or not self._properties else None
        return DEDUCED if additional else None

    @property
    def items(self) -> "MergeSchema":
        """The schema of the items of a list."""
        if self._items is None:
            items = self._schema.get("items")
            self._items = UNTYPED if items is None else _place(self._shared, items, preserve=self._unfolds)
        return self._items

    def default_of(self, name: str) -> Any:
        """The default of a field; None if it has none."""
        declared: Mapping[str, Any] = self._properties.get(name) or {}
        return declared.get("default")


class _Places(dict[str, "MergeSchema | None"]):
    """Makes a visited field as fast to find as a dict entry."""

    __slots__ = ("_schema",)

    def __init__(self, schema: MergeSchema) -> None:
        self._schema = schema

    def __missing__(self, name: str) -> MergeSchema | None:
        schema = self._schema
        if schema.declares(name):
            found = self[name] = schema.first_visit(name)
            return found
        # Undeclared names come from data and must not fill the memory.
        return schema.of_undeclared


def _place(shared: _Shared, schema: Mapping[str, Any], *, preserve: bool) -> MergeSchema:
    reference = _reference(schema)
    if reference is None:
        place = MergeSchema.__new__(MergeSchema)
        place._read(shared, schema, preserve=preserve)  # noqa: SLF001 - the module's own
        return place
    override: str | None = schema.get("x-kubernetes-map-type")
    found = shared.references.get((reference, override))
    if found is None:
        found = shared.references[reference, override] = _referred(shared, reference, schema)
    return found


def _referred(shared: _Shared, reference: str, schema: Mapping[str, Any]) -> MergeSchema:
    name, target = _dereferenced(shared, schema)
    if name == _RAW_EXTENSION:
        return UNTYPED
    place = MergeSchema.__new__(MergeSchema)
    place._read(shared, target, preserve=shared.preserve)  # noqa: SLF001 - the module's own
    if name == _QUANTITY:
        place.allows_list = place.allows_map = False
        place.scalar_type, place.value_kind = "untyped", "quantity"
        place.scalars = _SCALARS["untyped"]
    elif name == _TIME:
        place.value_kind = "seconds"
    override = schema.get("x-kubernetes-map-type")
    if override and place.allows_map:
        place.is_atomic_map = override == "atomic"
    elif override and place.allows_list:
        place.list_type, place.map_keys = ("atomic", ()) if override == "atomic" else (place.list_type, place.map_keys)
    elif override:
        raise PatchError(f"the schema calls {reference} a map ({override}), but it is a scalar")
    return place


def _reference(schema: Mapping[str, Any]) -> str | None:
    reference = schema.get("$ref")
    if reference:
        return str(reference)
    # OpenAPI allows nothing next to a $ref, so generators wrap it.
    wrapped = cast("list[Mapping[str, Any]]", schema.get("allOf") or [])
    return str(wrapped[0]["$ref"]) if len(wrapped) == 1 and wrapped[0].get("$ref") else None


def _dereferenced(shared: _Shared, schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Follow chained references. Returns the schema and the last name on the way."""
    name = ""
    visited: set[str] = set()
    while (reference := _reference(schema)) is not None:
        name = reference.rpartition("/")[2]
        if reference in visited:
            raise PatchError(f"the schema refers to itself: {reference}")
        visited.add(reference)
        if shared.resolve is None:
            raise PatchError(f"the schema refers to {reference}, but nothing was given to resolve references with")
        try:
            schema = shared.resolve(reference)
        except KeyError:
            raise PatchError(f"the schema refers to {reference}, which does not exist") from None
    return name, schema


def _with_object_fields(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata: Mapping[str, Any] = properties.get("metadata") or {}
    return {
        **properties,
        "apiVersion": _STRING,
        "kind": _STRING,
        "metadata": _OBJECT_META if _reference(metadata) is None else metadata,
    }


def _list_type(schema: Mapping[str, Any]) -> tuple[ListType, tuple[str, ...]]:
    declared = schema.get("x-kubernetes-list-type")
    if declared == "map":
        return "map", tuple(schema.get("x-kubernetes-list-map-keys") or ())
    if declared is not None:
        return ("set" if declared == "set" else "atomic"), ()
    # Built-in kinds older than list types declare it by their patch strategy.
    if schema.get("x-kubernetes-patch-strategy") in {"merge", "merge,retainKeys"}:
        key = schema.get("x-kubernetes-patch-merge-key")
        return ("map", (str(key),)) if key else ("set", ())
    return "atomic", ()


def looks_like_quantity(schema: Mapping[str, Any]) -> bool:
    """Whether a schema looks like those that generators write for quantities in CRDs."""
    return schema.get("format") == "quantity" or (
        schema.get("x-kubernetes-int-or-string") is True and "[KMGTPE]i" in (schema.get("pattern") or "")
    )


def _scalar_type(schema: Mapping[str, Any]) -> ScalarType:
    """The required type of a scalar in an apply; a value with a format may be anything."""
    match schema.get("type"):
        case "integer" | "number":
            return "numeric"
        case "boolean":
            return "boolean"
        case "string" if schema.get("format") in {None, "", "byte"}:
            return "string"
        case _:
            return "untyped"


def _value_kind(shared: _Shared, schema: Mapping[str, Any]) -> ValueKind:
    if shared.is_quantity(schema):
        return "quantity"
    match schema.get("format"):
        case "date-time":
            return "time"
        case "byte":
            return "bytes"
        case "int-or-string":
            return "int-or-string"
        case _:
            return "int-or-string" if schema.get("x-kubernetes-int-or-string") is True else "plain"


def _fixed(*, atomic: bool) -> MergeSchema:
    # With preserve, everything undeclared is deduced in turn.
    place = MergeSchema.__new__(MergeSchema)
    place._read(_Shared(None, looks_like_quantity, preserve=True), {}, preserve=True)  # noqa: SLF001 - the module's own
    place.is_atomic_map = atomic
    return place


UNTYPED: Final = _fixed(atomic=True)
"""Any value, owned as a whole."""

DEDUCED: Final = _fixed(atomic=False)
"""Any value; objects merge field by field, lists are atomic."""
