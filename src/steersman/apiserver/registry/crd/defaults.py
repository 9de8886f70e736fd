"""CustomResourceDefinitions in kube-apiserver's form, before validation.

Guarantees
- `default_crd` produces what the server would print: fields that are always present are present, numbers are Go's,
  parts of schemas that were decoded as anything hold only schema fields, and defaults are filled in.
- An invalid schema is rejected with the message of the server's decoder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final, cast

from steersman.apiserver.errors import bad_request, too_large
from steersman.apiserver.go_types.fit import fits
from steersman.apiserver.go_types.reader import Unreadable, read_written
from steersman.apiserver.go_types.shapes import Shape, object_meta, referred
from steersman.apiserver.go_types.written_values import as_pairs
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.schemas import is_schema

_SCHEMA: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_NAMES: Final[Tree] = {"plural": "", "kind": ""}
_SPEC: Final[Tree] = {"group": "", "names": None, "scope": "", "versions": None}
_VERSION: Final[Tree] = {"name": "", "served": False, "storage": False}
_COLUMN: Final[Tree] = {"name": "", "type": "", "jsonPath": ""}
_SCALE: Final[Tree] = {"specReplicasPath": "", "statusReplicasPath": ""}
_CONDITION: Final[Tree] = {"type": "", "status": "", "lastTransitionTime": None}
_STATUS: Final[Tree] = {"conditions": None, "acceptedNames": None, "storedVersions": None}
#: The maximum size in bytes of a stored object.
_STORED_MAX: Final = 1_572_864
#: The size in bytes of the smallest version that can be stored: its name, its flags and its schema.
_VERSION_SIZE: Final = 89
_FIELD: Final = re.compile(r"(Go struct field \w+\.)")
_INT64: Final = 2**63
_PLAIN_TO: Final = 1e21
_CANNOT: Final = 'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: '


def default_crd(crd: Tree) -> None:
    """Convert a definition into the server's form, and fill in defaults."""
    spec = crd["spec"] = _with(_SPEC, inner(crd, "spec"))
    names: Tree = _with(_NAMES, spec["names"] or {})
    spec["names"] = names
    if spec["versions"] is not None:
        if len(spec["versions"]) * _VERSION_SIZE > _STORED_MAX:
            raise too_large("etcdserver: request is too large")
        spec["versions"] = [_version(version) for version in spec["versions"]]
    _default_names(names)
    spec["conversion"] = _conversion(spec.get("conversion"))
    status = crd["status"] = _with(_STATUS, inner(crd, "status"))
    status["acceptedNames"] = _with(_NAMES, status["acceptedNames"] or {})
    if status["conditions"]:
        status["conditions"] = [_with(_CONDITION, condition) for condition in status["conditions"]]
    if not status["storedVersions"]:
        stored = storage_version(spec)
        status["storedVersions"] = None if stored is None else [stored]


def empty_crd() -> Tree:
    """The encoded form of an empty definition without defaults."""
    spec = _SPEC | {"names": dict(_NAMES)}
    return {"spec": spec, "status": _STATUS | {"acceptedNames": dict(_NAMES)}}


def storage_version(spec: Mapping[str, Any]) -> str | None:
    """The name of the stored version; None if there is none."""
    return next((version["name"] for version in items(spec, "versions") if version.get("storage")), None)


def _with(always: Tree, given: Mapping[str, Any]) -> Tree:
    return {**always, **given}


def _default_names(names: Tree) -> None:
    if not names.get("singular") and names["kind"]:
        names["singular"] = names["kind"].lower()
    if not names.get("listKind") and names["kind"]:
        names["listKind"] = f"{names['kind']}List"


def _version(given: Tree) -> Tree:
    version = _with(_VERSION, given)
    for name, always in (("additionalPrinterColumns", _COLUMN), ("selectableFields", {"jsonPath": ""})):
        if name in version:
            # One tree for all items that say nothing: they are invalid, so nothing of them is stored.
            empty = dict(always)
            version[name] = [_with(always, each) if each else empty for each in version[name]]
    subresources: Tree = version.get("subresources") or {}
    if "scale" in subresources:
        version["subresources"] = subresources | {"scale": _with(_SCALE, subresources["scale"])}
    schema = inner(version, "schema").get("openAPIV3Schema")
    if schema is not None:
        try:
            _settle(schema)
        except Unreadable as unreadable:
            raise bad_request(f"{_CANNOT}{_inside('spec.versions.schema.openAPIV3Schema', unreadable)}") from None
    return version


def _conversion(given: Tree | None) -> Tree:
    if given is None:
        return {"strategy": "None"}
    conversion = _with({"strategy": ""}, given)
    webhook = conversion.pop("webhook", None)
    if not webhook or (webhook.get("clientConfig") is None and webhook.get("conversionReviewVersions") is None):
        return conversion
    webhook = _with({"conversionReviewVersions": None}, webhook)
    client = inner(webhook, "clientConfig")
    if client.get("service") is not None:
        service = _with({"namespace": "", "name": ""}, client["service"])
        service.setdefault("port", 443)
        webhook["clientConfig"] = client | {"service": service}
    return conversion | {"webhook": webhook}


