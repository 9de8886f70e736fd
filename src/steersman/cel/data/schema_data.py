"""The validated object as expressions see it: JSON trees, each part with its shape.

Guarantees
- Values are converted lazily, on access.
- Set and map lists compare and concatenate by content, not by order.
- Fields outside the schema are not accessible.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

from steersman.cel.field_names import escape, unescape
from steersman.cel.library.times import read_date, read_schema_duration, read_timestamp
from steersman.cel.model import Shape
from steersman.cel.values import (
    NOTHING,
    CelError,
    Duration,
    JoinedList,
    Listing,
    Mapped,
    Maybe,
    Timestamp,
    equal,
    map_find,
    map_size,
    no_overload,
)
from steersman.golang import base64_problem, deeply_equal, printed_number, quoted

_GO_TYPES: Final = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    bytes: "[]uint8",
    Timestamp: "time.Time",
    Duration: "time.Duration",
}


def go_type(value: Any) -> str:
    """The Go type of a value, as the server's messages name it."""
    kind = value.__class__
    return _GO_TYPES.get(kind, "<nil>")


def seen(raw: Any, shape: Shape) -> Any:
    """A part of the object as an expression sees it."""
    if raw is None:
        if shape.nullable:
            return None
        raise CelError("invalid data, got null for schema with nullable=false")
    reader = shape.reader
    if reader is None:
        reader = shape.reader = _reader(shape)
    return reader(raw, shape)


def _reader(shape: Shape) -> Callable[[Any, Shape], Any]:
    """The converter for values of a shape."""
    schema = shape.schema
    if schema.get("x-kubernetes-int-or-string"):
        return _int_or_string
    return _KINDS.get(schema.get("type") or "", _untyped)


def _int_or_string(raw: Any, shape: Shape) -> Any:  # noqa: ARG001 - one signature for all
    if isinstance(raw, str) or (isinstance(raw, int) and not isinstance(raw, bool)):
        return raw
    raise CelError("invalid data, expected XIntOrString value to be either a string or integer")


def _integer(raw: Any, shape: Shape) -> Any:  # noqa: ARG001
    if type(raw) is int:
        return raw
    raise CelError(f"invalid data, expected int, got {go_type(raw)}")


def _boolean(raw: Any, shape: Shape) -> Any:  # noqa: ARG001
    if isinstance(raw, bool):
        return raw
    raise CelError(f"invalid data, expected bool, got {go_type(raw)}")


def _number(raw: Any, shape: Shape) -> Any:  # noqa: ARG001
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return float(raw)
    raise CelError(f"invalid data, expected float, got {go_type(raw)}")


def _object(raw: Any, shape: Shape) -> Any:
    if not isinstance(raw, dict):
        raise CelError("invalid data, expected a map for the provided schema with type=object")
    return ObjectData(cast("dict[str, Any]", raw), shape)


def _untyped(raw: Any, shape: Shape) -> Any:
    if shape.schema.get("x-kubernetes-preserve-unknown-fields"):
        return Unknown(raw)
    raise CelError(
        "invalid type, expected object, array, number, integer, boolean or string, or no type with "
        "x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got "
        f"{shape.schema.get('type') or ''}"
    )


def _list(raw: Any, shape: Shape) -> Any:
    if not isinstance(raw, list):
        raise CelError("invalid data, expected an array for the provided schema with type=array")
    if shape.items is None:
        raise CelError("invalid array type, expected Items with a non-empty Schema")
    items = cast("list[Any]", raw)
    match shape.list_type:
        case "map":
            return KeyedList(items, shape)
        case "set":
            return SetList(items, shape)
        case _:
            return ListData(items, shape)


def _text(raw: Any, shape: Shape) -> Any:
    if not isinstance(raw, str):
        raise CelError(f"invalid data, expected string, got {go_type(raw)}")
    form = shape.schema.get("format") or ""
    read = _READERS.get(form)
    if read is None:
        return raw
    value = read(raw)
    if value is None:
        raise CelError(_format_problem(form, raw))
    return value


def _format_problem(form: str, text: str) -> str:
    match form:
        case "duration":
            return f"Invalid duration {text}: unable to parse {text} as duration"
        case "byte":
            return f"Invalid byte formatted string {text}: {base64_problem(text)}"
        case "date":
            layout = "2006-01-02"
        case _:
            layout = "2006-01-02T15:04:05"
    kind = f"{form} formatted string"
    return f'Invalid {kind} {text}: parsing time {quoted(text)} as "{layout}": cannot parse {quoted(text)} as "2006"'


