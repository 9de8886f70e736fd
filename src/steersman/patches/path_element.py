"""Path elements: the steps of a path to a field, in the text form of fieldsV1 and in the form of Kubernetes' messages.

Guarantees:

- Elements that mean the same have the same text, whatever white space, order of keys or notation of numbers they had.
- `element_order` is the order in which Kubernetes writes elements: fields, map keys, values, indexes.
- A path prints as in the conflict messages of server-side apply: ``.spec.containers[name="web"].image``.
- Anything else raises `FieldSetError`, and `TooDeep` if it nests too deeply.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, Self, TypeAlias, cast

import msgspec

from steersman.patches.errors import MAX_DEPTH, FieldSetError, TooDeep

_KINDS: Final[dict[str, Literal["field", "key", "value", "index"]]] = {
    "f": "field",
    "k": "key",
    "v": "value",
    "i": "index",
}
_SHORT: Final = 256
_INDEX: Final = re.compile(r"[+-]?[0-9]{1,18}")

_ESCAPES: Final[dict[int, str]] = (
    {code: f"\\u{code:04x}" for code in range(0x20)}
    | {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
    | {ord('"'): '\\"', ord("\\"): "\\\\"}
)
# Kubernetes also escapes these, but only in the values inside a path element.
_VALUE_ESCAPES: Final = _ESCAPES | {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


class PathElement(msgspec.Struct, frozen=True, order=False):
    """One step of a path, in the text form of fieldsV1: ``f:spec``, ``k:{"name":"web"}``, ``v:"a"`` or ``i:0``."""

    text: str

    def __post_init__(self) -> None:
        """Normalize the text, so that equal elements have equal texts."""
        msgspec.structs.force_setattr(self, "text", canonical_element(self.text))

    @classmethod
    def field(cls, name: str) -> Self:
        """A field of an object."""
        return cls(f"f:{name}")

    @classmethod
    def key(cls, keys: Mapping[str, Any]) -> Self:
        """An item of a list by its map keys."""
        return cls(key_text(keys))

    @classmethod
    def value(cls, value: Any) -> Self:
        """An item of a set by its value."""
        return cls(value_text(value))

    @classmethod
    def index(cls, index: int) -> Self:
        """An item of a list by its position."""
        return cls(f"i:{index}")

    @property
    def kind(self) -> Literal["field", "key", "value", "index"]:
        """What the element selects by."""
        return _KINDS[self.text[0]]

    @property
    def content(self) -> Any:
        """The field's name, the map keys as a dict, the item's value, or the index."""
        return _content(self.text)

    def __str__(self) -> str:
        match self.kind:
            case "field":
                return f".{self.text[2:]}"
            case "key":
                return f"[{','.join(f'{name}={_readable(value)}' for name, value in self.content.items())}]"
            case "value":
                return f"[={_readable(self.content)}]"
            case "index":
                return f"[{self.text[2:]}]"


Path: TypeAlias = tuple[PathElement, ...]
"""The way from the root of an object to a field."""


def format_path(path: Path) -> str:
    """A path as Kubernetes prints it: ``.spec.ports[port=80,protocol="TCP"].name``."""
    return "".join(str(element) for element in path)


def escaped(text: str) -> str:
    """A text escaped for the quotes of fieldsV1."""
    return text.translate(_ESCAPES)


def key_text(keys: Mapping[str, Any]) -> str:
    """The map keys of an item as a path element."""
    for value in keys.values():
        kind = cast("type[object]", type(value))
        if not (kind is int or kind is bool or (kind is str and len(value) <= _SHORT)):
            return _key_text(keys)
    return _text_of_short(tuple(keys), *keys.values())


@lru_cache(maxsize=4096, typed=True)
def _text_of_short(names: tuple[str, ...], *values: Any) -> str:
    return _key_text(dict(zip(names, values, strict=True)))


def _key_text(keys: Mapping[str, Any]) -> str:
    inner = ",".join(f'"{name.translate(_ESCAPES)}":{_value_json(keys[name])}' for name in sorted(keys))
    return f"k:{{{inner}}}"


def value_text(value: Any) -> str:
    """The value of an item as a path element."""
    return f"v:{_value_json(value)}"


def _value_json(value: Any, depth: int = 0) -> str:
    if depth > MAX_DEPTH:
        raise TooDeep
    if isinstance(value, str):
        return f'"{value.translate(_VALUE_ESCAPES)}"'
    if isinstance(value, dict):
        inner = cast("dict[str, Any]", value)
        return (
            "{"
            + ",".join(
                f'"{name.translate(_VALUE_ESCAPES)}":{_value_json(inner[name], depth + 1)}' for name in sorted(inner)
            )
            + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(_value_json(each, depth + 1) for each in cast("list[Any]", value)) + "]"
    if isinstance(value, float):
        return _number(value)
    return (
        {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else str(value)
    )


def _number(value: float) -> str:
    """A float as Kubernetes prints it: 80.0 is 80."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)