def _settle(schema: Tree) -> Tree:
    """Convert a schema with valid field types, and everything below it, into the server's form."""
    # In the order of the schema, so that the same mistake of several is always the one that is named.
    for name in [name for name in schema if name in _SETTLERS]:
        try:
            schema[name] = _SETTLERS[name](schema[name])
        except Unreadable as unreadable:
            raise _inside(name, unreadable) from None
    if "default" in schema:
        _tidy_embedded(schema, schema["default"])
    if schema.get("items", True) is None and schema.get("type") != "array":
        # It has no effect, and nothing reads it again.
        del schema["items"]
    return schema


def _tidy_embedded(schema: Mapping[str, Any], value: Any) -> None:
    """Prune the metadata of embedded objects in a default."""
    if isinstance(value, list):
        if is_schema(schema.get("items")):
            for item in cast("list[Any]", value):
                _tidy_embedded(schema["items"], item)
        return
    if not isinstance(value, dict):
        return
    members = cast("Tree", value)
    if schema.get("x-kubernetes-embedded-resource") and isinstance(members.get("metadata"), dict):
        # Unreadable metadata is left for validation to reject.
        with suppress(Unreadable):
            members["metadata"] = read_written(as_pairs(members["metadata"]), object_meta()).tree
    known: Mapping[str, Any] = schema.get("properties") or {}
    for name, inner_value in members.items():
        below = known.get(name, schema.get("additionalProperties"))
        if is_schema(below):
            _tidy_embedded(below, inner_value)


def metadata_problem(value: Any) -> str:
    """Why a value cannot be decoded as metadata, with the decoder's message; empty if it can."""
    try:
        read_written(as_pairs(value), object_meta())
    except Unreadable as unreadable:
        return str(unreadable)
    return ""


def _inside(field: str, unreadable: Unreadable) -> Unreadable:
    """A decoding error with the enclosing field added."""
    return Unreadable(_FIELD.sub(rf"\1{field}.", str(unreadable), count=1))


def _settle_each(schemas: list[Tree]) -> list[Tree]:
    for schema in schemas:
        _settle(schema)
    return schemas


def _settle_named(schemas: dict[str, Tree]) -> dict[str, Tree]:
    for schema in schemas.values():
        _settle(schema)
    return schemas


def _either(value: Any) -> Any:
    return value if isinstance(value, bool) else _read(value)


def _float(value: float) -> float:
    return _plain(float(value))


def _items(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(part) for part in cast("list[Any]", value)] or None
    return _read(value) if isinstance(value, dict) else None


def _dependency(value: Any) -> Any:
    if isinstance(value, dict):
        return _read(value)
    if not isinstance(value, list) or not value:
        return None
    listed = cast("list[Any]", value)
    if not all(isinstance(each, str) for each in listed):
        raise Unreadable("json: cannot unmarshal into Go value of type string")
    return listed


def _schema_shape() -> Shape:
    return referred(_SCHEMA)


def _read(value: Any) -> Tree:
    """Decode a schema that has not been checked yet."""
    if not isinstance(value, dict):
        raise Unreadable("boolean or JSON schema expected")
    tree = cast("Tree", value)
    if fits(_schema_shape(), tree) < 0:
        tree = read_written(as_pairs(tree), _schema_shape()).tree
    _settle(tree)
    return tree


def _values(value: Any) -> Any:
    """A value as Go holds it: 64-bit integers and floats."""
    if isinstance(value, dict):
        return {name: _values(part) for name, part in cast("Tree", value).items()}
    if isinstance(value, list):
        return [_values(part) for part in cast("list[Any]", value)]
    if isinstance(value, float) or (isinstance(value, int) and not -_INT64 <= value < _INT64):
        return _plain(float(value))
    return value


def _plain(value: float) -> float:
    """A number as printed: without a fraction if it is whole."""
    return int(Decimal(repr(value))) if value.is_integer() and abs(value) < _PLAIN_TO else value


#: How to convert the parts of a schema: those that hold schemas, and those that hold numbers.
_SETTLERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "items": _items,
    "not": _settle,
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _settle_each),
    **dict.fromkeys(("properties", "patternProperties", "definitions"), _settle_named),
    **dict.fromkeys(("additionalProperties", "additionalItems"), _either),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _float),
    **dict.fromkeys(("default", "example", "enum"), _values),
    "dependencies": lambda given: {name: _dependency(part) for name, part in given.items()},
    "x-kubernetes-validations": lambda rules: [_with({"rule": ""}, rule) for rule in rules],
}
