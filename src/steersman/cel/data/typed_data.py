"""Objects of built-in kinds as the expressions of policies and match conditions see them: JSON trees with types.

kube-apiserver shows an expression the fields of the Go object itself. They read as JSON does, except:

Guarantees
- A list or an object that is compared with something that is neither raises `CelError`; ``!=`` and a search ignore that.
- Keys are strings and indexes are ints: any other key raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final, Protocol, cast

from steersman.cel.values import (
    NOTHING,
    CelError,
    Listing,
    Mapped,
    Maybe,
    elements,
    equal,
    map_find,
    map_size,
    no_overload,
)
from steersman.golang import deeply_equal


class GoShape(Protocol):
    """A type in Go."""

    @property
    def kind(self) -> str:
        """``struct``, ``map``, ``list`` or another word."""
        ...

    @property
    def go(self) -> str:
        """Its name."""
        ...

    @cached_property
    def fields(self) -> Any:
        """The fields of a struct by their names in JSON, each with its `shape`."""
        ...

    @cached_property
    def inner(self) -> Any:
        """The type of a list's items or a map's values."""
        ...


def typed(tree: Any, shape: GoShape) -> Any:
    """A part of an object as expressions see it. A part without a type of its own, such as a raw extension, is JSON."""
    match shape.kind:
        case "struct" | "map" if isinstance(tree, dict):
            return TypedObject(cast("dict[str, Any]", tree), shape)
        case "list" if isinstance(tree, list):
            return TypedList(cast("list[Any]", tree), shape)
        case _:
            return tree


def untyped(value: Any) -> Any:
    """A value as JSON, with all that is in it."""
    match value:
        case TypedList() | TypedObject():
            return value.raw
        case dict():
            return {key: untyped(inner) for key, inner in cast("dict[Any, Any]", value).items()}
        case list():
            return [untyped(item) for item in cast("list[Any]", value)]
        case _:
            return value


class TypedList(Listing):
    """A list in an object of a built-in kind."""

    __slots__ = ("raw", "shape")
    #: A search ignores items that cannot be compared.
    search_raises = False

    def __init__(self, raw: list[Any], shape: GoShape) -> None:
        self.raw = raw
        self.shape = shape

    def __len__(self) -> int:
        return len(self.raw)

    def __iter__(self) -> Iterator[Any]:
        return iter([typed(item, self.shape.inner) for item in self.raw])

    def get(self, index: Any) -> Any:
        """One item."""
        if type(index) is not int:
            raise CelError(f"unsupported index type: {_go_name(index)}")
        return typed(self.raw[index], self.shape.inner)

    def equals(self, other: Any) -> bool:
        """Whether another list has equal items."""
        items = elements(other)
        if items is None:
            raise no_overload()
        return len(self) == len(items) and all(_alike(*pair) for pair in zip(self, items, strict=True))

    def plus(self, other: Any) -> Any:
        """The items of both lists."""
        return [*self, *other]


class TypedObject(Mapped):
    """An object of a built-in kind, or one inside it."""

    __slots__ = ("raw", "shape")

    def __init__(self, raw: dict[str, Any], shape: GoShape) -> None:
        self.raw = raw
        self.shape = shape

    def find(self, key: Any) -> Maybe:
        """The value of a field. Raises `CelError` if the key is no string."""
        if not isinstance(key, str):
            raise CelError(f"unsupported map key type: {_go_name(key)}")
        if key not in self.raw:
            return NOTHING
        value = self.raw[key]
        if self.shape.kind == "map":
            return Maybe(typed(value, self.shape.inner))
        field = self.shape.fields.get(key)
        return Maybe(value if field is None else typed(value, field.shape))

    def size(self) -> int:
        """The number of fields that are set."""
        return len(self.raw)

    def keys(self) -> list[Any]:
        """The names of the fields that are set."""
        return list(self.raw)

    def equals(self, other: Any) -> bool:
        """Whether another object has equal fields."""
        if not isinstance(other, Mapped | dict):
            raise no_overload()
        is_struct = self.shape.kind == "struct"
        if is_struct and isinstance(other, TypedObject) and other.shape.kind == "struct":
            return self.shape.go == other.shape.go and deeply_equal(self.raw, other.raw)
        if len(self.raw) != map_size(other):
            return False
        compare = _same if is_struct else _alike
        for key in self.raw:
            theirs = map_find(other, key)
            if not theirs.held or not compare(self.find(key).get(), theirs.held[0]):
                return False
        return True


def _same(mine: Any, theirs: Any) -> bool:
    """Whether two fields are equal. Raises `CelError` if they cannot be compared, as a list with null."""
    return mine.equals(theirs) if isinstance(mine, TypedList | TypedObject) else equal(mine, theirs)


def _alike(mine: Any, theirs: Any) -> bool:
    """Whether two items are equal; items that cannot be compared differ."""
    try:
        return _same(mine, theirs)
    except CelError:
        return False


_GO_NAMES: Final[dict[type, str]] = {int: "Int", float: "Double", bool: "Bool", str: "String", bytes: "Bytes"}


def _go_name(value: Any) -> str:
    kind = value.__class__
    return f"types.{_GO_NAMES.get(kind, 'Null' if value is None else kind.__name__)}"
