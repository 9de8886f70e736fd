"""Read one schema node of an OpenAPI document or a CRD as a type.

Guarantees
- Every node gets a type: what OpenAPI leaves open is ``Any``, never an error.
- A constraint that no marker or pattern can express is kept as a note.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, cast

import msgspec

from steersman.codegen.description import (
    NOTHING,
    Choice,
    Either,
    ListOf,
    MapOf,
    Marked,
    Model,
    Nested,
    Plain,
    Property,
    Reference,
    Type,
)
from steersman.codegen.names import class_part
from steersman.markers import (
    EmbeddedResource,
    Example,
    ExternalDocs,
    Format,
    ListAtomic,
    ListMap,
    ListSet,
    MapAtomic,
    Marker,
    Maximum,
    MaxItems,
    MaxLength,
    MaxProperties,
    Minimum,
    MinItems,
    MinLength,
    MinProperties,
    MultipleOf,
    Nullable,
    Pattern,
    PreserveUnknownFields,
    Rule,
    Title,
)
from steersman.objects import Condition
from steersman.schemas import QUANTITY_PATTERN, readable_schema

Node: TypeAlias = dict[str, Any]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_SCHEMA: Final = Reference(f"{_EXTENSIONS}JSONSchemaProps")

#: Definitions that are values, not objects with fields. The last four are unions that OpenAPI leaves untyped.
VALUES: Final[dict[str, Type]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": Plain("Quantity"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": Plain("IntOrString"),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": Plain("Any"),
    f"{_META}Time": Plain("datetime"),
    f"{_META}MicroTime": Plain("MicroTime"),
    f"{_META}FieldsV1": MapOf(Plain("Any")),
    f"{_META}Patch": Plain("Any"),
    f"{_EXTENSIONS}JSON": Plain("Any"),
    f"{_EXTENSIONS}JSONSchemaPropsOrArray": Either((_SCHEMA, ListOf(_SCHEMA))),
    f"{_EXTENSIONS}JSONSchemaPropsOrBool": Either((_SCHEMA, Plain("bool"))),
    f"{_EXTENSIONS}JSONSchemaPropsOrStringArray": Either((_SCHEMA, ListOf(Plain("str")))),
}

#: The zero values that Go's OpenAPI generator writes as defaults of by-value fields.
_ZERO_VALUES: Final[tuple[Any, ...]] = ({}, [], "", 0, False, None)

_NUMBERS: Final = (("multipleOf", MultipleOf),)
_SIZES: Final = (
    ("minLength", MinLength),
    ("maxLength", MaxLength),
    ("minItems", MinItems),
    ("maxItems", MaxItems),
    ("minProperties", MinProperties),
    ("maxProperties", MaxProperties),
)
_MIXED: Final = (Plain("IntOrString"), Plain("Quantity"))
#: Formats that the Python type fully expresses.
_PLAIN_FORMATS: Final = {"date-time", "int64", "double"}
_CONDITION_TYPES: Final = {
    "type": "string",
    "status": "string",
    "reason": "string",
    "message": "string",
    "lastTransitionTime": "string",
    "observedGeneration": "integer",
}
CONDITION: Final = f"{_META}Condition"


class UnreadableSchema(ValueError):
    """A document that is neither an OpenAPI v3 document nor a CRD, or that contradicts itself."""


def part(node: Node, *path: str) -> Node:
    """A part of a document; empty if absent."""
    for name in path:
        inner: Any = node.get(name)
        if inner is None:
            return {}
        if not isinstance(inner, dict):
            raise UnreadableSchema(f"{'.'.join(path)} must be an object, not {type(inner).__name__}")
        node = cast("Node", inner)
    return node


def parts(node: Node, name: str) -> list[Any]:
    """A list in a document; empty if absent."""
    found: Any = node.get(name)
    if found is not None and not isinstance(found, list):
        raise UnreadableSchema(f"{name} must be a list, not {type(found).__name__}")
    return cast("list[Any]", found or [])


class Reading(msgspec.Struct, frozen=True):
    """How to read a document."""

    #: Go's own types: defaults are zero values, enums grow with each release. Otherwise a CRD's structural schema.
    from_go: bool
    #: Keep what only the CRD's owner needs: CEL rules, number formats.
    as_owner: bool = False


def target_of(node: Node) -> str | None:
    """The definition that a node refers to; None if it is not a reference."""
    if "$ref" in node:
        return str(node["$ref"]).rpartition("/")[2]
    all_of = parts(node, "allOf")
    return target_of(all_of[0]) if len(all_of) == 1 and "properties" not in node and "type" not in node else None


def type_of(node: Node, path: tuple[str, ...], reading: Reading) -> Type:
    """The type of a node. ``path`` leads to it and names the models inside it."""
    target = target_of(node)
    if target is not None:
        kind = VALUES.get(target, Reference(target))
        return _marked(kind, _map_markers(node))
    kind, implied = _bare_type(node, path, reading)
    return _marked(kind, implied if reading.from_go else (*implied, *_constraints(node, kind, reading)))


def _marked(kind: Type, markers: tuple[Marker, ...]) -> Type:
    return Marked(kind, markers) if markers else kind


_PLAIN_TYPES: Final[dict[str, Plain]] = {"integer": Plain("int"), "number": Plain("float"), "boolean": Plain("bool")}


def _bare_type(node: Node, path: tuple[str, ...], reading: Reading) -> tuple[Type, tuple[Marker, ...]]:
    """A type and the markers of its structure."""
    named: str = node.get("type") or ("object" if "properties" in node else "")
    markers: tuple[Marker, ...] = ()
    kind: Type
    if _is_int_or_string(node):
        kind = Plain("Quantity" if node.get("pattern") == QUANTITY_PATTERN else "IntOrString")
    elif not reading.from_go and (closed := _closed_set(node)) is not None:
        kind = closed
    elif named == "string":
        kind = _text(node, reading)
    elif named == "array":
        markers = _list_markers(node)
        kind = ListOf(type_of(part(node, "items"), (*path[:-1], f"{path[-1]}[]"), reading))
    elif named == "object":
        kind, markers = _object(node, path, reading)
    else:
        kind = _PLAIN_TYPES.get(named, Plain("Any"))
        if node.get("x-kubernetes-preserve-unknown-fields"):
            markers = (PreserveUnknownFields(),)
    return kind, markers


def _is_int_or_string(node: Node) -> bool:
    if node.get("x-kubernetes-int-or-string") or node.get("format") == "int-or-string":
        return True
    return {option.get("type") for option in parts(node, "oneOf")} == {"integer", "string"}


def _closed_set(node: Node) -> Choice | None:
    """An enum as a closed set; None if Python's ``Literal`` cannot hold its values."""
    values = [value for value in parts(node, "enum") if value is not None]
    alike = any(all(type(value) is kind for value in values) for kind in (str, int, bool))
    return Choice(tuple(values)) if values and alike else None


