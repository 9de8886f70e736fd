"""The types of a struct's fields: as declared, as decoded, and where they contain structs.

Decoding is lenient: before msgspec first reads a class, its annotations are replaced by looser ones. A Literal becomes
its base type, and constraints are removed. The declared annotations stay available to ``schemas``.
"""

from __future__ import annotations

import enum
import sys
import types
import typing
from functools import cache
from typing import Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

import msgspec

from steersman.markers import ListMap
from steersman.objects.origins import OriginSlot
from steersman.objects.struct import Struct

_DECLARED = "__declared_hints__"


def is_struct(hint: Any) -> TypeGuard[type[Struct]]:
    """Whether a type is one of our structs."""
    return isinstance(hint, type) and issubclass(hint, Struct)


def declared_hints(cls: type[Struct]) -> dict[str, Any]:
    """The resolved annotations of all fields, with their markers, by Python name."""
    found: dict[str, Any] | None = cls.__dict__.get(_DECLARED)
    if found is None:
        found = {}
        for ancestor in reversed(cls.__mro__):
            if is_struct(ancestor):
                found |= _own_hints(ancestor)
        found = {name: found[name] for name in cls.__struct_fields__ if name != "_origin"}
        setattr(cls, _DECLARED, found)
    return found


@cache
def _own_hints(cls: type[Struct]) -> dict[str, Any]:
    """Resolve the annotations in the body of one class, as they were before loosening."""
    body = types.SimpleNamespace(__annotations__=cls.__own_annotations__)
    names = getattr(sys.modules.get(cls.__module__), "__dict__", {})
    try:
        return typing.get_type_hints(body, globalns=names, localns={}, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"class {cls.__qualname__}: the annotation of a field uses {error.name!r}, which {cls.__module__} does not"
            " define; define it in the module, not inside a function"
        ) from error


@cache
def wire_names(cls: type[Struct]) -> dict[str, str]:
    """Python name -> wire name of all fields."""
    pairs = zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True)
    return {name: wire for name, wire in pairs if name != "_origin"}


def unwrap(hint: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """Split a hint into (type, markers, may be None); UNSET is ignored."""
    markers: tuple[Any, ...] = ()
    optional = False
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            hint, *inner = get_args(hint)
            markers = (*inner, *markers)
        elif origin in {Union, types.UnionType}:
            members = [member for member in get_args(hint) if member not in {type(None), msgspec.UnsetType}]
            optional = optional or type(None) in get_args(hint)
            if len(members) != 1:
                return Union[tuple(members)], markers, optional  # noqa: UP007 - made at run time
            hint = members[0]
        else:
            return hint, markers, optional


def loosen(hint: Any) -> Any:
    """The type that decoding uses instead of ``hint``."""
    origin = get_origin(hint)
    if origin is Annotated:
        return loosen(get_args(hint)[0])
    if origin is Literal:
        kinds: set[Any] = {type(value) for value in get_args(hint)}
        return kinds.pop() if len(kinds) == 1 else Any
    if origin in {Union, types.UnionType}:
        return Union[tuple(dict.fromkeys(loosen(member) for member in get_args(hint)))]  # noqa: UP007 - made at run time
    if origin in {list, dict}:
        container: Any = origin
        return container[tuple(loosen(argument) for argument in get_args(hint))]
    return hint


def structs_in(hint: Any) -> list[type[Struct]]:
    """All struct classes inside a hint."""
    if is_struct(hint):
        return [hint]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        raise TypeError(
            f"{hint.__qualname__} is an Enum, which cannot hold a value that a newer server sends; write "
            f"Literal[{', '.join(repr(member.value) for member in hint)}]"
        )
    return (
        [struct for argument in get_args(hint) for struct in structs_in(argument)]
        if get_origin(hint) is not Literal
        else []
    )


@cache
def structs_of(cls: type[Struct]) -> tuple[type[Struct], ...]:
    """All struct classes inside the fields of ``cls``."""
    found: list[type[Struct]] = []
    for name, hint in declared_hints(cls).items():
        try:
            found += structs_in(hint)
        except TypeError as error:
            raise TypeError(f"class {cls.__qualname__}: {name}: {error}") from None
    return tuple(found)


def prepare(cls: type[Struct]) -> None:
    """Loosen a class and every struct it reaches, once, before msgspec reads its annotations.

    Raises `TypeError` each time if one of them has a field that cannot be read.
    """
    reached: dict[type[Struct], None] = {}
    waiting = [cls]
    while waiting:
        current = waiting.pop()
        if current not in reached and "__loosened__" not in current.__dict__:
            reached[current] = None
            waiting.extend(structs_of(current))
    for current in reached:
        hints = declared_hints(current)
        # A field of type None (the status of a kind without one) still reads anything a server sends.
        loose = {name: Any if hint is type(None) else loosen(hint) for name, hint in hints.items()}
        current.__annotations__ = loose | {"_origin": OriginSlot}
        setattr(current, "__loosened__", True)  # noqa: B010 - a class attribute that type checkers need not see


class StructShape(msgspec.Struct, frozen=True):
    """A JSON object decoded into ``cls``."""

    cls: type[Struct]


class ListShape(msgspec.Struct, frozen=True):
    """A list of items that contain structs; ``keys`` (wire names) identify its items, if it has any."""

    item: Shape
    keys: tuple[str, ...]


class MapShape(msgspec.Struct, frozen=True):
    """A map whose values contain structs."""

    item: Shape


class EitherShape(msgspec.Struct, frozen=True):
    """A union (``JSONSchemaProps | list[JSONSchemaProps]``): where structs are depends on the value."""

    of_object: Shape
    of_list: Shape


Shape = StructShape | ListShape | MapShape | EitherShape | None


def shape_of(hint: Any) -> Shape:
    """Where a type contains structs; None if nowhere."""
    kind, markers, _ = unwrap(hint)
    if is_struct(kind):
        return StructShape(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list and (item := shape_of(arguments[0])) is not None:
        keys = next((marker.keys for marker in markers if isinstance(marker, ListMap)), ())
        return ListShape(item, keys)
    if origin is dict and (item := shape_of(arguments[1])) is not None:
        return MapShape(item)
    if origin in {Union, types.UnionType}:
        return _either([shape_of(argument) for argument in arguments])
    return None


def _either(shapes: list[Shape]) -> Shape:
    of_object = next((shape for shape in shapes if isinstance(shape, (StructShape, MapShape))), None)
    of_list = next((shape for shape in shapes if isinstance(shape, ListShape)), None)
    return EitherShape(of_object, of_list) if of_object or of_list else None


def narrowed(shape: Shape, value: Any) -> Shape:
    """The shape of this value, if its type is a union."""
    if isinstance(shape, EitherShape):
        return shape.of_object if isinstance(value, dict) else shape.of_list if isinstance(value, list) else None
    return shape


@cache
def field_shapes(cls: type[Struct]) -> dict[str, Shape]:
    """The shapes of the fields (by wire name) that contain structs."""
    names = wire_names(cls)
    shapes = {names[name]: shape_of(hint) for name, hint in declared_hints(cls).items()}
    return {name: shape for name, shape in shapes.items() if shape is not None}
