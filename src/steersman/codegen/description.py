"""The content of a generated model, before it becomes Python text.

``openapi`` reads OpenAPI documents and CRDs into this description; ``models`` writes it as Python. It holds no Python
names of fields or classes: the writer chooses them, because only it sees the whole module.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steersman.markers import Marker
from steersman.objects import GroupVersion, ResourceOptions

PlainName: TypeAlias = Literal[
    "Any", "IntOrString", "MicroTime", "Quantity", "bool", "bytes", "datetime", "float", "int", "str"
]

#: Packages of definitions from Kubernetes' own Go types.
_GO_PACKAGES: Final = re.compile(r"io\.k8s\.(api|apimachinery|apiextensions-apiserver|kube-aggregator|metrics)\.")


class _Nothing:
    """The type of `NOTHING`."""

    def __repr__(self) -> str:
        return "NOTHING"


#: Marks an absent value; None itself is a value (null).
NOTHING: Final = _Nothing()


class Plain(msgspec.Struct, frozen=True):
    """A type without parts."""

    name: PlainName


class Choice(msgspec.Struct, frozen=True):
    """One of a closed set of values."""

    values: tuple[str | int | bool, ...]


class Reference(msgspec.Struct, frozen=True):
    """A model, referred to by the name of its definition."""

    definition: str


class Nested(msgspec.Struct, frozen=True):
    """An inline model without a name."""

    model: Model


class ListOf(msgspec.Struct, frozen=True):
    """A list."""

    item: Type


class MapOf(msgspec.Struct, frozen=True):
    """A map with string keys."""

    value: Type


class Either(msgspec.Struct, frozen=True):
    """One of several types."""

    members: tuple[Type, ...]


class Marked(msgspec.Struct, frozen=True):
    """A type with additional constraints."""

    type: Type
    markers: tuple[Marker, ...]


Type: TypeAlias = Plain | Choice | Reference | Nested | ListOf | MapOf | Either | Marked


class Property(msgspec.Struct, frozen=True):
    """One field of a model."""

    wire: str
    type: Type
    required: bool = False
    description: str = ""
    #: The server's default, if it is part of the API (a CRD's default, not a zero value of Go).
    default: Any = NOTHING
    #: Whether its value is secret.
    sensitive: bool = False
    #: Constraints that Python cannot express, as text.
    notes: tuple[str, ...] = ()


class Model(msgspec.Struct, frozen=True):
    """A JSON object with known fields."""

    #: The name in the document, such as ``io.k8s.api.apps.v1.Deployment``; for a nested model, a path below it.
    definition: str
    properties: tuple[Property, ...]
    description: str = ""
    #: The preferred class name; names are made unique later.
    suggested_name: str = ""
    #: Set for whole objects, with apiVersion, kind and metadata.
    kind: ResourceOptions | None = None
    #: Rules for the whole object.
    rules: tuple[Marker, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        """The definition's name without its last part."""
        return self.definition.rpartition(".")[0]


class ModelCatalog(msgspec.Struct, frozen=True):
    """Models by definition name, and which group-version each package of definitions belongs to."""

    models: dict[str, Model] = {}
    packages: dict[str, GroupVersion] = {}


def inner_types(kind: Type) -> list[Type]:
    """The types directly inside a type."""
    match kind:
        case ListOf(item):
            return [item]
        case MapOf(value):
            return [value]
        case Either(members):
            return list(members)
        case Marked(inner, _):
            return [inner]
        case _:
            return []


def references_in(model: Model) -> set[str]:
    """The definitions that a model refers to, at any depth."""
    found: set[str] = set()
    waiting: list[Type] = [prop.type for prop in model.properties]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, Reference):
            found.add(kind.definition)
        elif isinstance(kind, Nested):
            waiting.extend(prop.type for prop in kind.model.properties)
        waiting.extend(inner_types(kind))
    return found


def is_from_go(definition: str) -> bool:
    """Whether a definition is one of Kubernetes' own Go types, which change with its releases, and not a CRD's."""
    return _GO_PACKAGES.match(definition) is not None