def is_known_element(text: str) -> bool:
    """Whether an element is of a kind that Kubernetes knows today."""
    if len(text) < 2 or text[1] != ":":
        raise FieldSetError(f"not a path element: {_shown(text)}; they begin with f:, k:, v: or i:")
    return text[0] in _KINDS


def canonical_element(text: str) -> str:
    """The canonical text of an element: the same for all elements of its meaning."""
    if text.startswith("f:"):
        return text
    # Long texts are not cached: the cache is bounded in bytes as well.
    return _canonical_of_short(text) if len(text) <= _SHORT else _canonical_of(text)


def _canonical_of(text: str) -> str:
    content = _content(text)
    match text[0]:
        case "k":
            return key_text(content)
        case "v":
            return value_text(content)
        case _:
            return f"i:{content}"


_canonical_of_short = lru_cache(maxsize=4096)(_canonical_of)


def _content(text: str) -> Any:
    kind, rest = text[:2], text[2:]
    if kind == "f:":
        return rest
    if kind == "i:":
        if not _INDEX.fullmatch(rest):
            raise FieldSetError(f"not an index: {_shown(text)}")
        return int(rest)
    if kind not in {"k:", "v:"}:
        raise FieldSetError(f"not a path element: {_shown(text)}; they begin with f:, k:, v: or i:")
    try:
        content = msgspec.json.decode(rest)
    except RecursionError:
        raise TooDeep from None
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise FieldSetError(f"not a path element: {_shown(text)}: {error}") from None
    if kind == "k:" and not isinstance(content, dict):
        raise FieldSetError(f"not a path element: {_shown(text)}: map keys are a JSON object")
    return cast("Any", content)


def order_of_all(texts: Sequence[str]) -> Callable[[str], Any]:
    """The key by which to sort these elements as Kubernetes does.

    For a long list whose items are numbers or texts, or are named by one, the key is that number or text alone: every item
    has its key in memory while the list is sorted.
    """
    found = _ONE_VALUE.fullmatch(texts[0])
    if found is None:
        return element_order
    start, end = found.end("prefix"), -1 if texts[0].startswith("k") else None
    prefix = texts[0][:start]
    is_number = found["number"] is not None
    for text in texts:
        if not text.startswith(prefix):
            return element_order
        other = _ONE_VALUE.fullmatch(text)
        if other is None or (other["number"] is not None) != is_number:
            return element_order
    if is_number:
        return lambda text: int(text[start:end])
    return lambda text: text[start:end][1:-1]


def element_order(text: str) -> tuple[Any, ...]:
    """The sort key of elements in Kubernetes' order: fields, map keys, values, indexes."""
    if text.startswith("f:"):
        return (0, text)
    return _order_of_short(text) if len(text) <= _SHORT else _order_of(text)


def _order_of(text: str) -> tuple[Any, ...]:
    """The order as one flat tuple: sorting a long list holds one for each of its items."""
    content = _content(text)
    match text[0]:
        case "k":
            return (1, *(part for name in sorted(content) for part in (name, *_value_order(content[name]))))
        case "v":
            return (2, *_value_order(content))
        case _:
            return (3, content)


#: An element that is, or is named by, one whole number or one text without escapes.
_ONE_VALUE: Final = re.compile(r'(?P<prefix>v:|k:\{"[^"\\]*":)(?:(?P<number>-?[0-9]{1,18})|"[^"\\]*")\}?')
_order_of_short = lru_cache(maxsize=4096)(_order_of)


def _value_order(value: Any) -> tuple[int, Any]:
    """The sort key of values of any type in Kubernetes' order: numbers, texts, booleans, lists, objects, null."""
    if value is None:
        return (5, None)
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, (int, float)):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    if isinstance(value, list):
        return (3, tuple(_value_order(each) for each in cast("list[Any]", value)))
    inner = cast("dict[str, Any]", value)
    return (4, tuple((name, _value_order(inner[name])) for name in sorted(inner)))


def _readable(value: Any) -> str:
    return f'"{value.translate(_ESCAPES)}"' if isinstance(value, str) else _value_json(value)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:80]}...")
