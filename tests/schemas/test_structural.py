"""Types become structural schemas: every type, default, docstring and list type, and recursion refused."""

from __future__ import annotations

import linecache
import sys
import types
import typing
from datetime import date, datetime
from typing import Annotated, Any, Literal, NewType

import pytest
from msgspec import UNSET, UnsetType

from steersman.markers import (
    Description,
    EmbeddedResource,
    ExternalDocs,
    Int32,
    ListMap,
    Maximum,
    MaxLength,
    Minimum,
    Nullable,
    PreserveUnknownFields,
)
from steersman.objects import (
    Condition,
    IntOrString,
    MicroTime,
    Object,
    ObjectMeta,
    Quantity,
    Resource,
    Spec,
    Status,
    Struct,
    field,
)
from steersman.schemas import docstrings, schema_for

Weight = NewType("Weight", int)
ShortName = Annotated[str, MaxLength(5)]


class Port(Struct):
    """A port."""

    name: str
    number: Int32 = 80


class Template(Struct):
    metadata: ObjectMeta | None = None
    spec: dict[str, Any]


class Everything(Struct):
    text: str
    whole: int
    small: Int32
    number: float
    flag: bool
    moment: datetime
    precise: MicroTime
    day: date
    blob: bytes
    cpu: Quantity
    port: IntOrString
    mode: Literal["a", "b"]
    level: Literal[1, 2]
    mixed: Literal[1, "all"]
    names: list[str]
    matrix: list[list[int]]
    labels: dict[str, str]
    ports: dict[str, list[Port]]
    free: dict[str, Any]
    anything: Any
    weight: Weight
    short: ShortName
    object_: Annotated[dict[str, Any], EmbeddedResource()]
    pod_ip: str = field(name="podIP")


INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
PORT = {
    "description": "A port.",
    "type": "object",
    "properties": {"name": {"type": "string"}, "number": {"type": "integer", "format": "int32", "default": 80}},
    "required": ["name"],
}
EXPECTED = {
    "text": {"type": "string"},
    "whole": {"type": "integer", "format": "int64"},
    "small": {"type": "integer", "format": "int32"},
    "number": {"type": "number", "format": "double"},
    "flag": {"type": "boolean"},
    "moment": {"type": "string", "format": "date-time"},
    "precise": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
    "blob": {"type": "string", "format": "byte"},
    "port": INT_OR_STRING,
    "mode": {"type": "string", "enum": ["a", "b"]},
    "level": {"type": "integer", "format": "int64", "enum": [1, 2]},
    "mixed": INT_OR_STRING | {"enum": [1, "all"]},
    "names": {"type": "array", "items": {"type": "string"}},
    "matrix": {"type": "array", "items": {"type": "array", "items": {"type": "integer", "format": "int64"}}},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "ports": {"type": "object", "additionalProperties": {"type": "array", "items": PORT}},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "anything": {"x-kubernetes-preserve-unknown-fields": True},
    "weight": {"type": "integer", "format": "int64"},
    "short": {"type": "string", "maxLength": 5},
    "object": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "podIP": {"type": "string"},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_type_has_its_schema(name):
    assert schema_for(Everything)["properties"][name] == EXPECTED[name]


def test_a_quantity_has_kubernetes_pattern():
    cpu = schema_for(Everything)["properties"]["cpu"]
    assert cpu.pop("pattern").startswith(r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))")
    assert cpu == INT_OR_STRING


def test_fields_without_a_default_are_required_in_their_order():
    names = list(schema_for(Everything)["properties"])
    assert schema_for(Everything)["required"] == names


class Defaults(Struct):
    unset: int | None = None
    count: int = 0
    text: str = ""
    items: list[str] = []  # noqa: RUF012 - copied for every object
    labels: dict[str, str] = field(default_factory=dict)
    port: Port = Port(name="http")
    ports: list[Port] = [Port(name="a", number=1)]  # noqa: RUF012
    cpu: Quantity = Quantity("500m")
    since: datetime = datetime.fromisoformat("2026-01-01T00:00:00Z")
    mode: Literal["a", "b"] = "b"


def test_defaults_stand_in_their_wire_form():
    """``x: T = d`` becomes a default of the server, ``x: T | None = None`` does not, and neither is required."""
    schema = schema_for(Defaults)
    assert "required" not in schema
    assert {name: entry["default"] for name, entry in schema["properties"].items() if "default" in entry} == {
        "count": 0,
        "text": "",
        "items": [],
        "labels": {},
        "port": {"name": "http", "number": 80},
        "ports": [{"name": "a", "number": 1}],
        "cpu": "500m",
        "since": "2026-01-01T00:00:00Z",
        "mode": "b",
    }
    assert "default" not in schema["properties"]["unset"]


class Nulls(Struct):
    required: Annotated[int, Nullable()] | None
    optional: Annotated[int, Nullable()] | None = None
    defaulted: Annotated[int, Nullable()] | None = 3
    sayable: Annotated[int, Nullable()] | UnsetType | None = UNSET
    in_map: dict[str, Annotated[str, Nullable()]] | None = None


def test_null_is_allowed_only_where_it_is_marked():
    schema = schema_for(Nulls)
    assert schema["required"] == ["required"]
    properties = schema["properties"]
    assert all(properties[name]["nullable"] for name in ("required", "optional", "defaulted", "sayable"))
    assert properties["defaulted"]["default"] == 3
    assert properties["inMap"]["additionalProperties"] == {"type": "string", "nullable": True}
    assert "nullable" not in properties["inMap"]


