"""Field sets: which fields of an object a manager owns, as ``metadata.managedFields`` records them (fieldsV1).

Guarantees:

- `FieldSet.parse` reads what any API server writes; `FieldSet.encode` prints exactly what Kubernetes prints for the same set,
  elements in Kubernetes' order.
- Sets are immutable and hashable; union, intersection and both differences are Kubernetes' own. One that an operation does not
  change is given back itself, so that ``is`` tells at once that nothing happened.
- Hostile input raises `FieldSetError` or `TooDeep`, never anything else.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from steersman.patches.errors import MAX_DEPTH, FieldSetError, TooDeep
from steersman.patches.path_element import (
    Path,
    PathElement,
    canonical_element,
    element_order,
    escaped,
    format_path,
    is_known_element,
)

__all__ = ["EMPTY", "FieldSet", "make_field_set", "wrap_nodes"]


class FieldSet:
    """A set of fields. A field in the set does not imply those below it, nor those above."""

    __slots__ = ("_hash", "fits", "nodes")

    nodes: "Mapping[str, tuple[bool, FieldSet]]"
    """The first level, by text of the element: whether the field is in the set, and what is in the set below it."""

    fits: object
    """The schema that the set was last found to fit; noted by ``steersman.patches.fitting``."""

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
        self.fits = None

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
        return self._json({})

    def _json(self, written: dict[str, Any]) -> dict[str, Any]:
        nodes = self.nodes
        for text in self._ordered():
            member, below = nodes[text]
            written[text] = below._json({".": {}} if member else {}) if below.nodes else {}  # noqa: SLF001 - the class's own
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
            parts.append(f'{separator}"{escaped(text)}":')
            separator = ","
            if below:
                below._print(parts, itself=member)  # noqa: SLF001 - the class's own
            else:
                parts.append("{}")
        parts.append("}")

    def _ordered(self) -> list[str]:
        ordered = sorted(self.nodes)
        # fields come first in both orders, and are ordered by their texts
        if not ordered or ordered[-1].startswith("f:"):
            return ordered
        return sorted(ordered, key=element_order)

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
            if theirs is None or theirs[0] != member:
                return False
            if below is not theirs[1] and not below._equals(theirs[1]):  # noqa: SLF001 - the class's own
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
        if self is other:
            return True
        for text, (member, below) in self.nodes.items():
            theirs = other.nodes.get(text)
            if theirs is None or member > theirs[0] or not (below is theirs[1] or below.issubset(theirs[1])):
                return False
        return True

    def __or__(self, other: "FieldSet") -> "FieldSet":
        if not self.nodes:
            return other
        nodes: dict[str, tuple[bool, FieldSet]] | None = None
        for text, (member, below) in other.nodes.items():
            mine = self.nodes.get(text)
            if mine is None:
                node = (member, below)
            else:
                both = mine[1] if below is mine[1] else mine[1] | below
                if both is mine[1] and mine[0] >= member:
                    continue
                node = (mine[0] or member, both)
            if nodes is None:
                nodes = dict(self.nodes)
            nodes[text] = node
        return self if nodes is None else wrap_nodes(nodes)

    def __and__(self, other: "FieldSet") -> "FieldSet":
        if self is other or not self.nodes:
            return self
        nodes: dict[str, tuple[bool, FieldSet]] = {}
        for text in self.nodes.keys() & other.nodes.keys():
            (member, below), (also, theirs) = self.nodes[text], other.nodes[text]
            nodes[text] = (member and also, below & theirs)
        return make_field_set(nodes)

    def __sub__(self, other: "FieldSet") -> "FieldSet":
        """Take away the fields of the other set, and only those: what lies below them stays."""
        nodes: dict[str, tuple[bool, FieldSet]] | None = None
        for text in self.nodes.keys() & other.nodes.keys():
            (member, below), (taken, theirs) = self.nodes[text], other.nodes[text]
            left = below - theirs
            if left is not below or (member and taken):
                if nodes is None:
                    nodes = dict(self.nodes)
                nodes[text] = (member and not taken, left)
        return self if nodes is None else make_field_set(nodes)

    def without(self, other: "FieldSet") -> "FieldSet":
        """Take away the fields of the other set together with everything below them."""
        nodes: dict[str, tuple[bool, FieldSet]] | None = None
        for text in self.nodes.keys() & other.nodes.keys():
            (member, below), (taken, theirs) = self.nodes[text], other.nodes[text]
            node = (False, EMPTY) if taken else (member, below.without(theirs))
            if taken or node[1] is not below:
                if nodes is None:
                    nodes = dict(self.nodes)
                nodes[text] = node
        return self if nodes is None else make_field_set(nodes)

    def at_or_below(self, other: "FieldSet") -> "FieldSet":
        """Keep the fields of the other set, and everything below them."""
        nodes: dict[str, tuple[bool, FieldSet]] = {}
        for text in self.nodes.keys() & other.nodes.keys():
            (member, below), (kept, theirs) = self.nodes[text], other.nodes[text]
            nodes[text] = (member, below) if kept else (False, below.at_or_below(theirs))
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
    for member, below in nodes.values():
        if not member and not below.nodes:
            nodes = {text: node for text, node in nodes.items() if node[0] or node[1].nodes}
            break
    return wrap_nodes(nodes) if nodes else EMPTY


def wrap_nodes(nodes: dict[str, tuple[bool, FieldSet]]) -> FieldSet:
    """Make a set from a first level in which every node is in the set, or has something below it."""
    made = FieldSet.__new__(FieldSet)
    made.nodes = nodes
    made._hash = None  # noqa: SLF001 - the module's own
    made.fits = None
    return made


EMPTY: Final = wrap_nodes({})
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
        elif is_known_element(text):
            canonical = canonical_element(text)
            found = _parse(inner, depth + 1)
            present = nodes.get(canonical)
            nodes[canonical] = found if present is None else (present[0] or found[0], present[1] | found[1])
    return member or not nodes, make_field_set(nodes)
