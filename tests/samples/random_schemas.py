"""Random structural schemas, values that fit them, and changes of a schema: what breaks and what does not."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from random import Random  # noqa: TID251 - seeded by the test, which says with what
from typing import Any

Schema = dict[str, Any]
Change = Callable[[Random, Schema], bool]

#: In every object, in no value and never changed: what a client writes in another field.
NOTE = "note"
NAMES = ("alpha", "beta", "gamma", "delta")
TEXTS = ("", "a", "bb", "ccc", "abcdef", "abcdefghij", "x" * 30)
PATTERNS = {"^[a-z]*$": ("", "a", "abc", "abcdef"), "^[a-c]+$": ("a", "abc", "ccc"), "^x?y*$": ("", "x", "xyy", "yy")}
RULES = {
    "integer": ("self != 7", "self < 40", "self % 2 == 0"),
    "string": ("self != 'a'", "self.size() < 5", "!self.startsWith('x')"),
    "boolean": ("self || !self", "self"),
    "object": ("!has(self.note) || self.note != 'other'", "has(self.note)"),
}


def random_schema(rng: Random, depth: int = 0) -> Schema:
    """The schema of a value."""
    kinds = ["string", "string", "enum", "pattern", "integer", "integer", "number", "boolean", "int-or-string", "open"]
    if depth < 3:
        kinds += ["object", "object", "array", "keyed", "set", "map"]
    schema = _BUILDERS[rng.choice(kinds)](rng, depth)
    if rng.random() < 0.15 and schema.get("type"):
        schema["nullable"] = True
    # the last rule is one that few values satisfy
    rules = RULES.get(schema.get("type", ""), ())[:-1]
    is_free = "enum" not in schema and (schema.get("type") != "object" or "properties" in schema)
    if rules and rng.random() < 0.15 and is_free:
        schema["x-kubernetes-validations"] = [{"rule": rng.choice(rules)}]
    return schema


def random_object(rng: Random, depth: int = 0) -> Schema:
    """The schema of an object with fields."""
    fields = {name: random_schema(rng, depth + 1) for name in rng.sample(NAMES, rng.randint(1, 3))}
    schema: Schema = {"type": "object", "properties": {NOTE: {"type": "string"}, **fields}}
    for name, field in fields.items():
        if field.get("x-kubernetes-validations"):
            continue  # a default could violate a rule
        if rng.random() < 0.3 and field.get("type") in {"string", "integer", "boolean"}:
            field["default"] = random_value(rng, {**field, "nullable": False})
        elif rng.random() < 0.3:
            schema.setdefault("required", []).append(name)
    return schema


def _string(rng: Random, depth: int) -> Schema:
    schema: Schema = {"type": "string"}
    if rng.random() < 0.5:
        schema["maxLength"] = rng.choice((6, 10, 40))
    if rng.random() < 0.3:
        schema["minLength"] = 1
    return schema


def _integer(rng: Random, depth: int) -> Schema:
    schema: Schema = {"type": "integer", "format": rng.choice(("int32", "int64"))}
    if rng.random() < 0.5:
        schema["minimum"] = rng.choice((0, 1, 5))
    if rng.random() < 0.5:
        schema["maximum"] = rng.choice((10, 50, 100))
    return schema


def _array(rng: Random, depth: int) -> Schema:
    schema: Schema = {"type": "array", "items": random_schema(rng, depth + 1)}
    if rng.random() < 0.4:
        schema["maxItems"] = rng.choice((2, 5))
    if rng.random() < 0.3:
        schema["x-kubernetes-list-type"] = "atomic"
    return schema


def _keyed(rng: Random, depth: int) -> Schema:
    items = random_object(rng, depth + 1)
    items["properties"] = {"name": {"type": "string"}, **items["properties"]}
    items["required"] = [*items.get("required", ()), "name"]
    return {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }


_BUILDERS: dict[str, Callable[[Random, int], Schema]] = {
    "string": _string,
    "enum": lambda rng, _: {"type": "string", "enum": rng.sample(["a", "bb", "ccc", "d"], rng.randint(2, 4))},
    "pattern": lambda rng, _: {"type": "string", "pattern": rng.choice(list(PATTERNS))},
    "integer": _integer,
    "number": lambda rng, _: {"type": "number", **({"maximum": 9.5} if rng.random() < 0.5 else {})},
    "boolean": lambda _, __: {"type": "boolean"},
    "int-or-string": lambda _, __: {"x-kubernetes-int-or-string": True},
    "open": lambda _, __: {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "object": random_object,
    "array": _array,
    "keyed": _keyed,
    "set": lambda rng, _: {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "map": lambda rng, depth: {"type": "object", "additionalProperties": random_schema(rng, depth + 1)},
}


def random_value(rng: Random, schema: Schema) -> Any:  # noqa: PLR0911 - one for each type
    """A value that most often fits a schema; bounds are likely."""
    if schema.get("nullable") and rng.random() < 0.3:
        return None
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return rng.choice((0, 80, "http", "50%"))
    match schema.get("type"):
        case "string":
            return _text(rng, schema)
        case "integer":
            low, high = schema.get("minimum", -3), schema.get("maximum", 3_000_000_000)
            high = high if schema.get("format") == "int64" else min(high, 2**31 - 1)
            return rng.choice((low, high, rng.randint(low, min(high, low + 60)), min(high, low + 7)))
        case "number":
            return rng.choice((0, 1, 2.5, -7.25, schema.get("maximum", 100)))
        case "boolean":
            return rng.random() < 0.5
        case "array":
            return _items(rng, schema)
        case _:
            return _fields(rng, schema)


def _text(rng: Random, schema: Schema) -> str:
    known = PATTERNS.get(schema.get("pattern", ""), TEXTS)
    fitting = [each for each in known if schema.get("minLength", 0) <= len(each) <= schema.get("maxLength", 99)]
    return rng.choice(fitting or ["a"])


def _items(rng: Random, schema: Schema) -> list[Any]:
    count = rng.randint(schema.get("minItems", 0), min(schema.get("maxItems", 3), 3))
    made = [random_value(rng, schema["items"]) for _ in range(count)]
    if schema.get("x-kubernetes-list-type") == "map":
        return [{**item, "name": f"item-{number}"} for number, item in enumerate(made) if item is not None]
    if schema.get("x-kubernetes-list-type") == "set":
        return list(dict.fromkeys(made))
    return made


def _fields(rng: Random, schema: Schema) -> Schema:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return {name: rng.choice((1, "text", [True], {"inner": 2})) for name in rng.sample(NAMES, rng.randint(0, 2))}
    if "additionalProperties" in schema:
        return {
            name: random_value(rng, schema["additionalProperties"]) for name in rng.sample(NAMES, rng.randint(0, 2))
        }
    required = schema.get("required", ())
    return {
        name: random_value(rng, field)
        for name, field in schema["properties"].items()
        if name in required or (name != NOTE and rng.random() < 0.7)
    }


def with_notes(schema: Schema, value: Any, note: str) -> Any:
    """A value with the field `NOTE` in every object that declares it."""
    if isinstance(value, list):
        return [with_notes(schema.get("items", {}), item, note) for item in value]
    if not isinstance(value, dict):
        return value
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    made = {name: with_notes(properties.get(name, others or {}), inner, note) for name, inner in value.items()}
    return made | ({NOTE: note} if NOTE in properties else {})


def nodes(schema: Schema, *, owner: Schema | None = None) -> Iterator[tuple[Schema, Schema | None]]:
    """Every schema inside of one, with the object that has it as a field."""
    yield schema, owner
    for name, field in schema.get("properties", {}).items():
        if name not in {NOTE, "name"}:
            yield from nodes(field, owner=schema)
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield from nodes(schema[keyword])


def changed_schema(rng: Random, schema: Schema) -> tuple[str, Schema]:
    """A copy with one change, or two, and their names."""
    new = copy.deepcopy(schema)
    done: list[str] = []
    wanted = 1 if rng.random() < 0.7 else 2
    while len(done) < wanted:
        name = rng.choice(list(_CHANGES))
        places = [*nodes(new)]
        rng.shuffle(places)
        if any(_CHANGES[name](rng, node, owner) for node, owner in places):
            done.append(name)
    return ", ".join(done), new


def _is(node: Schema, *types: str) -> bool:
    return node.get("type") in types and "enum" not in node


def _set(node: Schema, keyword: str, value: Any) -> bool:
    differs = node.get(keyword) != value
    node[keyword] = value
    return differs


def _drop(node: Schema, *keywords: str) -> bool:
    found = [keyword for keyword in keywords if node.pop(keyword, None) is not None]
    return bool(found)


def _add_field(node: Schema, field: Schema, *, required: bool = False) -> bool:
    if "properties" not in node:
        return False
    node["properties"]["omega"] = field
    if required:
        node["required"] = [*node.get("required", ()), "omega"]
    return True


def _remove_field(rng: Random, node: Schema) -> bool:
    names = [each for each in node.get("properties", ()) if each in NAMES]
    if not names:
        return False
    name = rng.choice(names)
    del node["properties"][name]
    if left := [each for each in node.get("required", ()) if each != name]:
        node["required"] = left
    else:
        node.pop("required", None)
    return True


def _require(rng: Random, node: Schema) -> bool:
    names = [each for each in node.get("properties", ()) if each in NAMES and each not in node.get("required", ())]
    if not names:
        return False
    node["required"] = [*node.get("required", ()), rng.choice(names)]
    return True


def _drop_enum_value(node: Schema) -> bool:
    if len(node.get("enum", ())) < 2 or "default" in node:
        return False
    node["enum"].pop()
    return True


def _retype(node: Schema) -> bool:
    if not _is(node, "string", "integer", "boolean"):
        return False
    new = {"string": "integer", "integer": "string", "boolean": "string"}[node["type"]]
    kept = {name: value for name, value in node.items() if name == "nullable"}
    node.clear()
    node.update({"type": new, **kept})
    return True


def _change_default(node: Schema) -> bool:
    if "default" not in node or not _is(node, "integer", "boolean") or "x-kubernetes-validations" in node:
        return False
    bounds = [each for each in (node.get("minimum"), node.get("maximum"), 7) if each is not None]
    old = node["default"]
    node["default"] = not old if node["type"] == "boolean" else next((each for each in bounds if each != old), old)
    return node["default"] != old


def _add_default(node: Schema, owner: Schema | None) -> bool:
    if owner is None or "default" in node or not _is(node, "boolean"):
        return False
    return _set(node, "default", True)


def _retype_list(rng: Random, node: Schema) -> bool:
    if node.get("type") != "array":
        return False
    if node.get("x-kubernetes-list-type") in {"map", "set"}:
        return _drop(node, "x-kubernetes-list-map-keys") | _set(node, "x-kubernetes-list-type", "atomic")
    if node["items"].get("type") != "string" or node["items"].get("nullable"):
        return False
    return _set(node, "x-kubernetes-list-type", "set")


def _loosen(node: Schema) -> bool:
    if not {"maxLength", "maximum", "maxItems"} & node.keys():
        return False
    for keyword in ("maxLength", "maximum", "maxItems"):
        if keyword in node:
            node[keyword] += 5
    return True


def _tighten(node: Schema) -> bool:
    if "default" in node:
        return False
    if _is(node, "string"):
        return _set(node, "maxLength", min(node.get("maxLength", 99), 5))
    if _is(node, "integer"):
        return _set(node, "maximum", max(node.get("minimum", 0), min(node.get("maximum", 99), 9)))
    return node.get("type") == "array" and _set(node, "maxItems", 1)


def _add_rule(rng: Random, node: Schema) -> bool:
    rules = RULES.get(node.get("type", ""), ())
    known = [each["rule"] for each in node.get("x-kubernetes-validations", ())]
    new = [each for each in rules if each not in known]
    if (
        not new
        or "default" in node
        or "additionalProperties" in node
        or (node["type"] == "object" and "properties" not in node)
    ):
        return False
    node["x-kubernetes-validations"] = [*node.get("x-kubernetes-validations", ()), {"rule": rng.choice(new)}]
    return True


#: Changes by name; each returns whether it applies to a schema, which has an owner if it is the schema of a field.
_CHANGES: dict[str, Callable[[Random, Schema, Schema | None], bool]] = {
    "describe": lambda rng, node, _: _set(node, "description", "another text"),
    "loosen": lambda rng, node, _: _loosen(node),
    "drop limit": lambda rng, node, _: _drop(node, "maxLength", "minLength", "maximum", "minimum", "maxItems"),
    "drop pattern": lambda rng, node, _: _drop(node, "pattern"),
    "drop enum": lambda rng, node, _: _drop(node, "enum"),
    "drop rule": lambda rng, node, _: _drop(node, "x-kubernetes-validations"),
    "drop required": lambda rng, node, _: "name" not in node.get("required", ("name",)) and _drop(node, "required"),
    "add enum value": lambda rng, node, _: "enum" in node and (node["enum"].append("zz") is None),
    "add field": lambda rng, node, _: _add_field(node, random_schema(rng, 2)),
    "add field with default": lambda rng, node, _: _add_field(node, {"type": "integer", "default": 3}),
    "add required field with default": lambda rng, node, _: _add_field(
        node, {"type": "string", "default": "x"}, required=True
    ),
    "widen format": lambda rng, node, _: node.get("format") == "int32" and _set(node, "format", "int64"),
    "add nullable": lambda rng, node, _: "type" in node and _set(node, "nullable", True),
    "open": lambda rng, node, _: "properties" in node and _set(node, "x-kubernetes-preserve-unknown-fields", True),
    "remove field": lambda rng, node, _: _remove_field(rng, node),
    "require": lambda rng, node, _: _require(rng, node),
    "add required field": lambda rng, node, _: _add_field(node, {"type": "string"}, required=True),
    "drop enum value": lambda rng, node, _: _drop_enum_value(node),
    "add enum": lambda rng, node, _: _is(node, "string") and "default" not in node and _set(node, "enum", ["a", "ccc"]),
    "tighten": lambda rng, node, _: _tighten(node),
    "add minimum": lambda rng, node, _: (
        _is(node, "integer") and "default" not in node and _set(node, "minimum", min(6, node.get("maximum", 6)))
    ),
    "add pattern": lambda rng, node, _: (
        _is(node, "string") and "default" not in node and _set(node, "pattern", "^[a-c]+$")
    ),
    "narrow format": lambda rng, node, _: node.get("format") == "int64" and _set(node, "format", "int32"),
    "drop nullable": lambda rng, node, _: _drop(node, "nullable"),
    "retype": lambda rng, node, _: _retype(node),
    "drop default": lambda rng, node, _: _drop(node, "default"),
    "change default": lambda rng, node, _: _change_default(node),
    "add default": lambda rng, node, owner: _add_default(node, owner),
    "retype list": lambda rng, node, _: _retype_list(rng, node),
    "atomic": lambda rng, node, _: "properties" in node and _set(node, "x-kubernetes-map-type", "atomic"),
    "close": lambda rng, node, _: (
        "properties" not in node
        and _drop(node, "x-kubernetes-preserve-unknown-fields")
        and _set(node, "properties", {NOTE: {"type": "string"}})
    ),
    "declare open field": lambda rng, node, _: (
        bool(node.get("x-kubernetes-preserve-unknown-fields"))
        and _set(node, "properties", {"alpha": {"type": "string"}})
    ),
    "add rule": lambda rng, node, _: _add_rule(rng, node),
}
