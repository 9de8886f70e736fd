"""Schemas as kube-apiserver's messages print them: every field of its Go type, with its names and order.

Guarantee: `printed_schema`, `printed_items` and `printed_rule` return the JSON in the server's message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from steersman.golang import printed_json
from steersman.schemas.structure.rules import is_schema

Schema = Mapping[str, Any]
Printer = Callable[[Any], str]


def struct_text(fields: Iterable[tuple[str, str]]) -> str:
    """A struct of printed fields."""
    return "{" + ",".join(f'"{name}":{text}' for name, text in fields) + "}"


def list_text(items: Any, printed: Printer) -> str:
    """A list; null if it is empty, like an unset list in Go."""
    return f"[{','.join(map(printed, items))}]" if items else "null"


def pointer_text(value: Any, printed: Printer) -> str:
    """An optional value; null if it is absent."""
    return "null" if value is None else printed(value)


def _map_text(entries: Any, printed: Printer) -> str:
    if not entries:
        return "null"
    members = cast("dict[str, Any]", entries)
    return "{" + ",".join(f"{printed_json(name)}:{printed(members[name])}" for name in sorted(members)) + "}"


def _schema(value: Schema) -> str:
    return printed_schema(value)


def _schemas(value: Any) -> str:
    return list_text(value, printed_schema)


def _named_schemas(value: Any) -> str:
    return _map_text(value, printed_schema)


def _schema_or_bool(value: Any) -> str:
    if is_schema(value):
        return struct_text([("Allows", "true"), ("Schema", printed_schema(value))])
    return struct_text([("Allows", printed_json(value)), ("Schema", "null")])


def printed_items(value: Any) -> str:
    """The items of a list: one schema, several, or another value."""
    one = printed_schema(value) if is_schema(value) else "null"
    several = _schemas(value) if isinstance(value, list) else "null"
    return struct_text([("Schema", one), ("JSONSchemas", several)])


def _dependency(value: Any) -> str:
    one = printed_schema(value) if is_schema(value) else "null"
    names = list_text(value, printed_json) if isinstance(value, list) else "null"
    return struct_text([("Schema", one), ("Property", names)])


def _documentation(value: Schema) -> str:
    return struct_text(
        [("Description", printed_json(value.get("description", ""))), ("URL", printed_json(value.get("url", "")))]
    )


def printed_rule(rule: Schema) -> str:
    """A CEL rule."""
    return struct_text(
        [
            ("Rule", printed_json(rule.get("rule", ""))),
            ("Message", printed_json(rule.get("message", ""))),
            ("MessageExpression", printed_json(rule.get("messageExpression", ""))),
            ("Reason", printed_json(rule.get("reason"))),
            ("FieldPath", printed_json(rule.get("fieldPath", ""))),
            ("OptionalOldSelf", printed_json(rule.get("optionalOldSelf"))),
        ]
    )


#: The fields of the server's type in order: the Go name, the JSON name, how an absent value prints, and the printer.
SCHEMA_FIELDS: Final[tuple[tuple[str, str, str, Printer], ...]] = (
    ("ID", "id", '""', printed_json),
    ("Schema", "$schema", '""', printed_json),
    ("Ref", "$ref", "null", printed_json),
    ("Description", "description", '""', printed_json),
    ("Type", "type", '""', printed_json),
    ("Nullable", "nullable", "false", printed_json),
    ("Format", "format", '""', printed_json),
    ("Title", "title", '""', printed_json),
    ("Default", "default", "null", printed_json),
    ("Maximum", "maximum", "null", printed_json),
    ("ExclusiveMaximum", "exclusiveMaximum", "false", printed_json),
    ("Minimum", "minimum", "null", printed_json),
    ("ExclusiveMinimum", "exclusiveMinimum", "false", printed_json),
    ("MaxLength", "maxLength", "null", printed_json),
    ("MinLength", "minLength", "null", printed_json),
    ("Pattern", "pattern", '""', printed_json),
    ("MaxItems", "maxItems", "null", printed_json),
    ("MinItems", "minItems", "null", printed_json),
    ("UniqueItems", "uniqueItems", "false", printed_json),
    ("MultipleOf", "multipleOf", "null", printed_json),
    ("Enum", "enum", "null", printed_json),
    ("MaxProperties", "maxProperties", "null", printed_json),
    ("MinProperties", "minProperties", "null", printed_json),
    ("Required", "required", "null", printed_json),
    ("Items", "items", "null", printed_items),
    ("AllOf", "allOf", "null", _schemas),
    ("OneOf", "oneOf", "null", _schemas),
    ("AnyOf", "anyOf", "null", _schemas),
    ("Not", "not", "null", _schema),
    ("Properties", "properties", "null", _named_schemas),
    ("AdditionalProperties", "additionalProperties", "null", _schema_or_bool),
    ("PatternProperties", "patternProperties", "null", _named_schemas),
    ("Dependencies", "dependencies", "null", lambda value: _map_text(value, _dependency)),
    ("AdditionalItems", "additionalItems", "null", _schema_or_bool),
    ("Definitions", "definitions", "null", _named_schemas),
    ("ExternalDocs", "externalDocs", "null", _documentation),
    ("Example", "example", "null", printed_json),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", "null", printed_json),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", "false", printed_json),
    ("XIntOrString", "x-kubernetes-int-or-string", "false", printed_json),
    ("XListMapKeys", "x-kubernetes-list-map-keys", "null", printed_json),
    ("XListType", "x-kubernetes-list-type", "null", printed_json),
    ("XMapType", "x-kubernetes-map-type", "null", printed_json),
    ("XValidations", "x-kubernetes-validations", "null", lambda value: list_text(value, printed_rule)),
)


def printed_schema(schema: Schema) -> str:
    """A schema in canonical form."""
    return struct_text(
        (called, printed(schema[name]) if name in schema else nothing)
        for called, name, nothing, printed in SCHEMA_FIELDS
    )
