"""Markers, options and default values as Python expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from steersman.codegen.description import Choice, ListOf, MapOf, Marked, Model, Nested, Plain, Type
from steersman.codegen.layout import Bracket, Expression, Keyword, call, flat, literal
from steersman.codegen.names import field_names
from steersman.markers import ExactlyOneOf, ExternalDocs, ListMap, Marker, Rule
from steersman.objects import PrinterColumn, ResourceOptions, ScaleSubresource, plural_of

#: Imports a name of ``steersman.objects`` or ``steersman.markers`` into the module, and returns its spelling there.
Use = Callable[[str], str]


class Unsayable(ValueError):
    """A default that Python cannot express for its type."""


def marker_expression(marker: Marker, use: Use) -> Expression:
    """``Minimum(0)``, ``ListMap("name")``, ``Rule(rule="...", message="...")``."""
    head = use(type(marker).__name__)
    if isinstance(marker, (ListMap, ExactlyOneOf)):
        return call(head, *map(literal, marker.names))
    if not isinstance(marker, msgspec.Struct):
        return call(head)
    positional = not isinstance(marker, (ExternalDocs, Rule))
    items: list[Expression] = []
    for name, value in _told(marker):
        items.append(literal(value) if positional and not items else Keyword(name, literal(value)))
    return call(head, *items)


def _told(values: msgspec.Struct) -> list[tuple[str, Any]]:
    """The fields of a struct that differ from their defaults."""
    return [
        (field.name, value)
        for field in msgspec.structs.fields(values)
        if (value := getattr(values, field.name)) != field.default
    ]


def class_arguments(model: Model, name: str, use: Use, *, as_owner: bool) -> tuple[Expression, ...]:
    """The arguments in the parentheses of a class statement."""
    if model.kind is None:
        arguments: list[Expression] = [use("Struct")]
    else:
        arguments = [use("Object"), *_identity(model.kind, name)]
        arguments += _presentation(model.kind, use, as_owner=as_owner)
    if model.rules:
        arguments.append(Keyword("rules", _tuple([marker_expression(rule, use) for rule in model.rules])))
    return tuple(arguments)


def _tuple(items: list[Expression]) -> Bracket:
    return Bracket("", "(", tuple(items))


def _identity(options: ResourceOptions, name: str) -> list[Expression]:
    said: list[tuple[str, str]] = [("group", options.group), ("version", options.version)]
    if options.kind != name:
        said.append(("kind", options.kind))
    said.append(("plural", options.plural or plural_of(options.kind)))
    if options.singular != options.kind.lower():
        said.append(("singular", options.singular))
    if options.scope != "Namespaced":
        said.append(("scope", options.scope))
    return [Keyword(key, literal(value)) for key, value in said]


def _presentation(options: ResourceOptions, use: Use, *, as_owner: bool) -> list[Expression]:
    said: list[Expression] = []
    for key in ("short_names", "categories", "selectable_fields"):
        names: tuple[str, ...] = getattr(options, key)
        if names:
            said.append(Keyword(key, _tuple([literal(name) for name in names])))
    if options.columns:
        said.append(
            Keyword("columns", _tuple([_options_call(use("PrinterColumn"), column) for column in options.columns]))
        )
    if options.scale is not None:
        said.append(Keyword("scale", _options_call(use("ScaleSubresource"), options.scale)))
    if options.status_subresource is not None:
        said.append(Keyword("status_subresource", literal(options.status_subresource)))
    if as_owner:
        said += [Keyword(key, "False") for key in ("storage", "served") if not getattr(options, key)]
    if options.deprecated:
        said.append(Keyword("deprecated", literal(options.deprecated)))
    return said


def _options_call(head: str, options: PrinterColumn | ScaleSubresource) -> Expression:
    return call(head, *(Keyword(name, literal(value)) for name, value in _told(options)))


def default_expression(kind: Type, value: Any, use: Use, class_of: Callable[[Model], str]) -> Expression:
    """A JSON default as a Python value of a type."""
    spelled: Expression
    match kind:
        case Marked(inner, _):
            spelled = default_expression(inner, value, use, class_of)
        case Choice() | Plain("bool" | "int" | "float" | "str" | "IntOrString") if isinstance(value, (str, int, float)):
            spelled = literal(value)
        case Plain("Quantity") if isinstance(value, (str, int)):
            spelled = call(use("Quantity"), literal(value))
        case Plain("Any"):
            spelled = literal(value)
        case ListOf(item) if isinstance(value, list):
            values = [default_expression(item, inner, use, class_of) for inner in cast("list[Any]", value)]
            spelled = Bracket("", "[", tuple(values))
        case MapOf(item) if isinstance(value, dict):
            spelled = Bracket("", "{", tuple(_entries(item, cast("dict[str, Any]", value), use, class_of)))
        case Nested(model) if isinstance(value, dict):
            spelled = _struct_default(model, cast("dict[str, Any]", value), use, class_of)
        case _:
            raise Unsayable(f"no Python form for the default {value!r}")
    return spelled


def _entries(item: Type, value: dict[str, Any], use: Use, class_of: Callable[[Model], str]) -> list[Expression]:
    return [f"{literal(key)}: {flat(default_expression(item, inner, use, class_of))}" for key, inner in value.items()]


def _struct_default(model: Model, value: dict[str, Any], use: Use, class_of: Callable[[Model], str]) -> Expression:
    properties = {prop.wire: prop for prop in model.properties}
    names = field_names(properties)
    missing = [prop.wire for prop in model.properties if prop.required and prop.wire not in value]
    if missing or value.keys() - properties.keys():
        raise Unsayable(f"the default {value!r} is not a whole {model.suggested_name}")
    items: list[Expression] = [
        Keyword(names[wire], default_expression(properties[wire].type, inner, use, class_of))
        for wire, inner in value.items()
    ]
    return call(class_of(model), *items)


def needs_factory(value: Any) -> bool:
    """Whether a default must be created anew for every object."""
    return isinstance(value, (list, dict))
