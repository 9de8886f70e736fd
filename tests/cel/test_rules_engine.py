"""Tables of expressions: what the engine says of each, `steersman.cel` says too, word for word.

One definition holds all expressions that are taken, and two objects are judged by it; another is only tried, with all that
are refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from steersman.cel import compile_rules

GROUP = "cel.example.com"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "s": {"type": "string", "maxLength": 40},
        "t": {"type": "string", "maxLength": 40},
        "long": {"type": "string"},
        "e": {"type": "string", "enum": ["on", "off"]},
        "i": {"type": "integer"},
        "j": {"type": "integer"},
        "n": {"type": "number"},
        "b": {"type": "boolean"},
        "ios": {"x-kubernetes-int-or-string": True},
        "when": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "lasts": {"type": "string", "format": "duration"},
        "data": {"type": "string", "format": "byte", "maxLength": 100},
        "strs": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 20}},
        "ints": {"type": "array", "maxItems": 10, "items": {"type": "integer"}},
        "nums": {"type": "array", "maxItems": 10, "items": {"type": "number"}},
        "set": {
            "type": "array",
            "maxItems": 10,
            "x-kubernetes-list-type": "set",
            "items": {"type": "string", "maxLength": 10},
        },
        "set2": {
            "type": "array",
            "maxItems": 10,
            "x-kubernetes-list-type": "set",
            "items": {"type": "string", "maxLength": 10},
        },
        "setNums": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": {"type": "number"}},
        "setDays": {
            "type": "array",
            "maxItems": 5,
            "x-kubernetes-list-type": "set",
            "items": {"type": "string", "format": "date"},
        },
        "setData": {
            "type": "array",
            "maxItems": 5,
            "x-kubernetes-list-type": "set",
            "items": {"type": "string", "format": "byte", "maxLength": 10},
        },
        "setObjects": {
            "type": "array",
            "maxItems": 5,
            "x-kubernetes-list-type": "set",
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {"k": {"type": "string", "maxLength": 10}},
            },
        },
        "keyed": {
            "type": "array",
            "maxItems": 10,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {
                "type": "object",
                "required": ["k"],
                "properties": {"k": {"type": "string", "maxLength": 10}, "v": {"type": "integer"}},
            },
        },
        "keyed2": {
            "type": "array",
            "maxItems": 10,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {
                "type": "object",
                "required": ["k"],
                "properties": {"k": {"type": "string", "maxLength": 10}, "v": {"type": "integer"}},
            },
        },
        "m": {"type": "object", "maxProperties": 10, "additionalProperties": {"type": "string", "maxLength": 20}},
        "mi": {"type": "object", "maxProperties": 10, "additionalProperties": {"type": "integer"}},
        "o": {
            "type": "object",
            "properties": {
                "a": {"type": "string", "maxLength": 10},
                "x-y": {"type": "string", "maxLength": 10},
                "a.b": {"type": "string", "maxLength": 10},
                "c/d": {"type": "integer"},
                "namespace": {"type": "string", "maxLength": 10},
                "under__score": {"type": "string", "maxLength": 10},
                "null1": {"type": "string", "nullable": True, "maxLength": 5},
            },
        },
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "loose": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"p": {"type": "string", "maxLength": 5}},
        },
        "emb": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        "nulls": {"type": "array", "maxItems": 5, "items": {"type": "string", "nullable": True, "maxLength": 5}},
    },
}
FULL: dict[str, Any] = {
    "apiVersion": "cel.example.com/v1",
    "kind": "Expressed",
    "metadata": {"name": "one", "labels": {"a": "b"}},
    "s": "hello World",
    "t": "hé",
    "long": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "e": "on",
    "i": 7,
    "j": -3,
    "n": 2.5,
    "b": True,
    "ios": "50%",
    "when": "2024-02-29T12:34:56.789+02:00",
    "day": "2024-02-29",
    "lasts": "1h30m",
    "data": "aGVsbG8=",
    "strs": ["a", "b", "c", "b"],
    "ints": [1, 2, 3, 5],
    "nums": [1.5, 2, 3.25],
    "set": ["x", "y"],
    "set2": ["y", "x"],
    "setNums": [1, 2.5],
    "setDays": ["2024-02-29", "2024-03-01"],
    "setData": ["aGVsbG8="],
    "setObjects": [{"k": "a"}],
    "keyed": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
    "keyed2": [{"k": "b", "v": 2}, {"k": "a", "v": 1}],
    "m": {"x": "1", "y": "two"},
    "mi": {"x": 1, "y": 2},
    "o": {"a": "aa", "x-y": "xy", "a.b": "ab", "c/d": 4, "namespace": "ns", "under__score": "us"},
    "any": {"z": 1},
    "loose": {"p": "q", "extra": 1},
    "emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"q": 1}},
    "nulls": ["a", None],
}
BARE: dict[str, Any] = {
    "apiVersion": "cel.example.com/v1",
    "kind": "Expressed",
    "metadata": {"name": "two", "generateName": "tw"},
    "s": "",
    "t": "a,b,,c",
    "i": 0,
    "j": 9223372036854775807,
    "n": -0.0,
    "b": False,
    "ios": 12,
    "strs": [],
    "ints": [],
    "nums": [],
    "m": {},
    "mi": {},
    "set": [],
    "keyed": [],
    "lasts": "3s",
    "when": "2020-01-01T00:00:00Z",
}
TABLES = Path(__file__).parent
#: Expressions that a definition may have, one a line; and those that it may not have: read wrongly, of wrong types, too dear.
TAKEN = (TABLES / "taken.txt").read_text().splitlines()
REFUSED = (TABLES / "refused.txt").read_text().splitlines()


def definition(plural: str, *expressions: str) -> dict[str, Any]:
    """A kind whose whole objects are judged by expressions."""
    schema = SCHEMA | {"x-kubernetes-validations": [{"rule": expression} for expression in expressions]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural[:-1], "kind": "Expressed"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def schema_of(crd: dict[str, Any]) -> dict[str, Any]:
    """The schema of a definition."""
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def same_numbers(message: str) -> str:
    """A message with the type of ``self`` numbered as here: the server numbers it anew each time."""
    return re.sub(r"selfType\d+", "selfType0", message)


def test_the_tables_are_large():
    assert len(TAKEN) >= 350
    assert len(REFUSED) >= 140


@pytest.fixture(scope="module")
def taken() -> dict[str, Any]:
    return definition("expressions", *TAKEN)


async def test_objects_are_judged_as_by_the_engine(server, taken):
    """Which rules hold, and for the others: what they say, or why they have no answer."""
    await server.install(taken)
    rules, problems = compile_rules(schema_of(taken))
    assert problems == []
    for tree in (FULL, BARE):
        causes = await server.verdict(taken, tree)
        theirs = [(cause["field"], cause["reason"], cause["message"]) for cause in causes]
        ours = [(found.path, found.reason, found.message) for found in rules.problems(tree)]
        assert ours == theirs
        assert len(TAKEN) // 5 < len(ours) < len(TAKEN)


async def test_expressions_are_refused_as_by_the_engine(server):
    """Syntax, types, literals, costs: each in the engine's words, at its place."""
    crd = definition("refusals", *REFUSED)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    code, answer = await server.request("POST", path, crd, dryRun="All")
    assert code == 422, answer
    theirs = {(cause["field"], same_numbers(cause["message"])) for cause in answer["details"]["causes"]}
    _, problems = compile_rules(schema_of(crd), path="spec.validation.openAPIV3Schema")
    ours = {(found.path, same_numbers(found.message)) for found in problems}
    assert ours == theirs
    refused = {int(found.path.split("[")[-1].split("]")[0]) for found in problems if "validations[" in found.path}
    assert refused == set(range(len(REFUSED)))