def _bytes(text: str) -> bytes | None:
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return None


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "duration": read_schema_duration,
    "date": read_date,
    "date-time": read_timestamp,
    "byte": _bytes,
}
_KINDS: Final[dict[str, Callable[[Any, Shape], Any]]] = {
    "string": _text,
    "integer": _integer,
    "boolean": _boolean,
    "number": _number,
    "object": _object,
    "array": _list,
}


class Unknown:
    """A value without a type, kept unchanged."""

    __slots__ = ("raw",)

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def equals(self, other: Any) -> bool:
        """Whether two values are the same JSON."""
        return deeply_equal(self.raw, raw_of(other))


def raw_of(value: Any) -> Any:
    """The JSON behind a value."""
    return value.raw if isinstance(value, ObjectData | ListData | Unknown) else value


class ObjectData(Mapped):
    """An object with named fields, or a map."""

    __slots__ = ("raw", "shape")

    def __init__(self, raw: dict[str, Any], shape: Shape) -> None:
        self.raw = raw
        self.shape = shape

    def field(self, name: str | None) -> Maybe:
        """A field by its JSON name."""
        raw = self.raw.get(name) if name is not None else None
        if raw is None:
            return NOTHING
        properties = self.shape.properties
        inner = properties.get(name or "") if properties is not None else self.shape.additional
        return NOTHING if inner is None else Maybe(seen(raw, inner))

    def find(self, key: Any) -> Maybe:
        """The value of a key; for a field, in the spelling of expressions."""
        if not isinstance(key, str):
            raise no_overload()
        if self.shape.properties is not None:
            return self.field(unescape(key))
        if key not in self.raw or self.shape.additional is None:
            return NOTHING
        return Maybe(seen(self.raw[key], self.shape.additional))

    def size(self) -> int:
        return len(self.raw)

    def keys(self) -> list[Any]:
        properties = self.shape.properties
        if properties is None:
            return list(self.raw) if self.shape.additional is not None else []
        return [escape(name) or name for name in self.raw if name in properties]

    def _has_schema(self, key: str) -> bool:
        properties = self.shape.properties
        return key in properties if properties is not None else self.shape.additional is not None

    def equals(self, other: Any) -> bool:
        """Whether all fields of the schema are equal."""
        if not isinstance(other, Mapped | dict):
            raise no_overload()
        if len(self.raw) != map_size(other):
            return False
        for key, value in self.raw.items():
            if self._has_schema(key):
                mine, theirs = self.find(key), map_find(other, key)
                if len(mine.held) != len(theirs.held):
                    return False
                if mine.held and not equal(mine.held[0], theirs.held[0]):
                    return False
            elif not isinstance(other, ObjectData):
                raise no_overload()
            elif key in other.raw and not deeply_equal(value, other.raw[key]):
                return False
        return True


class ListData(Listing):
    """A list whose order matters."""

    __slots__ = ("_items", "raw", "shape")

    def __init__(self, raw: list[Any], shape: Shape) -> None:
        self.raw = raw
        self.shape = shape
        self._items = cast("Shape", shape.items)

    def __len__(self) -> int:
        return len(self.raw)

    def __iter__(self) -> Iterator[Any]:
        shape = self._items
        return iter([_seen_or_error(item, shape) for item in self.raw])

    def get(self, index: Any) -> Any:
        if type(index) is not int:
            raise CelError(f"unsupported index: {printed_number(index)}")
        if not 0 <= index < len(self.raw):
            raise CelError(f"index out of bounds: {index}")
        return seen(self.raw[index], self._items)

    def equals(self, other: Any) -> bool:
        if not isinstance(other, list | Listing):
            raise no_overload()
        if len(self.raw) != len(cast("list[Any]", other)):
            return False
        return all(equal(mine, theirs) for mine, theirs in zip(self, cast("list[Any]", other), strict=True))

    def plus(self, other: Any) -> Any:
        return [*self, *other]


def _seen_or_error(raw: Any, shape: Shape) -> Any:
    """An item during iteration; an invalid one raises when it is used."""
    try:
        return seen(raw, shape)
    except CelError as error:
        return error


def _identity(raw: Any) -> Any:
    return (type(raw), raw) if isinstance(raw, str | int | float) else (type(raw), repr(raw))