class Described(Struct):
    """What the class is."""

    documented: int = 1
    """How many.

    In two paragraphs.
    """
    marked: Annotated[int, Description("by a marker")] = 1
    "not by the string below"
    port: Port | None = None
    own_port: Port | None = None
    """Not just any port."""
    linked: Annotated[int, ExternalDocs(url="https://example.com", description="more")] | None = None
    plain: int | None = None


class Heir(Described):
    another: int | None = None
    """Of its own."""


def test_docstrings_become_descriptions():
    schema = schema_for(Described)
    described = {name: entry.get("description") for name, entry in schema["properties"].items()}
    assert schema["description"] == "What the class is."
    assert described == {
        "documented": "How many.\n\nIn two paragraphs.",
        "marked": "by a marker",
        "port": "A port.",
        "ownPort": "Not just any port.",
        "linked": None,
        "plain": None,
    }
    assert schema["properties"]["linked"]["externalDocs"] == {"url": "https://example.com", "description": "more"}


def test_descriptions_of_fields_are_inherited_but_not_that_of_the_class():
    schema = schema_for(Heir)
    assert "description" not in schema
    assert schema["properties"]["documented"]["description"].startswith("How many.")
    assert schema["properties"]["another"]["description"] == "Of its own."


def test_the_source_of_typing_is_not_parsed():
    """Every resource derives from Generic; the tree of its module takes 2 MB and most of the time of a schema."""

    class Box(Resource[Spec, Status], group="example.com", version="v1"):
        """A generic class."""

    linecache.clearcache()
    docstrings._descriptions.cache_clear()
    schema_for(Box)
    assert typing.__file__ not in linecache.cache
    assert __file__ in linecache.cache


def test_a_class_without_source_has_no_field_descriptions_and_no_error():
    module = types.ModuleType("without_source")
    sys.modules[module.__name__] = module
    try:
        exec("from steersman.objects import Struct\nclass A(Struct):\n    x: int\n    'lost'\n", module.__dict__)
        assert schema_for(module.A)["properties"] == {"x": {"type": "integer", "format": "int64"}}
    finally:
        del sys.modules[module.__name__]


class Override(Struct):
    port: Annotated[Annotated[int, Minimum(1), Maximum(9)], Minimum(5)]


def test_an_outer_marker_wins():
    """A shared alias may be narrowed where it is used."""
    assert schema_for(Override)["properties"]["port"]["minimum"] == 5
    assert schema_for(Override)["properties"]["port"]["maximum"] == 9


class ShopSpec(Spec):
    """What is wanted."""

    size: int


class ShopStatus(Status):
    ready: int | None = None


class Shop(Resource[ShopSpec, ShopStatus], group="a.example.com", version="v1"):
    """A shop."""


def test_a_resource_has_the_parts_of_every_object():
    schema = schema_for(Shop)
    assert list(schema["properties"]) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert schema["properties"]["apiVersion"] == schema["properties"]["kind"] == {"type": "string"}
    assert schema["required"] == ["spec"]
    assert schema["description"] == "A shop."
    assert schema["properties"]["spec"]["description"] == "What is wanted."


def test_conditions_are_a_map_by_type_with_kubernetes_limits():
    conditions = schema_for(Shop)["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert conditions["items"]["required"] == ["type", "status", "reason"]
    assert conditions["items"]["properties"]["status"]["enum"] == ["True", "False", "Unknown"]
    assert conditions["items"]["properties"]["message"]["maxLength"] == 32768
    assert schema_for(Condition)["properties"] == conditions["items"]["properties"]


class Job(Object, group="b.example.com", version="v1"):
    steps: list[str]


class Schedule(Struct):
    job: Job
    template: Template


def test_an_object_inside_an_object_is_embedded():
    job = schema_for(Schedule)["properties"]["job"]
    assert job["x-kubernetes-embedded-resource"] is True
    assert job["properties"]["metadata"] == {"type": "object"}
    assert job["required"] == ["steps"]
    assert "x-kubernetes-preserve-unknown-fields" not in job


def test_metadata_of_a_template_keeps_labels_and_annotations():
    """An empty schema would make the server prune the labels of every template."""
    metadata = schema_for(Schedule)["properties"]["template"]["properties"]["metadata"]
    assert metadata["properties"]["labels"] == {"type": "object", "additionalProperties": {"type": "string"}}
    assert "uid" not in metadata["properties"]


class Node(Struct):
    children: list[Node] | None = None


class Tree(Struct):
    children: list[Annotated[Tree, PreserveUnknownFields()]] | None = None


class Even(Struct):
    odd: Odd | None = None


class Odd(Struct):
    even: Even | None = None


def test_a_type_that_holds_itself_is_refused_with_what_to_write():
    with pytest.raises(
        TypeError, match=r"class Node, field children: Node contains itself \(Node -> Node\).*PreserveUnknownFields"
    ):
        schema_for(Node)
    with pytest.raises(TypeError, match=r"class Odd, field even: Even contains itself .Even -> Odd -> Even."):
        schema_for(Even)


def test_preserve_unknown_fields_ends_recursion():
    children = schema_for(Tree)["properties"]["children"]
    assert children["items"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_the_schema_belongs_to_the_caller():
    """A program that edits it does not edit what the next one gets."""
    schema_for(Shop)["properties"].clear()
    assert schema_for(Shop)["properties"]


class Keyed(Struct):
    ports: Annotated[list[Port], ListMap("name", "number")]


def test_a_list_map_may_have_keys_with_a_default():
    assert schema_for(Keyed)["properties"]["ports"]["x-kubernetes-list-map-keys"] == ["name", "number"]