def _text(node: Node, reading: Reading) -> Type:
    match node.get("format"):
        case "date-time":
            return Plain("datetime")
        case "byte" if reading.from_go:
            # The engine writes canonical base64; a CRD's string may hold anything, and stays a string.
            return Plain("bytes")
        case _:
            return Plain("str")


def _list_markers(node: Node) -> tuple[Marker, ...]:
    match node.get("x-kubernetes-list-type"):
        case "map":
            return (ListMap(*node["x-kubernetes-list-map-keys"]),)
        case "set":
            return (ListSet(),)
        case "atomic":
            return (ListAtomic(),)
        case _:
            return ()


def _map_markers(node: Node) -> tuple[Marker, ...]:
    return (MapAtomic(),) if node.get("x-kubernetes-map-type") == "atomic" else ()


def _object(node: Node, path: tuple[str, ...], reading: Reading) -> tuple[Type, tuple[Marker, ...]]:
    markers: tuple[Marker, ...] = _map_markers(node)
    if node.get("x-kubernetes-embedded-resource"):
        markers = (*markers, EmbeddedResource())
    preserved = bool(node.get("x-kubernetes-preserve-unknown-fields"))
    if preserved:
        markers = (*markers, PreserveUnknownFields())
    values = node.get("additionalProperties")
    if values is True or values == {}:
        return MapOf(Plain("Any")), markers
    if isinstance(values, dict):
        value_path = (*path[:-1], f"{path[-1]}[]")
        return MapOf(type_of(cast("Node", values), value_path, reading)), markers
    is_embedded = EmbeddedResource() in markers
    # A server publishes the common fields of embedded objects, even if the CRD does not mention them.
    named = part(node, "properties").keys() - ({"apiVersion", "kind", "metadata"} if is_embedded else set[str]())
    if is_embedded and not named:
        return MapOf(Plain("Any")), markers
    if "properties" not in node and (preserved or reading.from_go):
        return MapOf(Plain("Any")), markers
    if not reading.from_go and _is_condition(node, reading):
        return Reference(CONDITION), markers
    return Nested(model_of(node, path, reading)), markers


def _is_condition(node: Node, reading: Reading) -> bool:
    """Whether a nested object is meta/v1's Condition, as spelled out in CRDs, and our `Condition` can represent it.

    A foreign CRD must require what our Condition always sends, or it would send fields that no one set. An owner's CRD
    is generated again from the models, so there it must match our Condition exactly.
    """
    properties: dict[str, Node] = part(node, "properties")
    looks_alike = (
        {"type", "status", "reason", "message", "lastTransitionTime"} <= properties.keys() <= _CONDITION_TYPES.keys()
        and all(properties[name].get("type") == kind for name, kind in _CONDITION_TYPES.items() if name in properties)
        and properties["lastTransitionTime"].get("format") == "date-time"
    )
    if not looks_alike:
        return False
    if reading.as_owner:
        return _undescribed(node) == _undescribed(readable_schema(Condition))
    return {"type", "status", "reason", "message"} <= set(parts(node, "required")) and (
        set(parts(properties["status"], "enum")) <= {"True", "False", "Unknown"}
    )


