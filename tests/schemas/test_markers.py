"""Every marker in the schema, and every misuse refused with class, field and what to write."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
import pytest

from steersman.markers import (
    AtLeastOneOf,
    AtMostOneOf,
    Description,
    EmbeddedResource,
    ExactlyOneOf,
    Example,
    Format,
    Immutable,
    Int32,
    ListAtomic,
    ListMap,
    ListSet,
    MapAtomic,
    Maximum,
    MaxItems,
    MaxLength,
    MaxProperties,
    Minimum,
    MinItems,
    MinLength,
    MinProperties,
    MultipleOf,
    Nullable,
    Pattern,
    PreserveUnknownFields,
    Rule,
    Title,
)
from steersman.objects import Quantity, Struct
from steersman.schemas import schema_for


class Item(Struct):
    name: str
    size: int | None = None
    port: int = 80
    tags: list[str] | None = None


def build(hint: Any, default: Any = None, **options: Any) -> type[Struct]:
    """A class with one field ``x``."""
    namespace = {"__module__": __name__, "__qualname__": "Sample", "__annotations__": {"x": hint}}
    if default is not ...:
        namespace["x"] = default
    return type(Struct)("Sample", (Struct,), namespace, **options)


def entry(hint: Any, default: Any = None) -> dict[str, Any]:
    return schema_for(build(hint, default))["properties"]["x"]


INT = {"type": "integer", "format": "int64"}
ITEM = schema_for(Item)


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Annotated[int, Minimum(1)], INT | {"minimum": 1}),
        (Annotated[int, Minimum(1, exclusive=True)], INT | {"minimum": 1, "exclusiveMinimum": True}),
        (Annotated[int, Maximum(9)], INT | {"maximum": 9}),
        (Annotated[float, Maximum(0.5, exclusive=True)], {"type": "number", "format": "double", "maximum": 0.5, "exclusiveMaximum": True}),
        (Annotated[int, MultipleOf(5)], INT | {"multipleOf": 5}),
        (Annotated[str, MinLength(1), MaxLength(9)], {"type": "string", "minLength": 1, "maxLength": 9}),
        (Annotated[str, Pattern("^a$")], {"type": "string", "pattern": "^a$"}),
        (Annotated[str, Format("ipv4")], {"type": "string", "format": "ipv4"}),
        (Annotated[list[str], MinItems(1), MaxItems(2)], {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2}),
        (list[Annotated[str, MinLength(2)]], {"type": "array", "items": {"type": "string", "minLength": 2}}),
        (
            Annotated[dict[str, int], MinProperties(1), MaxProperties(2)],
            {"type": "object", "additionalProperties": INT, "minProperties": 1, "maxProperties": 2},
        ),
        (dict[str, Annotated[int, Minimum(0)]], {"type": "object", "additionalProperties": INT | {"minimum": 0}}),
        (Annotated[list[str], ListSet()], {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        (
            Annotated[list[Annotated[Item, MapAtomic()]], ListSet()],
            {"type": "array", "items": ITEM | {"x-kubernetes-map-type": "atomic"}, "x-kubernetes-list-type": "set"},
        ),
        (
            Annotated[list[Item], ListMap("name")],
            {"type": "array", "items": ITEM, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
        (Annotated[list[str], ListAtomic()], {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"}),
        (
            Annotated[dict[str, str], MapAtomic()],
            {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
        ),
        (Annotated[Item, PreserveUnknownFields()], ITEM | {"x-kubernetes-preserve-unknown-fields": True}),
        (Annotated[str, Nullable()], {"type": "string", "nullable": True}),
        (Annotated[str, Title("T"), Description("D"), Example("e")], {"type": "string", "title": "T", "description": "D", "example": "e"}),
        (Annotated[int | str, MaxLength(3), Maximum(9)], {"maxLength": 3, "maximum": 9}),
        (
            Annotated[str, Rule(rule="self != 'x'", message="no x", reason="FieldValueForbidden")],
            {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'x'", "message": "no x", "reason": "FieldValueForbidden"}]},
        ),
        (
            Annotated[
                Item,
                Rule(rule="!has(oldSelf.value) || self == oldSelf.value()", optional_old_self=True, message_expression="'a'", field_path=".name"),
            ],
            ITEM
            | {
                "x-kubernetes-validations": [
                    {
                        "rule": "!has(oldSelf.value) || self == oldSelf.value()",
                        "messageExpression": "'a'",
                        "fieldPath": ".name",
                        "optionalOldSelf": True,
                    }
                ]
            },
        ),
        (
            Annotated[str, Immutable()],
            {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "x is immutable"}]},
        ),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value)[-40:],
)  # fmt: skip
def test_a_marker_becomes_a_part_of_the_schema(hint, schema):
    assert schema.items() <= entry(hint if "nullable" in schema else hint | None).items()


class Zoned(Struct, rules=(Rule(rule="self.a != self.b", message="a equals b"),)):
    a: Annotated[str, Immutable("fixed")]
    b: Annotated[str, Immutable()] | None = None
    c: Annotated[str, Immutable(from_creation=True)] | None = None
    d: Annotated[str, Immutable()] = "d"
    namespace: Annotated[str, Immutable()] | None = None


def test_immutable_optional_fields_are_guarded_by_their_parent_too():
    """A rule on a field is silent when the field is removed or added; the parent's is not."""
    assert schema_for(Zoned)["x-kubernetes-validations"] == [
        {
            "rule": "!has(oldSelf.b) || has(self.b)",
            "message": "b is immutable: once set it cannot be removed",
            "fieldPath": ".b",
        },
        {
            "rule": "has(oldSelf.c) == has(self.c)",
            "message": "c is immutable: it can be neither set nor removed after creation",
            "fieldPath": ".c",
        },
        {
            "rule": "!has(oldSelf.__namespace__) || has(self.__namespace__)",
            "message": "namespace is immutable: once set it cannot be removed",
            "fieldPath": ".namespace",
        },
        {"rule": "self.a != self.b", "message": "a equals b"},
    ]
    assert schema_for(Zoned)["properties"]["a"]["x-kubernetes-validations"][0]["message"] == "fixed"