def _value_identity(value: Any) -> Any:
    """What Go's maps tell values apart by."""
    raw = value.raw if isinstance(value, Unknown) else value
    if isinstance(raw, str | int | float | bytes):
        return (type(raw), raw)
    if isinstance(raw, Duration):
        return (Duration, raw.nanoseconds)
    if isinstance(raw, Timestamp):
        # Go reads each offset into a time zone of its own, which differs from all others.
        return raw if raw.offset else (Timestamp, raw.nanoseconds)
    if raw is None or isinstance(raw, list | dict):
        return repr(cast("Any", raw))
    return raw


def _set_key(value: Any) -> Any:
    """What sets tell their items apart by. Raises `CelError` for an object or a list."""
    if isinstance(value, list | dict | Listing | Mapped):
        raise CelError("listSet operations are only supported on lists of scalar values")
    return _value_identity(value)


def _same_items(one: Iterable[Any], two: Iterable[Any]) -> bool:
    held = {_set_key(item) for item in one}
    found: set[Any] = set()
    for item in two:
        key = _set_key(item)
        if key not in held:
            return False
        found.add(key)
    return len(found) == len(held)


class SetList(ListData):
    """A list with set semantics."""

    __slots__ = ()

    def equals(self, other: Any) -> bool:
        """Whether both have the same number of items, and the same items."""
        items = _items_of(other)
        return len(self) == len(items) and _same_items(self, items)

    def plus(self, other: Any) -> Any:
        """The union: those items of the other that are not found here come last."""
        return SetUnion(self, other)


class SetUnion(JoinedList):
    """The union of a set and the items of another list."""

    __slots__ = ()

    def __init__(self, items: Iterable[Any], more: Iterable[Any]) -> None:
        super().__init__(items)
        held = {_set_key(item) for item in self}
        for item in more:
            key = _set_key(item)
            if key not in held:
                held.add(key)
                self.append(item)

    def equals(self, other: Any) -> bool:
        """Whether both have the same number of items, and the same items."""
        items = _items_of(other)
        return len(self) == len(items) and _same_items(self, items)

    def plus(self, other: Any) -> Any:
        """The union with one more list."""
        return SetUnion(self, other)


def _items_of(value: Any) -> list[Any]:
    if not isinstance(value, list | Listing):
        raise no_overload()
    return cast("list[Any]", value)


def _matched(held: dict[Any, Any], items: Iterable[tuple[Any, Any]]) -> bool:
    """Whether there is an equal item for each key."""
    found: set[Any] = set()
    for key, item in items:
        if key not in held or not equal(held[key], item):
            return False
        found.add(key)
    return len(found) == len(held)


class KeyedList(ListData):
    """A list with map semantics: its items have keys."""

    __slots__ = ()

    def _key(self, item: Any) -> Any:
        raw = raw_of(item)
        if not isinstance(raw, dict) or raw is item:
            return object()  # as the server: an item from elsewhere equals no key
        fields = cast("dict[str, Any]", raw)
        # As the server (escapeKeyProps): it looks for the escaped name, so a key such as my-key is never found.
        return tuple(_identity(fields.get(escape(key) or key)) for key in self.shape.list_keys)

    def equals(self, other: Any) -> bool:
        """Whether each item of the other has an equal item here."""
        items = _items_of(other)
        if len(self) != len(items):
            return False
        held = {self._key(item): item for item in self}
        return _matched(held, ((self._key(item), item) for item in items))

    def plus(self, other: Any) -> Any:
        """The merged list: items of the other replace those with the same key."""
        return KeyedUnion(self, other, [escape(key) or key for key in self.shape.list_keys])


class KeyedUnion(JoinedList):
    """A list with map semantics, and the items of another list."""

    __slots__ = ("_keys",)

    def __init__(self, items: Iterable[Any], more: Iterable[Any], keys: list[str]) -> None:
        super().__init__(items)
        self._keys = keys
        places = {self._key(item): at for at, item in enumerate(self)}
        for item in more:
            place = places.get(self._key(item))
            if place is None:
                self.append(item)
            else:
                self[place] = item

    def _key(self, item: Any) -> Any:
        return tuple(_key_part(item, key) for key in self._keys)

    def equals(self, other: Any) -> bool:
        """Whether each item of the other has an equal item here."""
        items = _items_of(other)
        if len(self) != len(items):
            return False
        held = {self._key(item): item for item in self}
        return _matched(held, ((self._key(item), item) for item in items))

    def plus(self, other: Any) -> Any:
        """The list merged with one more."""
        return KeyedUnion(self, other, self._keys)


def _key_part(item: Any, key: str) -> Any:
    if not isinstance(item, dict | Mapped):
        return None
    try:
        found = map_find(item, key)
    except CelError:
        return None
    return _value_identity(found.held[0]) if found.held else None