def _undescribed(node: Node) -> Node:
    """A node without parts that mean nothing to a server: descriptions, default integer formats, the order of names."""
    plain = {name: value for name, value in node.items() if name != "description"}
    if plain.get("type") == "integer" and plain.get("format") == "int64":
        del plain["format"]
    for name in ("required", "enum"):
        if name in plain:
            plain[name] = sorted(parts(node, name))
    if "properties" in plain:
        plain["properties"] = {name: _undescribed(inner) for name, inner in part(node, "properties").items()}
    return plain


def _constraints(node: Node, kind: Type, reading: Reading) -> tuple[Marker, ...]:
    """The constraints of a CRD on a value, as markers."""
    if kind == Plain("Any"):
        return ()  # a constraint on an untyped value has no marker
    markers: list[Marker] = []
    if "minimum" in node:
        markers.append(Minimum(_number(node["minimum"]), exclusive=bool(node.get("exclusiveMinimum"))))
    if "maximum" in node:
        markers.append(Maximum(_number(node["maximum"]), exclusive=bool(node.get("exclusiveMaximum"))))
    markers += [marker(_number(node[name])) for name, marker in _NUMBERS if name in node]
    markers += [marker(int(node[name])) for name, marker in _SIZES if name in node]
    if node.get("pattern") and node["pattern"] != QUANTITY_PATTERN and not _foreign_pattern(node):
        markers.append(Pattern(node["pattern"]))
    shown = node.get("format")
    if shown and shown not in _PLAIN_FORMATS and kind not in _MIXED and (shown != "int32" or reading.as_owner):
        markers.append(Format(shown))
    if node.get("nullable") and not isinstance(kind, Choice):
        markers.append(Nullable())
    if reading.as_owner:
        markers += [*rules_of(node), *_documentation(node)]
    return tuple(markers)


def _documentation(node: Node) -> list[Marker]:
    markers: list[Marker] = []
    if node.get("title"):
        markers.append(Title(node["title"]))
    if "example" in node:
        markers.append(Example(node["example"]))
    if node.get("externalDocs"):
        docs = part(node, "externalDocs")
        markers.append(ExternalDocs(url=docs.get("url") or "", description=docs.get("description") or ""))
    return markers


def _number(value: float) -> int | float:
    return int(value) if float(value).is_integer() else value


def _foreign_pattern(node: Node) -> str | None:
    """Why Python cannot check a node's pattern; None if it can, or there is no pattern."""
    try:
        Pattern(node.get("pattern") or "")
    except ValueError as error:
        return str(error)
    return None


def rules_of(node: Node) -> list[Rule]:
    """The CEL rules of a node."""
    return [
        Rule(
            rule=rule["rule"],
            message=rule.get("message") or "",
            message_expression=rule.get("messageExpression") or "",
            reason=rule.get("reason"),
            field_path=rule.get("fieldPath") or "",
            optional_old_self=rule.get("optionalOldSelf"),
        )
        for rule in parts(node, "x-kubernetes-validations")
    ]


def model_of(node: Node, path: tuple[str, ...], reading: Reading, *, definition: str = "") -> Model:
    """The model of an object node, with its properties ordered by name.

    ``path`` begins with the name of the kind; ``[]`` marks the step to an item of a list or a value of a map.
    """
    required = set(parts(node, "required"))
    properties: dict[str, Node] = part(node, "properties")
    return Model(
        definition=definition or ".".join(path),
        suggested_name="".join(map(class_part, path)),
        description=node.get("description") or "",
        properties=tuple(
            _property(wire, schema, (*path, wire), reading, required=wire in required)
            for wire, schema in sorted(properties.items())
        ),
    )


def _property(wire: str, node: Node, path: tuple[str, ...], reading: Reading, *, required: bool) -> Property:
    kind = type_of(node, path, reading)
    default = NOTHING if reading.from_go else node.get("default", NOTHING)
    if required and default in _ZERO_VALUES and not reading.as_owner:
        default = NOTHING  # from an aggregated server written in Go: the field is required all the same
    return Property(
        wire=wire,
        type=kind,
        required=required and default is NOTHING,
        description=node.get("description") or "",
        default=default,
        sensitive=node.get("format") == "password",
        notes=() if reading.from_go else tuple(_notes(node)),
    )


def _notes(node: Node) -> list[str]:
    notes: list[str] = []
    foreign = _foreign_pattern(node)
    if foreign is not None:
        notes.append(f"Not checked here, only by the server: {foreign}.")
    if node.get("enum") and _closed_set(node) is None:
        notes.append(f"One of {', '.join(repr(value) for value in node['enum'])}.")
    return notes
