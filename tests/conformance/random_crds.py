"""CustomResourceDefinitions by chance: mostly good schemas, some with a part that is odd where it stands."""

from __future__ import annotations

from copy import deepcopy
from random import Random  # noqa: TID251 - seeded, and the run prints the seed
from typing import Any

from conformance.crd_schemas import (
    CRDS,
    EMBEDDED,
    INT_OR_STRING,
    KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    RULES,
    crd,
    version,
)
from conformance.scenario import Scenario, post

from steersman.schemas.structure.rules import conversion_problem

Tree = dict[str, Any]

#: Definitions that one scenario tries.
LENGTH = 10
_NAMES = ("name", "kind", "a", "b", "spec", "metadata", "apiVersion")
_PATTERNS = ("^a+$", "[a-z]{2,3}", "(?i)x|y", "(", "[z-a]", "a{2,1}", "\\p{Foo}", "(?<n>x)\\d", "^(?=a)")
_FORMATS = ("date-time", "int32", "int64", "double", "byte", "ipv4")
_VALUES = ("x", "", 1, 0, 1.5, True, [], ["x"], [1], {}, {"a": "x"}, {"name": 1, "b": None}, {"a": {"b": [1]}})
#: Parts that are put somewhere, and may be right there.
_PARTS: tuple[Tree, ...] = (
    {"type": "string"}, {"type": "text"}, {"type": "null"}, {"type": "array"}, {"type": "object"}, {"type": ""},
    {"items": {"type": "string"}}, {"items": [{"type": "string"}]}, {"items": {}}, {"uniqueItems": True},
    {"additionalProperties": True}, {"additionalProperties": False}, {"additionalProperties": {"type": "string"}}, {"additionalProperties": {}},
    {"properties": {"a": {"type": "string"}}}, {"properties": {"metadata": {"type": "object"}}}, {"properties": {"name": {}}},
    {"required": ["a"]}, {"nullable": True}, {"description": "x"}, {"title": "x"}, {"example": {"a": 1}}, {"externalDocs": {}},
    {PRESERVE: True}, {PRESERVE: False}, {EMBEDDED: True}, {INT_OR_STRING: True}, {LIST_TYPE: "set"}, {LIST_TYPE: "map"},
    {LIST_TYPE: "map", KEYS: ["name"]}, {KEYS: ["name"]}, {KEYS: ["a", "a"]}, {LIST_TYPE: "bag"}, {MAP_TYPE: "atomic"}, {MAP_TYPE: "loose"},
    {"$ref": "#/x"}, {"$ref": ""}, {"id": "x"}, {"$schema": "x"}, {"definitions": {"x": {"type": "string"}}}, {"dependencies": {"a": ["b"]}},
    {"dependencies": {"a": {"type": "text"}}}, {"patternProperties": {"a": {}}}, {"additionalItems": True}, {"additionalItems": {"type": "x"}},
    {"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]}, {"not": {}},
    {"anyOf": [{"minLength": 1}]}, {"oneOf": [{"required": ["a"]}, {"properties": {"b": {"pattern": "x"}}}]}, {"not": {"type": "string"}},
    {"allOf": [{"items": {"minLength": 1}}]}, {"allOf": [{"description": "x", "default": 1}]}, {"anyOf": [{"additionalProperties": True}]},
    {"minimum": 1, "exclusiveMinimum": True}, {"maximum": 1.5}, {"multipleOf": 2}, {"minLength": 2}, {"maxLength": 1}, {"maxItems": 1}, {"minItems": 1},
    {"minProperties": 1}, {"maxProperties": 0}, {"enum": ["x", 1]}, {"enum": [None]},
)  # fmt: skip
_RULES: tuple[Tree, ...] = (
    {"rule": ""}, {"rule": "true", "message": " "}, {"rule": "true", "message": "a\nb"}, {"rule": "true ||\ntrue"}, {"rule": "true", "reason": "x"},
    {"rule": "true", "fieldPath": ".a"}, {"rule": "true", "fieldPath": ".x"}, {"rule": "true", "fieldPath": "['a']"}, {"rule": "true"},
)  # fmt: skip


def _scalar(chance: Random) -> Tree:
    kind = chance.choice(("string", "integer", "number", "boolean"))
    made: Tree = {"type": kind}
    if chance.random() < 0.15:
        made["format"] = chance.choice(_FORMATS)
    if chance.random() < 0.1:
        made["nullable"] = True
    if chance.random() < 0.1 and kind == "string":
        made["pattern"] = chance.choice(_PATTERNS)
    if chance.random() < 0.15:
        made["default"] = {"string": "x", "integer": 1, "number": 1.5, "boolean": True}[kind]
    return made


def _schema(chance: Random, depth: int) -> Tree:
    roll = chance.random()
    if depth == 0 or roll < 0.4:
        return _scalar(chance)
    if roll < 0.55:
        made: Tree = {"type": "array", "items": _schema(chance, depth - 1)}
        if chance.random() < 0.3:
            made[LIST_TYPE] = chance.choice(("atomic", "set", "map"))
        if made.get(LIST_TYPE) == "map" or chance.random() < 0.05:
            made[KEYS] = chance.choice((["name"], ["a", "b"], ["a"]))
        return made
    if roll < 0.65:
        return {"type": "object", "additionalProperties": _schema(chance, depth - 1)}
    if roll < 0.72:
        return {INT_OR_STRING: True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    if roll < 0.77:
        return {"type": "object", PRESERVE: True} | ({EMBEDDED: True} if chance.random() < 0.5 else {})
    return _object(chance, depth)


def _object(chance: Random, depth: int) -> Tree:
    names = chance.sample(_NAMES, chance.randrange(1, 4))
    made: Tree = {"type": "object", "properties": {name: _schema(chance, depth - 1) for name in names}}
    if chance.random() < 0.3:
        made["required"] = [chance.choice(names)]
    return made


def _parts(schema: Any) -> list[Tree]:
    """All parts of a schema that are schemas."""
    found = [schema]
    for name in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(name), dict):
            found += _parts(schema[name])
    for inner in schema.get("properties", {}).values():
        found += _parts(inner)
    for name in ("allOf", "anyOf", "oneOf"):
        for inner in schema.get(name, ()):
            found += _parts(inner)
    return found


def random_schema(chance: Random) -> Tree:
    """A schema, good or not."""
    made = _object(chance, chance.randrange(1, 4))
    for _ in range(chance.choice((0, 0, 1, 1, 1, 2, 3))):
        at = chance.choice(_parts(made))
        roll = chance.random()
        if roll < 0.7:
            at |= deepcopy(chance.choice(_PARTS))
        elif roll < 0.85:
            at["default"] = deepcopy(chance.choice(_VALUES))
        elif roll < 0.92:
            at[RULES] = [chance.choice(_RULES)]
        elif len(at) > 1:
            del at[chance.choice(sorted(at))]
    return made


def _random_crd(chance: Random) -> Tree:
    more: Tree = {}
    if chance.random() < 0.2:
        more["subresources"] = chance.choice(
            ({"status": {}}, {"scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": "x"}}, {})
        )
    schema = random_schema(chance)
    # The engine ends the connection if there is nothing that such a field could be looked up in.
    if chance.random() < 0.1 and "properties" in schema and not conversion_problem(schema):
        more["selectableFields"] = [{"jsonPath": chance.choice((".spec", ".a", ".metadata.name", "a", ".a[0]"))}]
    versions = [version(schema=schema, **more)]
    if chance.random() < 0.1:
        versions.append(version("v2", random_schema(chance), storage=chance.random() < 0.1))
    return crd(*versions)


def random_crds(seed: int, number: int) -> Scenario:
    """So many definitions, each only tried."""
    chance = Random(f"crds/{seed}/{number}")
    steps = [post(CRDS, _random_crd(chance), dryRun="All") for _ in range(LENGTH)]
    return Scenario(f"random-crds/seed-{seed}-number-{number}", tuple(steps))
