"""Field sets: which fields of an object a manager owns, as ``metadata.managedFields`` records them (fieldsV1).

Guarantees:

- `FieldSet.parse` reads what any API server writes; `FieldSet.encode` prints exactly what Kubernetes prints for the same set,
  elements in Kubernetes' order.
- Sets are immutable and hashable; union, intersection and both differences are Kubernetes' own.
- A path prints as in the conflict messages of server-side apply: ``.spec.containers[name="web"].image``.
- Hostile input raises `FieldSetError` or `TooDeep`, never anything else.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, Self, TypeAlias, cast

import msgspec

from steersman.patches.errors import MAX_DEPTH, FieldSetError, TooDeep

__all__ = ["FieldSet", "Path", "PathElement", "format_path"]

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
# Kubernetes escapes these too, but only in the values inside a path element.
_VALUE_ESCAPES: Final = _ESCAPES | {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


class PathElement(msgspec.Struct, frozen=True, order=False):
    """One step of a path, in the text form of fieldsV1: ``f:spec``, ``k:{"name":"web"}``, ``v:"a"`` or ``i:0``."""

    text: str

    def __post_init__(self) -> None:
        """Bring the text into canonical form, so that equal elements have equal texts."""
        msgspec.structs.force_setattr(self, "text", _canonical_element(self.text))

    @classmethod
    def field(cls, name: str) -> Self:
        """Name a field of an object."""
        return cls(f"f:{name}")

    @classmethod
    def key(cls, keys: Mapping[str, Any]) -> Self:
        """Name an item of a list by its map keys."""
        return cls(key_text(keys))

    @classmethod
    def value(cls, value: Any) -> Self:
        """Name an item of a set by its value."""
        return cls(value_text(value))

    @classmethod
    def index(cls, index: int) -> Self:
        """Name an item of a list by its position."""
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
    """Print a path as Kubernetes does: ``.spec.ports[port=80,protocol="TCP"].name``."""
    return "".join(str(element) for element in path)


class FieldSet:
    """A set of fields. A field in the set does not imply those below it, nor those above."""

    __slots__ = ("_hash", "nodes")

    nodes: "Mapping[str, tuple[bool, FieldSet]]"
    """The first level, by text of the element: whether the field is in the set, and what is in the set below it."""

    _hash: int | None

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        nodes: dict[str, _Growing] = {}
        for path in paths:
            if len(path) > MAX_DEPTH:
                raise TooDeep
            below = nodes
            for element in path[:-1]:
                below = below.setdefault(element.text, _Growing()).nodes
            if path:
                below.setdefault(path[-1].text, _Growing()).member = True
        self.nodes = _grown(nodes).nodes
        self._hash = None

    @classmethod
    def parse(cls, document: bytes | str | Mapping[str, Any]) -> "FieldSet":
        """Read fieldsV1, as JSON text or already decoded. Elements of kinds yet unknown are ignored, as Kubernetes does."""
        if isinstance(document, Mapping):
            decoded: Any = document
        else:
            try:
                decoded = msgspec.json.decode(document)
            except RecursionError:
                raise TooDeep from None
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise FieldSetError(f"fieldsV1 is not JSON: {error}") from None
        return _parse(decoded, 0)[1]

    def to_json(self) -> dict[str, Any]:
        """Write fieldsV1 as a JSON tree, elements in canonical order."""
        written: dict[str, Any] = {}
        for text in self._ordered():
            member, below = self.nodes[text]
            written[text] = ({".": {}} if member and below else {}) | below.to_json()
        return written

    def encode(self) -> bytes:
        """Write fieldsV1 as Kubernetes prints it."""
        parts: list[str] = []
        self._print(parts)
        return "".join(parts).encode()

    def _print(self, parts: list[str], *, itself: bool = False) -> None:
        parts.append('{".":{}' if itself else "{")
        separator = "," if itself else ""
        for text in self._ordered():
            member, below = self.nodes[text]
            parts.append(f'{separator}"{text.translate(_ESCAPES)}":')
            separator = ","
            if below:
                below._print(parts, itself=member)  # noqa: SLF001 - the class's own
            else:
                parts.append("{}")
        parts.append("}")

    def _ordered(self) -> list[str]:
        return sorted(self.nodes, key=_element_order)

    def __iter__(self) -> Iterator[Path]:
        """Go through all paths: at each level first the fields in the set, then what lies below."""
        return self._paths(())

    def _paths(self, prefix: Path) -> Iterator[Path]:
        ordered = [(PathElement(text), *self.nodes[text]) for text in self._ordered()]
        for element, member, _ in ordered:
            if member:
                yield (*prefix, element)
        for element, _, below in ordered:
            if below:
                yield from below._paths((*prefix, element))  # noqa: SLF001 - the class's own

    def __len__(self) -> int:
        length = 0
        for member, below in self.nodes.values():
            length += member + len(below)
        return length

    def __bool__(self) -> bool:
        return bool(self.nodes)

    def __contains__(self, path: Path) -> bool:
        return bool(path) and self.below(path[:-1]).nodes.get(path[-1].text, _ABSENT)[0]

    def __eq__(self, other: object) -> bool:
        return self._equals(other) if isinstance(other, FieldSet) else NotImplemented

    # Comparing the dicts would do, but costs several times the recursion depth.
    def _equals(self, other: "FieldSet") -> bool:
        if self is other:
            return True
        if len(self.nodes) != len(other.nodes):
            return False
        for text, (member, below) in self.nodes.items():
            theirs = other.nodes.get(text)
            if theirs is None or theirs[0] != member or not below._equals(theirs[1]):  # noqa: SLF001 - the class's own
                return False
        return True

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.nodes.items()))
        return self._hash

    def __le__(self, other: "FieldSet") -> bool:
        return self.issubset(other)

    def issubset(self, other: "FieldSet") -> bool:
        """Whether every field of this set is in the other."""
        for text, (member, below) in self.nodes.items():
            theirs = other.nodes.get(text)
            if theirs is None or member > theirs[0] or not below.issubset(theirs[1]):
                return False
        return True

    def __or__(self, other: "FieldSet") -> "FieldSet":
        nodes = dict(self.nodes)
        for text, (member, below) in other.nodes.items():
            mine = nodes.get(text)
            nodes[text] = (member, below) if mine is None else (mine[0] or member, mine[1] | below)
        return make_field_set(nodes)

    def __and__(self, other: "FieldSet") -> "FieldSet":
        nodes: dict[str, tuple[bool, FieldSet]] = {}
        for text, (member, below) in self.nodes.items():
            theirs = other.nodes.get(text)
            if theirs is not None:
                nodes[text] = (member and theirs[0], below & theirs[1])
        return make_field_set(nodes)

    def __sub__(self, other: "FieldSet") -> "FieldSet":
        """Take away the fields of the other set, and only those: what lies below them stays."""
        nodes: dict[str, tuple[bool, FieldSet]] = {}
        for text, (member, below) in self.nodes.items():
            theirs = other.nodes.get(text)
            nodes[text] = (member, below) if theirs is None else (member and not theirs[0], below - theirs[1])
        return make_field_set(nodes)

    def without(self, other: "FieldSet") -> "FieldSet":
        """Take away the fields of the other set together with everything below them."""
        nodes: dict[str, tuple[bool, FieldSet]] = {}
        for text, (member, below) in self.nodes.items():
            theirs = other.nodes.get(text)
            if theirs is None:
                nodes[text] = (member, below)
            elif not theirs[0]:
                nodes[text] = (member, below.without(theirs[1]))
        return make_field_set(nodes)

    def leaves(self) -> "FieldSet":
        """Keep the fields below which nothing else is in the set."""
        return make_field_set(
            {text: (member and not below, below.leaves()) for text, (member, below) in self.nodes.items()}
        )

    def below(self, path: Path) -> "FieldSet":
        """Take what lies below a field, with paths that begin there."""
        found = self
        for element in path:
            found = found.nodes.get(element.text, _ABSENT)[1]
        return found

    def __str__(self) -> str:
        return "\n".join(format_path(path) for path in self)

    def __repr__(self) -> str:
        return f"FieldSet.parse({self.encode().decode()!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (FieldSet.parse, (self.encode(),))


class _Growing:
    """A node under construction."""

    __slots__ = ("member", "nodes")

    def __init__(self) -> None:
        self.member = False
        self.nodes: dict[str, _Growing] = {}


def _grown(nodes: dict[str, _Growing]) -> FieldSet:
    return make_field_set({text: (node.member, _grown(node.nodes)) for text, node in nodes.items()})


def make_field_set(nodes: dict[str, tuple[bool, FieldSet]]) -> FieldSet:
    """Make a set from its first level, whose texts are canonical; for the walkers of this room."""
    made = FieldSet.__new__(FieldSet)
    made.nodes = {text: node for text, node in nodes.items() if node[0] or node[1].nodes}
    made._hash = None  # noqa: SLF001 - the module's own
    return made


EMPTY: Final = make_field_set({})
_ABSENT: Final = (False, EMPTY)


def _parse(document: Any, depth: int) -> tuple[bool, FieldSet]:
    """Read one level: whether the field itself is in the set, and what is below it."""
    if depth > MAX_DEPTH:
        raise TooDeep
    if not isinstance(document, Mapping):
        raise FieldSetError(f"fieldsV1 consists of JSON objects, found {type(document).__name__}")
    member = False
    nodes: dict[str, tuple[bool, FieldSet]] = {}
    for text, inner in cast("Mapping[str, Any]", document).items():
        if text == ".":
            member = True
        elif len(text) < 2 or text[1] != ":":
            raise FieldSetError(f"not a path element: {_shown(text)}; they begin with f:, k:, v: or i:")
        elif text[0] in _KINDS:
            canonical = _canonical_element(text)
            found = _parse(inner, depth + 1)
            present = nodes.get(canonical)
            nodes[canonical] = found if present is None else (present[0] or found[0], present[1] | found[1])
    return member or not nodes, make_field_set(nodes)


def key_text(keys: Mapping[str, Any]) -> str:
    """Print the map keys of an item as a path element."""
    inner = ",".join(f'"{name.translate(_ESCAPES)}":{_value_json(keys[name])}' for name in sorted(keys))
    return f"k:{{{inner}}}"


def value_text(value: Any) -> str:
    """Print the value of an item as a path element."""
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
    """Print a float as Kubernetes does: 80.0 is 80."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)


def _canonical_element(text: str) -> str:
    if text.startswith("f:"):
        return text
    # Long texts are never kept: the cache is bounded in bytes as well.
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


def _element_order(text: str) -> tuple[Any, ...]:
    """Order elements as Kubernetes does: fields, map keys, values, indexes."""
    if text.startswith("f:"):
        return (0, text)
    content = _content(text)
    match text[0]:
        case "k":
            return (1, tuple((name, _value_order(value)) for name, value in sorted(content.items())))
        case "v":
            return (2, _value_order(content))
        case _:
            return (3, content)


def _value_order(value: Any) -> tuple[Any, ...]:
    """Order values of any type as Kubernetes does: numbers, texts, booleans, lists, objects, null."""
    if value is None:
        return (5,)
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