class Source(Struct, rules=(ExactlyOneOf("git", "ociImage"), AtMostOneOf("git", "path"), AtLeastOneOf("git", "path"))):
    git: str | None = None
    oci_image: str | None = None
    path: str | None = None


class DerivedSource(Source, rules=(AtMostOneOf("path", "extra"),)):
    extra: str | None = None


def test_groups_of_fields_become_rules():
    assert schema_for(Source)["x-kubernetes-validations"] == [
        {
            "rule": "(has(self.git) ? 1 : 0) + (has(self.ociImage) ? 1 : 0) == 1",
            "message": "exactly one of git, ociImage must be set",
        },
        {
            "rule": "(has(self.git) ? 1 : 0) + (has(self.path) ? 1 : 0) <= 1",
            "message": "at most one of git, path may be set",
        },
        {"rule": "has(self.git) || has(self.path)", "message": "at least one of git, path must be set"},
    ]


def test_rules_are_inherited():
    """A derived class promises what its base promised."""
    assert len(schema_for(DerivedSource)["x-kubernetes-validations"]) == 4


T = TypeVar("T")


class Box(Struct, Generic[T]):
    value: T


class Plain:
    size: int


MISUSES = [
    (
        Annotated[str, Minimum(1)],
        None,
        "Minimum is for numbers, but the type here is string; use MinLength",
    ),
    (Annotated[int, MinLength(1)], None, "MinLength is for strings, but the type here is integer.*Minimum"),
    (Annotated[bool, Maximum(1)], None, "Maximum is for numbers, but the type here is boolean"),
    (Annotated[str, MaxItems(1)], None, "MaxItems is for lists"),
    (Annotated[list[str], MaxProperties(1)], None, "MaxProperties is for maps and structs"),
    (Annotated[int, Pattern("a")], None, "Pattern is for strings"),
    (Annotated[Quantity, Pattern("a")], None, "a Quantity has a pattern of its own"),
    (Annotated[int, Minimum(0.5)], None, "Minimum.0.5. is not a 64-bit integer"),
    (Annotated[Int32, Maximum(2**31)], None, "is not a 32-bit integer"),
    (Annotated[int, MultipleOf(0)], None, "must be positive"),
    (Annotated[int, MultipleOf(0.1)], None, "MultipleOf.0.1. is not a 64-bit integer"),
    (Annotated[str, MaxLength(-1)], None, "takes a number of at least 0"),
    (Annotated[int, Format("date")], None, "does not exist for integer; write int32 or int64"),
    (Annotated[bool, Format("date")], None, "Format is for strings and numbers"),
    (Annotated[Literal["a"], Nullable()], None, "rejects null for every closed set"),
    (Annotated[list[Item], ListSet()], None, "a ListSet holds scalars.*ListMap"),
    (Annotated[list[Annotated[str, Nullable()]], ListSet()], None, "cannot be Nullable"),
    (Annotated[list[str], ListMap("name")], None, "a ListMap holds structs.*ListSet"),
    (
        Annotated[list[Item], ListMap("nome")],
        None,
        "names 'nome', which the items do not have; they have name, size, port",
    ),
    (
        Annotated[list[Item], ListMap("size")],
        None,
        "the key 'size' of a ListMap is optional; give it a default or require it",
    ),
    (Annotated[list[Item], ListMap("tags")], None, "must be a string, a number or a boolean"),
    (Annotated[list[Item], ListMap("name", "name")], None, "names a key twice"),
    (Annotated[str, ListAtomic()], None, "ListAtomic is for lists"),
    (Annotated[list[str], MapAtomic()], None, "MapAtomic is for maps"),
    (Annotated[str, PreserveUnknownFields()], None, "PreserveUnknownFields is for maps and structs"),
    (Annotated[dict[str, str], EmbeddedResource()], None, "dict.str, Any. or a class derived from Object"),
    (Annotated[str, Nullable], None, "Nullable is a class; write Nullable"),
    (Annotated[int, msgspec.Meta(ge=0)], None, "msgspec.Meta has no effect on the schema"),
    (Annotated[int, "min=3"], None, "'min=3' has no effect on the schema"),
    (Annotated[str, Rule(rule=" ")], None, "needs a CEL expression"),
    (Annotated[str, Rule(rule="a\nb")], None, "needs message="),
    (Annotated[str, Rule(rule="a", message="b\nc")], None, "must be one line"),
    (Annotated[str, Rule(rule="self == 'a'", optional_old_self=True)], None, "needs a Rule that uses oldSelf"),
    (Annotated[str, ExactlyOneOf("a")], None, "is for structs, because it names fields"),
    (Annotated[Item, AtMostOneOf("size", "nome")], None, "names 'nome', which is not a field"),
    (Annotated[Item, AtMostOneOf("size", "name")], None, "names 'name', which is always set; make it optional"),
    (list[Annotated[str, Immutable()]], None, "the items of this list have no key; declare the list as a ListMap"),
    (list[Annotated[Item, Rule(rule="self == oldSelf")]], None, "Rule compares with the old value"),
    (int | float, None, "is a union, but a field has one type"),
    (tuple[int, ...], None, r"has no schema; use list\[T\]"),
    (set[str], None, "ListSet"),
    (complex, None, "complex has no schema; use str"),
    (Plain, None, r"Plain has no schema; use a struct: class Plain\(Struct\), or class Plain\(Spec\) for a spec"),
    (list, None, r"list does not declare what it contains; write for example list\[str\]"),
    (dict[int, str], None, "the keys of a map must be strings"),
    (Literal["a", 1.5], None, "has no schema; use strings"),
    (Literal[True], None, "has no schema; use strings"),
    (int | None, ..., "may be None but has no default; add = None"),
    (int | None, 3, "has a default, so None could not be sent"),
    (int, Minimum(0), r"Minimum is a marker, not a default; write Annotated\[TYPE, Minimum\(\.\.\.\)\]"),
    (Annotated[int, Minimum(5)], 3, "its default violates its own constraints: .*greater than or equal to 5"),
    (Annotated[str, Pattern("^a$")], "b", "its default violates its own constraints"),
    (Literal["a", "b"], "c", "its default violates its own constraints: Unsupported value"),
    (Annotated[list[str], MinItems(1)], [], "its default violates its own constraints"),
    (Annotated[list[str], ListSet()], ["a", "a"], "its default violates its own constraints: Duplicate value"),
    (Box, None, "the type variable ~T has no value"),
]


@pytest.mark.parametrize(("hint", "default", "said"), MISUSES, ids=lambda value: str(value)[:50])
def test_misuse_is_refused_with_what_to_write(hint, default, said):
    """The message names the class and the field: `class Sample, field x: ...`."""
    with pytest.raises(TypeError, match=said) as caught:
        schema_for(build(hint | None if default is None else hint, default))
    assert str(caught.value).startswith("class Sample, field x: " if hint is not Box else "class Box, field value: ")


def test_rules_of_a_class_are_rules():
    with pytest.raises(TypeError, match="class Sample: rules= takes Rule, ExactlyOneOf"):
        schema_for(build(int | None, None, rules=(Minimum(1),)))


def test_metadata_of_others_in_annotated_is_ignored():
    assert entry(Annotated[int, "a note for another tool"] | None) == INT


def test_an_example_may_be_a_list():
    """Markers must be hashable to stand beside ``| None``."""
    assert entry(Annotated[list[int], Example([1])] | None)["example"] == [1]
