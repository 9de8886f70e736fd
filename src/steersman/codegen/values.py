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


class InexpressibleDefault(ValueError):
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
    for name, value in _given_fields(marker):
        items.append(literal(value) if positional and not items else Keyword(name, literal(value)))
    return call(head, *items)


def _given_fields(values: msgspec.Struct) -> list[tuple[str, Any]]:
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
    """The names of a kind, without those that the class derives from its own."""
    arguments: list[tuple[str, str]] = [("group", options.group), ("version", options.version)]
    if options.kind != name:
        arguments.append(("kind", options.kind))
    arguments.append(("plural", options.plural or plural_of(options.kind)))
    if options.singular != options.kind.lower():
        arguments.append(("singular", options.singular))
    if options.scope != "Namespaced":
        arguments.append(("scope", options.scope))
    return [Keyword(key, literal(value)) for key, value in arguments]


def _presentation(options: ResourceOptions, use: Use, *, as_owner: bool) -> list[Expression]:
    """How a kind is shown and served; ``as_owner`` says that the class is its definition."""
    arguments: list[Expression] = []
    for key in ("short_names", "categories", "selectable_fields"):
        names: tuple[str, ...] = getattr(options, key)
        if names:
            arguments.append(Keyword(key, _tuple([literal(name) for name in names])))
    if options.columns:
        arguments.append(
            Keyword("columns", _tuple([_options_call(use("PrinterColumn"), column) for column in options.columns]))
        )
    if options.scale is not None:
        arguments.append(Keyword("scale", _options_call(use("ScaleSubresource"), options.scale)))
    if options.status_subresource is not None:
        arguments.append(Keyword("status_subresource", literal(options.status_subresource)))
    if as_owner:
        arguments += [Keyword(key, "False") for key in ("storage", "served") if not getattr(options, key)]
    if options.deprecated:
        arguments.append(Keyword("deprecated", literal(options.deprecated)))
    return arguments


def _options_call(head: str, options: PrinterColumn | ScaleSubresource) -> Expression:
    return call(head, *(Keyword(name, literal(value)) for name, value in _given_fields(options)))


def default_expression(kind: Type, value: Any, use: Use, class_of: Callable[[Model], str]) -> Expression:
    """A JSON default as a Python value of a type."""
    expression: Expression
    match kind:
        case Marked(inner, _):
            expression = default_expression(inner, value, use, class_of)
        case Choice() | Plain("bool" | "int" | "float" | "str" | "IntOrString") if isinstance(value, (str, int, float)):
            expression = literal(value)
        case Plain("Quantity") if isinstance(value, (str, int)):
            expression = call(use("Quantity"), literal(value))
        case Plain("Any"):
            expression = literal(value)
        case ListOf(item) if isinstance(value, list):
            values = [default_expression(item, inner, use, class_of) for inner in cast("list[Any]", value)]
            expression = Bracket("", "[", tuple(values))
        case MapOf(item) if isinstance(value, dict):
            expression = Bracket("", "{", tuple(_entries(item, cast("dict[str, Any]", value), use, class_of)))
        case Nested(model) if isinstance(value, dict):
            expression = _struct_default(model, cast("dict[str, Any]", value), use, class_of)
        case _:
            raise InexpressibleDefault(f"no Python form for the default {value!r}")
    return expression


def _entries(item: Type, value: dict[str, Any], use: Use, class_of: Callable[[Model], str]) -> list[Expression]:
    return [f"{literal(key)}: {flat(default_expression(item, inner, use, class_of))}" for key, inner in value.items()]


def _struct_default(model: Model, value: dict[str, Any], use: Use, class_of: Callable[[Model], str]) -> Expression:
    properties = {prop.wire: prop for prop in model.properties}
    names = field_names(properties)
    missing = [prop.wire for prop in model.properties if prop.required and prop.wire not in value]
    if missing or value.keys() - properties.keys():
        raise InexpressibleDefault(f"the default {value!r} is not a whole {model.suggested_name}")
    items: list[Expression] = [
        Keyword(names[wire], default_expression(properties[wire].type, inner, use, class_of))
        for wire, inner in value.items()
    ]
    return call(class_of(model), *items)


def needs_factory(value: Any) -> bool:
    """Whether a default must be created anew for every object."""
    return isinstance(value, (list, dict))
