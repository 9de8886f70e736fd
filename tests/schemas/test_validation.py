"""`validate()`, `problems()` and `validate_tree()`: what is found, in which words, and within which bounds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest

from steersman.errors import ApiError, Invalid
from steersman.kinds.core_v1 import Secret
from steersman.markers import ListMap, Maximum, MaxLength, Minimum
from steersman.objects import ObjectMeta, Resource, ScaleSubresource, Spec, Status, Struct, decode
from steersman.objects.field_problems import FieldProblem
from steersman.schemas import SchemaTooDeep, admitted, problems, validate, validate_tree
from steersman.schemas.quick_validation import quick_check


class Port(Struct):
    name: Annotated[str, MaxLength(3)]
    number: Annotated[int, Minimum(1), Maximum(9)] = 1


class SiteSpec(Spec):
    image: str
    mode: Literal["a", "b"] = "a"
    ports: Annotated[list[Port], ListMap("name")] | None = None


class Site(Resource[SiteSpec, None], group="web.example.com", version="v1"):
    """A site."""


class ReportedStatus(Status):
    port: Port | None = None


class Reported(Resource[SiteSpec, ReportedStatus], group="web.example.com", version="v1"):
    """A site with a status."""


class ScaledStatus(Status):
    replicas: int = 0


class ScaledSpec(Spec):
    replicas: int = 1


class Scaled(Resource[ScaledSpec, ScaledStatus], group="web.example.com", version="v1", scale=ScaleSubresource()):
    """A site with a scale."""


def made(**spec: Any) -> Site:
    return Site(metadata=ObjectMeta(name="s"), spec=SiteSpec(**({"image": "i"} | spec)))


def test_a_valid_object_passes_in_silence():
    validate(made(ports=[Port(name="a"), Port(name="b")]))


def test_an_invalid_object_raises_what_the_server_would_answer():
    """One `except Invalid` covers what is found here and what the server finds."""
    with pytest.raises(Invalid) as caught:
        validate(made(mode="c", ports=[Port(name="long", number=0), Port(name="long")]))
    assert isinstance(caught.value, ApiError)
    assert caught.value.code == 422
    assert [(cause.field, cause.reason, cause.message) for cause in caught.value.causes] == [
        ("spec.mode", "FieldValueNotSupported", 'Unsupported value: "c": supported values: "a", "b"'),
        ("spec.ports[0].name", "FieldValueTooLong", "Too long: may not be more than 3 bytes"),
        (
            "spec.ports[0].number",
            "FieldValueInvalid",
            "Invalid value: 0: spec.ports[0].number in body should be greater than or equal to 1",
        ),
        ("spec.ports[1].name", "FieldValueTooLong", "Too long: may not be more than 3 bytes"),
        ("spec.ports[1]", "FieldValueDuplicate", 'Duplicate value: {"name":"long"}'),
    ]
    assert str(caught.value).splitlines()[0] == 'validate Site s: Site.web.example.com "s" is invalid (422 Invalid)'
    assert '  - spec.mode: Unsupported value: "c"' in str(caught.value)


def test_a_part_can_be_validated_alone():
    assert problems(Port(name="ok")) == []
    assert [str(problem) for problem in problems(Port(name="long"))] == ["name: Too long: may not be more than 3 bytes"]
    with pytest.raises(Invalid, match="validate Port: Port"):
        validate(Port(name="long"))


def test_a_field_can_be_validated_alone():
    """A write of the status is judged by the status: the spec may be missing."""
    right = decode(Reported, b'{"metadata":{"name":"s"},"status":{"port":{"name":"ok"}}}')
    wrong = decode(Reported, b'{"metadata":{"name":"s"},"status":{"port":{"name":"long"}}}')
    assert problems(right, field="status") == []
    assert [problem.path for problem in problems(wrong, field="status")] == ["status.port.name"]
    assert [problem.path for problem in problems(wrong)] == ["status.port.name", "spec"]


def test_the_replicas_of_a_status_are_part_of_it():
    scaled = decode(Scaled, b'{"metadata":{"name":"s"},"status":{"replicas":-1}}')
    assert [problem.path for problem in problems(scaled, field="status")] == [".status.replicas"]


def test_what_was_read_leniently_is_judged_strictly():
    site = decode(Site, b'{"metadata":{"name":"s"},"spec":{"mode":"newer","ports":[{"number":99}]}}')
    assert [(problem.path, problem.reason) for problem in problems(site)] == [
        ("spec.mode", "FieldValueNotSupported"),
        ("spec.ports[0].number", "FieldValueInvalid"),
        ("spec.ports[0].name", "FieldValueRequired"),
        ("spec.image", "FieldValueRequired"),
    ]


def test_unknown_fields_are_no_problem():
    """The server prunes them, or another version of the CRD knows them."""
    assert problems(decode(Site, b'{"metadata":{"name":"s"},"spec":{"image":"i","new":1}}')) == []


def test_a_default_that_is_not_there_is_no_problem():
    """The server fills it in before it judges; keys of list maps count with their defaults."""
    schema = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {
            "type": "object",
            "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}},
            "required": ["port"],
        },
    }
    given = [{"port": 1}, {"port": 1, "protocol": "TCP"}]
    assert validate_tree(schema, given) == []
    assert [problem.path for problem in validate_tree(schema, admitted(schema, given))] == ["[1]"]
    assert not quick_check(schema)(given)
    assert quick_check(schema)([{"port": 1}, {"port": 1, "protocol": "UDP"}])


@pytest.mark.parametrize(
    "value", [True, False, 0, 1, -1, 1.0, 1.5, 2**63, "", "true", "1", None, [], [1], {}, {"a": True}]
)
@pytest.mark.parametrize("type_", ["boolean", "integer", "number", "string", "array", "object"])
def test_the_quick_check_accepts_no_value_of_another_type(type_, value):
    inner = {"items": {"type": "boolean"}} if type_ == "array" else {}
    schema = {"type": type_, **inner} | ({"additionalProperties": {"type": "integer"}} if type_ == "object" else {})
    assert not quick_check(schema)(value) or validate_tree(schema, value) == []


class Node(Struct):
    name: Annotated[str, MaxLength(3)]
    children: list[Node] | None = None


def test_a_type_that_holds_itself_is_validated_to_where_it_closes():
    """It has no CRD, but an object of it can be checked; the server's own kinds hold such types."""
    assert problems(Node(name="long", children=[Node(name="also long")])) == [
        FieldProblem("name", "Too long: may not be more than 3 bytes", "FieldValueTooLong")
    ]


