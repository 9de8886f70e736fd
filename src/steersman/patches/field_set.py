"""Field sets: the fields that a manager owns, as in ``metadata.managedFields`` (fieldsV1).

Guarantees:

- `FieldSet.parse` reads what any API server writes; `FieldSet.encode` prints exactly what Kubernetes prints for the
  same set, in Kubernetes' order.
- Sets are immutable and hashable; union, intersection and both differences are Kubernetes' own. An operation that
  changes nothing returns the same object, so ``is`` detects that.
- Hostile input raises only `FieldSetError` or `TooDeep`.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, cast

import msgspec

from steersman.patches.errors import MAX_DEPTH, FieldSetError, TooDeep
from steersman.patches.path_element import (
    Path,
    PathElement,
    canonical_element,
    escaped,
    format_path,
    is_known_element,
    order_of_all,
)


class FieldSet:
    """A set of fields. A field in the set implies neither those below it nor those above."""

    __slots__ = ("_hash", "fits", "nodes", "shared")

    nodes: "Mapping[str, tuple[bool, FieldSet]]"
    """The first level, by element text: whether the field is in the set, and the set below it."""

    fits: object
    """The schema that the set was last found to fit; set by ``steersman.patches.apply.schema_changes``."""

    shared: bool
    """Whether the same set is used below many fields; set by ``flat_fields``."""

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
        self.shared = False

    @classmethod
    def parse(cls, document: bytes | str | Mapping[str, Any]) -> "FieldSet":
        """Parse fieldsV1, as JSON text or decoded. Elements of unknown kinds are ignored, as in Kubernetes."""
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
        """The fieldsV1 as a JSON tree, with elements in canonical order.

        Equal parts may be the same object, so that a list of many items takes little memory. Do not change them in
        place.
        """
        return self._json({}, {})

    def _json(self, written: dict[str, Any], shared: dict[tuple[int, bool], dict[str, Any]]) -> dict[str, Any]:
        nodes = self.nodes
        nothing = shared.setdefault(_NOTHING_BELOW, {})
        for text in self._ordered():
            member, below = nodes[text]
            if not below.nodes:
                written[text] = nothing
                continue
            place = (id(below), member)
            found = shared.get(place)
            if found is None:
                found = below._json({".": nothing} if member else {}, shared)  # noqa: SLF001 - the class's own
                if below.shared:
                    shared[place] = found
            written[text] = found
        return written

    def least_length(self) -> int:
        """Count how many characters fieldsV1 has at least, without writing it; parts that stand in many places count in each."""
        length = 1 if self.nodes else 2
        for text, (member, below) in self.nodes.items():
            # its quotes, the colon and what follows: an empty object, or one with itself in it and the fields below
            length += len(text) + 6
            if below.nodes:
                length += below.least_length() + (5 if member else -2)
        return length

    def encode(self) -> bytes:
        """The fieldsV1 as Kubernetes prints it."""
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
        # Fields come first in both orders, and are ordered by text.
        if not ordered or ordered[-1].startswith("f:"):
            return ordered
        return sorted(ordered, key=order_of_all(ordered))

    def __iter__(self) -> Iterator[Path]:
        """Iterate over all paths: at each level first the fields in the set, then those below."""
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

    # Comparing the dicts would work, but needs several times the recursion depth.
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
        """The set without the fields of the other set. Fields below them stay."""
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
        """The set without the fields of the other set and everything below them."""
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
        """The fields of the other set that are in this one, and everything below them."""
        nodes: dict[str, tuple[bool, FieldSet]] = {}
        for text in self.nodes.keys() & other.nodes.keys():
            (member, below), (kept, theirs) = self.nodes[text], other.nodes[text]
            nodes[text] = (member, below) if kept else (False, below.at_or_below(theirs))
        return make_field_set(nodes)

    def leaves(self) -> "FieldSet":
        """The fields without any others below them."""
        return make_field_set(
            {text: (member and not below, below.leaves()) for text, (member, below) in self.nodes.items()}
        )

    def below(self, path: Path) -> "FieldSet":
        """The fields below a field, with paths relative to it."""
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
    """A set from its first level, whose texts are canonical; for the traversals of this package."""
    for member, below in nodes.values():
        if not member and not below.nodes:
            nodes = {text: node for text, node in nodes.items() if node[0] or node[1].nodes}
            break
    return wrap_nodes(nodes) if nodes else EMPTY


def wrap_nodes(nodes: dict[str, tuple[bool, FieldSet]]) -> FieldSet:
    """A set from a first level in which every node is in the set, or has fields below it."""
    made = FieldSet.__new__(FieldSet)
    made.nodes = nodes
    made._hash = None  # noqa: SLF001 - the module's own
    made.fits = None
    made.shared = False
    return made


def shared_node(nodes: dict[str, tuple[bool, FieldSet]]) -> tuple[bool, FieldSet]:
    """A field that is in the set, with a first level below it; one and the same for small levels that are equal.

    Many items of a list have the same fields: what is known of them takes the memory of one.
    """
    if len(nodes) <= SHARED_MAX and sum(map(len, nodes)) <= SHARED_LENGTH:
        for _, below in nodes.values():
            if below.nodes and not below.shared:
                break
        else:
            return _shared_node(tuple(nodes.items()))
    return True, wrap_nodes(nodes)


def compacted(node: tuple[bool, FieldSet]) -> tuple[bool, FieldSet]:
    """The same node with equal small levels shared, for one of very many siblings."""
    member, below = node
    if not below.nodes or below.shared:
        return node
    shared = shared_node({text: compacted(inner) for text, inner in below.nodes.items()})
    return shared if member else (False, shared[1])


@lru_cache(maxsize=256)
def flat_node(names: tuple[str, ...]) -> tuple[bool, FieldSet]:
    """The set of fields with these names and nothing below; shared, because many items of a list have the same set."""
    return shared_node({f"f:{name}": _ITSELF for name in names})


@lru_cache(maxsize=256)
def _shared_node(nodes: tuple[tuple[str, tuple[bool, FieldSet]], ...]) -> tuple[bool, FieldSet]:
    made = wrap_nodes(dict(nodes))
    made.shared = True
    return True, made


EMPTY: Final = wrap_nodes({})
#: How many fields, with how long texts together, a level has at most that is shared.
SHARED_MAX: Final = 8
SHARED_LENGTH: Final = 256
#: How many siblings are many: what is below them is shared.
MANY: Final = 64
#: Where `FieldSet.to_json` keeps what stands for a field without any below it.
_NOTHING_BELOW: Final = (0, False)
_ABSENT: Final = (False, EMPTY)
_ITSELF: Final = (True, EMPTY)


def _parse(document: Any, depth: int) -> tuple[bool, FieldSet]:
    """Parse one level: whether the field itself is in the set, and the set below it."""
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
    if not nodes:
        return _ITSELF
    return shared_node(nodes) if member else (False, make_field_set(nodes))
