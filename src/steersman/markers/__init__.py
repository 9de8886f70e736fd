"""Markers: constraints beyond the Python type, written inside ``Annotated[...]``.

Guarantees
- Each marker becomes part of the CRD's schema, and ``validate()`` checks it. Decoding enforces none.
- An invalid pattern, or a marker without its names, raises where it is written.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from steersman.golang import check_pattern

__all__ = [
    "AtLeastOneOf",
    "AtMostOneOf",
    "Description",
    "EmbeddedResource",
    "ExactlyOneOf",
    "Example",
    "ExternalDocs",
    "Format",
    "Immutable",
    "Int32",
    "ListAtomic",
    "ListMap",
    "ListSet",
    "MapAtomic",
    "MaxItems",
    "MaxLength",
    "MaxProperties",
    "Maximum",
    "MinItems",
    "MinLength",
    "MinProperties",
    "Minimum",
    "MultipleOf",
    "Nullable",
    "Pattern",
    "PreserveUnknownFields",
    "Rule",
    "Title",
]


class Marker:
    """Base of all markers."""

    __slots__ = ()


class _Value(Marker, msgspec.Struct, frozen=True):
    """Base of markers that are plain values."""


class _Names(Marker):
    """Base of markers that take any number of field names."""

    __slots__ = ("names",)

    def __init__(self, *names: str) -> None:
        if not names:
            cls = type(self).__name__
            raise TypeError(f'{cls} needs the wire names of fields, such as {cls}("name")')
        self.names = names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Names) and type(other) is type(self) and other.names == self.names

    def __hash__(self) -> int:
        return hash((type(self), self.names))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.names))})"


class Minimum(_Value, frozen=True):
    """The smallest number allowed (or the largest not allowed, if ``exclusive``)."""

    value: int | float
    exclusive: bool = False


class Maximum(_Value, frozen=True):
    """The largest number allowed (or the smallest not allowed, if ``exclusive``)."""

    value: int | float
    exclusive: bool = False


class MultipleOf(_Value, frozen=True):
    """The number must be a multiple of this."""

    value: int | float


class MinLength(_Value, frozen=True):
    """The shortest string allowed, in Unicode characters."""

    value: int


class MaxLength(_Value, frozen=True):
    """The longest string allowed, in Unicode characters."""

    value: int


class Pattern(_Value, frozen=True):
    """A regular expression that must match somewhere in the string, in the subset common to Go and Python."""

    expression: str

    def __post_init__(self) -> None:
        check_pattern(self.expression)


class Format(_Value, frozen=True):
    """An OpenAPI format such as ``date-time``, ``ipv4``, ``uuid`` or ``byte``."""

    name: str


class MinItems(_Value, frozen=True):
    """The fewest list items allowed."""

    value: int


class MaxItems(_Value, frozen=True):
    """The most list items allowed."""

    value: int


class MinProperties(_Value, frozen=True):
    """The fewest map entries allowed."""

    value: int


class MaxProperties(_Value, frozen=True):
    """The most map entries allowed."""

    value: int


class Nullable(_Value, frozen=True):
    """The field may hold an explicit null."""


class Immutable(_Value, frozen=True):
    """The value must not change once it is set.

    - Changing or removing the value is rejected.
    - An optional field may be set once, later; ``from_creation=True`` rejects that too: unset stays unset.
    - The marker holds only while the parent exists: removing and re-adding an optional parent resets it. Mark the
      parent too if that matters.
    - Inside a list, only items of a `ListMap` have an identity; elsewhere in a list the marker is rejected.
    """

    message: str = ""
    from_creation: bool = False


class ListSet(_Value, frozen=True):
    """A list of distinct scalars; each applier owns its own items."""


class ListMap(_Names):
    """A list of objects identified by these fields (wire names); each applier owns its own items."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The key fields."""
        return self.names


class ListAtomic(_Value, frozen=True):
    """A list that is owned and replaced as a whole."""


class MapAtomic(_Value, frozen=True):
    """A map or object that is owned and replaced as a whole."""


class PreserveUnknownFields(_Value, frozen=True):
    """The server keeps fields that the schema does not declare."""


class EmbeddedResource(_Value, frozen=True):
    """A whole Kubernetes object, with apiVersion, kind and metadata."""


class _Expression(_Value, frozen=True):
    rule: str


class Rule(_Expression, frozen=True, kw_only=True):
    """A CEL rule (``x-kubernetes-validations``): ``Rule("self.min <= self.max", message="min exceeds max")``."""

    message: str = ""
    message_expression: str = ""
    reason: Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"] | None = (
        None
    )
    field_path: str = ""
    optional_old_self: bool | None = None


class ExactlyOneOf(_Names):
    """Exactly one of these fields (wire names) is set; a class option: ``rules=(ExactlyOneOf("a", "b"),)``."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The mutually exclusive fields."""
        return self.names


class AtMostOneOf(ExactlyOneOf):
    """At most one of these fields (wire names) is set."""


class AtLeastOneOf(ExactlyOneOf):
    """At least one of these fields (wire names) is set."""


class Title(_Value, frozen=True):
    """A short title in the schema."""

    text: str


class Description(_Value, frozen=True):
    """The description of a field in the schema and in ``kubectl explain``."""

    text: str


class Example(_Value, frozen=True):
    """An example value in the schema."""

    value: Any

    def __hash__(self) -> int:
        # Values may be unhashable lists, and ``Annotated[..., Example([1])] | None`` hashes its markers.
        return hash(repr(self.value))


class ExternalDocs(_Value, frozen=True, kw_only=True):
    """The documentation of the field."""

    url: str
    description: str = ""


Int32: TypeAlias = Annotated[int, Format("int32")]
"""An integer of 32 bits, like Kubernetes' replica counts and ports."""