def test_kinds_of_the_server_itself_have_no_formats():
    """A Secret may hold an empty value; ``format: byte`` of a custom resource refuses the empty text."""
    assert problems(Secret(metadata=ObjectMeta(name="s"), data={"empty": b""})) == []


def test_the_words_of_alternatives():
    """A schema from a CRD of someone else may use what our types do not."""
    schema = {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "string"}},
        "oneOf": [{"required": ["x"]}, {"required": ["y"]}],
        "not": {"properties": {"x": {"enum": [13]}}, "required": ["x"]},
        "allOf": [{"properties": {"x": {"maximum": 20}}}],
    }
    assert validate_tree(schema, {"x": 1}, path="spec") == []
    assert [str(problem) for problem in validate_tree(schema, {"x": 1, "y": "a"}, path="spec")] == [
        'spec: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives'
    ]
    assert '"spec" must not validate the schema (not)' in validate_tree(schema, {"x": 13}, path="spec")[0].message
    assert [problem.path for problem in validate_tree(schema, {"x": 21}, path="spec")] == ["spec.x", "spec"]
    assert "Found none valid" in validate_tree(schema, {}, path="spec")[0].message


def test_a_forbidden_property():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    assert [problem.message for problem in validate_tree(schema, {"a": "x", "b": 1}, path="spec")] == [
        'Invalid value: "b": spec.b in body is a forbidden property'
    ]


def test_a_value_that_is_no_json_is_an_error_of_the_caller():
    with pytest.raises(TypeError, match="object is not JSON; validate the result of to_json"):
        validate_tree({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": object()})


def test_a_hostile_schema_is_refused():
    schema: dict[str, Any] = {"type": "string"}
    tree: Any = "x"
    for _ in range(5000):
        schema, tree = {"type": "array", "items": schema}, [tree]
    with pytest.raises(SchemaTooDeep, match="nests more than 128 levels deep; end it with x-kubernetes-preserve"):
        validate_tree(schema, tree)
    with pytest.raises(SchemaTooDeep):
        admitted(schema, tree)


def test_a_hostile_number_of_problems_is_bounded():
    """A million wrong items do not make a million sentences."""
    found = validate_tree({"type": "array", "items": {"type": "string"}}, [1] * 100_000)
    assert len(found) == 1001
    assert "more than 1000 problems" in found[-1].message


def test_a_hostile_value_is_cut_in_messages():
    (found,) = validate_tree({"type": "string", "enum": ["a"]}, "x" * 1_000_000)
    assert len(found.message) < 2000


@pytest.mark.parametrize("value", [10**400, -(10**400), 2**64, 1e308])
def test_hostile_numbers_are_judged(value):
    assert validate_tree({"type": "integer", "format": "int64"}, value)
    assert bool(validate_tree({"type": "number", "maximum": 1e300}, value)) == (value > 1e300 or value < -1e300)


def test_a_pattern_that_only_go_has_is_enforced():
    """Python's own expressions have no Unicode classes."""
    schema = {"type": "string", "pattern": r"^\pL+$"}
    assert validate_tree(schema, "äΩ") == []
    [problem] = validate_tree(schema, "1")
    assert "should match" in problem.message


def test_admitted_leaves_the_given_tree_alone():
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "integer", "default": 3}}},
            "n": {"type": "string"},
        },
    }
    given = {"a": {"x": 1}, "n": None, "unknown": 2}
    assert admitted(schema, given) == {"a": {"b": 3}}
    assert given == {"a": {"x": 1}, "n": None, "unknown": 2}


def test_a_default_that_equals_a_pruned_value_takes_its_place():
    schema = {"type": "object", "properties": {"masts": {"type": "integer", "default": 1}}}
    assert admitted(schema, {"crew": 1}) == {"masts": 1}
    assert admitted(schema, {"crew": 1}, in_place=True) == {"masts": 1}
