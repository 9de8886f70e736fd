"""CEL's static types: their notation, their assignability, and the binding of type variables.

Guarantees
- A `Type` is a value: equal types are equal tuples.
- `Bindings` decides as Google's checker does whether a value of one type is assignable to another. ``dyn`` and error
  types fit everywhere, and type parameters are bound on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Type(NamedTuple):
    """One CEL type: its kind, its name, and its type arguments."""

    kind: str
    name: str
    of: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if self.kind in {"null", "duration", "timestamp"}:
            return self.kind
        if not self.of:
            return self.name
        return f"{self.name}({', '.join(map(str, self.of))})"


BOOL = Type("bool", "bool")
BYTES = Type("bytes", "bytes")
DOUBLE = Type("double", "double")
DURATION = Type("duration", "google.protobuf.Duration")
DYN = Type("dyn", "dyn")
ERROR = Type("error", "!error!")
INT = Type("int", "int")
NULL = Type("null", "null_type")
STRING = Type("string", "string")
TIMESTAMP = Type("timestamp", "google.protobuf.Timestamp")
TYPE = Type("type", "type")
UINT = Type("uint", "uint")

#: Struct types of the Kubernetes libraries.
QUANTITY = Type("struct", "kubernetes.Quantity")
URL = Type("struct", "kubernetes.URL")
FORMAT = Type("struct", "kubernetes.NamedFormat")
SEMVER = Type("struct", "kubernetes.Semver")
IP = Type("opaque", "net.IP")
CIDR = Type("opaque", "net.CIDR")

_NAMED = {
    **{each.kind: each for each in (BOOL, BYTES, DOUBLE, DURATION, DYN, INT, NULL, STRING, TIMESTAMP, TYPE, UINT)},
    "Quantity": QUANTITY,
    "URL": URL,
    "Format": FORMAT,
    "Semver": SEMVER,
    "IP": IP,
    "CIDR": CIDR,
    # Nothing in a CRD has these types; their functions are declared so that mistakes give the server's message.
    **{
        name: Type("struct", f"kubernetes.authorization.{name}")
        for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
    },
}
_SCALARS = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_NULLABLE = frozenset({"opaque", "struct", "duration", "timestamp"})
_PLAIN = frozenset({"bool", "bytes", "double", "int", "string", "uint", "duration", "timestamp", "struct"})


def list_of(element: Type) -> Type:
    """The type of lists of one type."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """The type of maps."""
    return Type("map", "map", (key, value))


def optional_of(inner: Type) -> Type:
    """The type of optional values of one type."""
    return Type("opaque", "optional_type", (inner,))


def type_of(inner: Type) -> Type:
    """The type of a type."""
    return Type("type", "type", (inner,))


def param(name: str) -> Type:
    """A type parameter."""
    return Type("param", name)


def unwrapped(kind: Type) -> tuple[Type, bool]:
    """The content of an optional type, and whether it was optional."""
    if kind.kind == "opaque" and kind.name == "optional_type":
        return kind.of[0], True
    return kind, False


def is_scalar(kind: Type) -> bool:
    """Whether values of this type all have the same size."""
    if kind.kind in _SCALARS:
        return True
    inner, optional = unwrapped(kind)
    return optional and is_scalar(inner)


def read_type(text: str) -> Type:
    """Parse a type in the notation of the function tables: ``map(K, list(string))``; capital letters are parameters."""
    text = text.strip()
    head, bracket, rest = text.partition("(")
    if not bracket:
        return _NAMED.get(text) or param(text)
    parts = tuple(read_type(part) for part in split_types(rest[:-1]))
    if head == "list":
        return list_of(parts[0])
    if head == "map":
        return map_of(*parts)
    return type_of(parts[0]) if head == "type" else optional_of(parts[0])


def split_types(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    parts: list[str] = []
    depth, start = 0, 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]] if text.strip() else []


def params_of(kinds: Sequence[Type]) -> set[Type]:
    """All type parameters in these types."""
    found: set[Type] = set()
    for kind in kinds:
        if kind.kind == "param":
            found.add(kind)
        found |= params_of(kind.of)
    return found


class Bindings:
    """The bindings of one expression's type variables so far."""

    def __init__(self) -> None:
        self._bound: dict[Type, Type] = {}
        self._variables = 0

    def fresh(self) -> Type:
        """A new, unbound type variable."""
        self._variables += 1
        return param(f"_var{self._variables - 1}")

    def assignable(self, wanted: Sequence[Type], found: Sequence[Type]) -> bool:
        """Whether types fit one by one; variables are bound only if all fit."""
        before = dict(self._bound)
        if len(wanted) == len(found) and all(self._fits(w, f) for w, f in zip(wanted, found, strict=True)):
            return True
        self._bound = before
        return False

    def fits(self, wanted: Type, found: Type) -> bool:
        """Whether one type fits another."""
        return self.assignable((wanted,), (found,))

    def resolved(self, kind: Type, *, to_dyn: bool = False) -> Type:
        """A type with its bound variables replaced; ``to_dyn`` replaces the others by ``dyn``."""
        known = self._bound.get(kind)
        if known is not None:
            return self.resolved(known, to_dyn=to_dyn)
        if kind.kind == "param":
            return DYN if to_dyn else kind
        if not kind.of:
            return kind
        return Type(kind.kind, kind.name, tuple(self.resolved(part, to_dyn=to_dyn) for part in kind.of))

    def _fits(self, one: Type, two: Type) -> bool:  # noqa: PLR0911 - one answer for each kind
        if two.kind == "param":
            valid, had = self._substitute(one, two)
            if valid:
                return True
            if had:
                return False
        if one.kind == "param":
            return self._substitute(two, one)[0]
        if one.kind in {"dyn", "error"} or two.kind in {"dyn", "error"}:
            return True
        if one.kind == "null":
            return two.kind in _NULLABLE or two.kind == "null"
        if two.kind == "null":
            return one.kind in _NULLABLE
        if one.kind in _PLAIN:
            return one == two
        if one.kind == "type":
            return two.kind == "type"
        return (
            one.kind == two.kind
            and one.name == two.name
            and len(one.of) == len(two.of)
            and all(self._fits(a, b) for a, b in zip(one.of, two.of, strict=True))
        )

    def _substitute(self, kind: Type, variable: Type) -> tuple[bool, bool]:
        if kind == variable:
            return True, True
        known = self._bound.get(variable)
        if known is not None:
            if kind == known:
                return True, True
            if self._fits(kind, known):
                general = most_general(kind, known)
                if self._absent(variable, general):
                    self._bound[variable] = general
                return True, True
            return False, True
        if self._absent(variable, kind):
            self._bound[variable] = kind
            return True, False
        return False, False

    def _absent(self, variable: Type, within: Type) -> bool:
        if variable == within:
            return False
        if within.kind == "param":
            known = self._bound.get(within)
            return known is None or self._absent(variable, known)
        return all(self._absent(variable, part) for part in within.of)


def most_general(one: Type, two: Type) -> Type:
    """The more general of two types."""
    return one if _says_no_more(one, two) else two


def _says_no_more(one: Type, two: Type) -> bool:
    if one.kind in {"dyn", "param"}:
        return True
    if two.kind in {"dyn", "param"} or one.kind != two.kind:
        return False
    if one.kind == "type":
        return True
    if one.kind in {"opaque", "list", "map"}:
        return (
            one.name == two.name
            and len(one.of) == len(two.of)
            and all(_says_no_more(a, b) for a, b in zip(one.of, two.of, strict=True))
        )
    return one == two


def substituted(kind: Type, by: Mapping[Type, Type]) -> Type:
    """A type with its parameters replaced."""
    if kind.kind == "param":
        return by.get(kind, kind)
    if not kind.of:
        return kind
    return Type(kind.kind, kind.name, tuple(substituted(part, by) for part in kind.of))
