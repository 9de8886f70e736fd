"""The form of objects agrees with the walks over the whole tree that it saves."""

from __future__ import annotations

import copy
from random import Random  # noqa: TID251 - a case is repeated by its seed
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from steersman.apiserver.field_managers.typed_problems import typed_problems
from steersman.patches import MergeSchema
from steersman.schemas import admitted, constraint_check, form_of, pruned, quick_check, validate_tree

NAMES = ("a", "b", "c-d")
SCALARS: list[tuple[dict[str, Any], list[Any]]] = [
    ({"type": "string"}, ["", "x"]),
    ({"type": "string", "enum": ["x", "y"]}, ["x", "z"]),
    ({"type": "string", "pattern": "^x", "maxLength": 3}, ["x", "xyzz", "y"]),
    ({"type": "integer"}, [1, -5]),
    ({"type": "integer", "minimum": 1, "format": "int32"}, [1, 0, 2**40]),
    ({"type": "number"}, [1, 1.5]),
    ({"type": "boolean"}, [True, False]),
    ({"x-kubernetes-int-or-string": True}, [1, "x"]),
    ({"x-kubernetes-preserve-unknown-fields": True}, [1, "x", {"a": [None]}]),
    ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, [{}, {"z": None}]),
]
WRONG: list[Any] = [None, 1, 1.0, "x", True, [], {}, ["x"], {"z": 1}]


def schemas(chance: Random, depth: int) -> tuple[dict[str, Any], list[Any]]:
    """A random schema, and some of its values."""
    sort = chance.choice(["scalar", "object", "object", "map", "list", "listmap", "set"]) if depth else "scalar"
    if sort == "scalar":
        schema, values = chance.choice(SCALARS)
        schema = dict(schema)
    elif sort == "object":
        schema, values = structs(chance, depth)
    elif sort == "map":
        inner, some = schemas(chance, depth - 1)
        schema = {"type": "object", "additionalProperties": inner}
        values = [{name: chance.choice(some) for name in NAMES[: chance.randrange(3)]} for _ in range(3)]
    else:
        schema, values = lists(chance, depth, sort)
    if chance.random() < 0.1:
        schema["nullable"] = True
        values = [*values, None]
    if chance.random() < 0.2 and (valid := [each for each in values if not validate_tree(schema, each)]):
        schema["default"] = copy.deepcopy(chance.choice(valid))
    return schema, values


def structs(chance: Random, depth: int) -> tuple[dict[str, Any], list[Any]]:
    parts = {name: schemas(chance, depth - 1) for name in NAMES if chance.random() < 0.8}
    schema: dict[str, Any] = {"type": "object", "properties": {name: inner for name, (inner, _) in parts.items()}}
    if parts and chance.random() < 0.3:
        schema["required"] = [chance.choice(list(parts))]
    if chance.random() < 0.1:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    values = [
        {name: chance.choice(some) for name, (_, some) in parts.items() if some and chance.random() < 0.8}
        for _ in range(3)
    ]
    return schema, values


def lists(chance: Random, depth: int, sort: str) -> tuple[dict[str, Any], list[Any]]:
    if sort == "set":
        schema = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
        return schema, [["x"], ["x", "y"], ["x", "x"]]
    inner, some = schemas(chance, depth - 1)
    if sort == "list":
        return {"type": "array", "items": inner, "maxItems": 2}, [some[:1], some[:2], some]
    items = {"type": "object", "properties": {"key": {"type": "string"}, "a": inner}, "required": ["key"]}
    schema = {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["key"],
    }
    return schema, [[{"key": "x", "a": some[0]}] if some else [], [{"key": "x"}, {"key": "y"}], [{"key": "x"}] * 2]


def changed(chance: Random, tree: Any) -> Any:
    """A tree with a value replaced by any other, or a field more."""
    if isinstance(tree, dict) and tree and chance.random() < 0.8:
        name = chance.choice(list(tree))
        return {**tree, name: changed(chance, tree[name])}
    if isinstance(tree, dict) and chance.random() < 0.3:
        return {**tree, "unknown": 1}
    if isinstance(tree, list) and tree and chance.random() < 0.8:
        return [changed(chance, tree[0]), *tree[1:]]
    return copy.deepcopy(chance.choice(WRONG))


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32))
def test_what_has_the_form_needs_no_walk(seed):
    """It is pruned already, its defaults are those of the walk, and its types can be merged."""
    chance = Random(seed)
    schema, values = structs(chance, 3)
    schema.pop("nullable", None)
    for value in values:
        for tree in (value, changed(chance, value)):
            if not isinstance(tree, dict):
                continue
            whole = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}, **copy.deepcopy(tree)}
            form = form_of(schema)
            if not form.has_form(whole):
                continue
            assert pruned(schema, whole, root=True) == whole
            assert typed_problems(tree, MergeSchema(schema), duplicates=True) == ""
            expected = msgspec.json.encode(admitted(schema, whole, root=True))
            filled = copy.deepcopy(whole)
            size = form.fill_defaults(filled)
            assert size is None or msgspec.json.encode(filled) == expected
            rest = constraint_check(schema)
            if rest is None or rest(whole):
                assert validate_tree(schema, admitted(schema, tree)) == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "additionalProperties": {"type": "string"}, "required": ["a"]}, {"b": "x"}),
        ({"type": "object", "properties": {'a"b': {"type": "string"}}}, {'a"b': "x"}),
        ({"type": "object", "properties": {"a\\b": {"type": "string"}}}, {"a\\b": "x"}),
        ({"type": "object", "properties": {"a\nb": {"type": "string"}}}, {"a\nb": 1}),
        ({"type": "string", "maxLength": -1}, "x"),
        ({"type": "string", "minLength": -1}, "x"),
        ({"type": "string", "maxLength": 2**70}, "x"),
        ({"type": "string", "maxLength": 1.0}, "xyz"),
    ],
)
def test_unusual_schemas_are_undecided(schema, value):
    """msgspec has no type for them."""
    whole = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}, "spec": value}
    complete = {"type": "object", "properties": {"spec": schema}}
    assert not form_of(complete).has_form(whole)
    assert not quick_check(complete)(whole) or validate_tree(complete, whole) == []


def test_a_valid_object_has_the_form_and_gets_its_defaults():
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["path"],
                "properties": {
                    "path": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"},
                    "start": {"type": "boolean", "default": True},
                    "probes": {
                        "type": "array",
                        "items": {"type": "object", "properties": {"port": {"type": "integer", "default": 80}}},
                    },
                },
            }
        },
    }
    form, rest = form_of(schema), constraint_check(schema)
    tree: dict[str, Any] = {
        "apiVersion": "g/v1",
        "kind": "K",
        "metadata": {"name": "n"},
        "spec": {"path": "x", "probes": [{}, {"port": 1}]},
    }
    assert form.has_form(tree)
    assert form.fill_defaults(tree) == len(b"80true")
    assert tree["spec"] == {"path": "x", "probes": [{"port": 80}, {"port": 1}], "start": True}
    assert rest is not None
    assert rest(tree)
    assert not rest({**tree, "spec": {"path": "X"}})
    assert not form.has_form({**tree, "spec": {"path": ""}})
    assert not form.has_form({**tree, "spec": {"path": None}})
    assert not form.has_form({**tree, "spec": {"path": "x", "other": 1}})
    assert not form.has_form({**tree, "spec": {}})
    assert form_of(copy.deepcopy(schema)) is form
