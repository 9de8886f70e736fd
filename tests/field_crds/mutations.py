"""Objects made invalid, or at least odd, in one place each. Deterministic: chance is given."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random  # noqa: TID251 - seeded, and the run prints the seed
from typing import Any

from field_crds.texts import text_against

Tree = dict[str, Any]


@dataclass(slots=True)
class Place:
    """A value in an object: what holds it, under which name, and what its schema is."""

    holder: Any
    name: Any
    schema: Tree
    required: bool

    @property
    def value(self) -> Any:
        """What is there."""
        return self.holder[self.name]

    @value.setter
    def value(self, value: Any) -> None:
        self.holder[self.name] = value


#: Changes one place; whether it could.
Change = Callable[[Place, Random], bool]


def mutated(tree: Tree, schema: Tree, change: Change, chance: Random) -> Tree | None:
    """A copy with one place changed; None if there is no such place."""
    copied = copy.deepcopy(tree)
    places = list(_places(copied, schema))
    chance.shuffle(places)
    return copied if any(change(place, chance) for place in places) else None


def _places(value: Any, schema: Tree) -> Iterator[Place]:
    if isinstance(value, dict):
        required = set(schema.get("required", ()))
        for name in sorted(value):
            inner = schema.get("properties", {}).get(name)
            if inner is None:
                more = schema.get("additionalProperties")
                inner = more if isinstance(more, dict) else None
            if inner is not None and name not in {"apiVersion", "kind", "metadata"}:
                yield Place(value, name, inner, name in required)
                yield from _places(value[name], inner)
    elif isinstance(value, list):
        for index in range(len(value)):
            yield Place(value, index, schema["items"], required=False)
            yield from _places(value[index], schema["items"])


def without_required(place: Place, chance: Random) -> bool:
    """Leave out what is required."""
    if not place.required:
        return False
    del place.holder[place.name]
    return True


def of_another_type(place: Place, chance: Random) -> bool:
    """Put something of another type."""
    others = {
        "string": [7, True, {"a": 1}, ["a"]],
        "integer": ["7", 7.5, {"a": 1}, True],
        "number": ["7", {"a": 1}],
        "boolean": ["true", 1],
        "object": ["text", 7, ["a"]],
        "array": ["text", {"a": 1}, 7],
    }
    choices = others.get(place.schema.get("type", ""))
    if choices is None:
        return False
    place.value = chance.choice(choices)
    return True


def beyond_enum(place: Place, chance: Random) -> bool:
    """Put a value that is not in the list."""
    if "enum" not in place.schema:
        return False
    place.value = "Neither" if isinstance(place.schema["enum"][0], str) else 4711
    return True


def against_pattern(place: Place, chance: Random) -> bool:
    """Put a text that the pattern refuses."""
    if "pattern" not in place.schema or not isinstance(place.value, str):
        return False
    bad = text_against(place.schema, chance)
    if bad is None:
        return False
    place.value = bad
    return True


def against_format(place: Place, chance: Random) -> bool:
    """Put a text that is not in the format."""
    if "format" not in place.schema or not isinstance(place.value, str):
        return False
    place.value = "not of this format!"
    return True


def out_of_range(place: Place, chance: Random) -> bool:
    """Make a text, list, map or number too short, too long, too small or too large."""
    schema = place.schema
    match place.value:
        case str() if "maxLength" in schema and schema["maxLength"] < 5000:
            place.value = "a" * (schema["maxLength"] + 1)
        case str() if schema.get("minLength", 0) > 0:
            place.value = ""
        case bool():
            return False
        case int() | float() if "minimum" in schema:
            place.value = schema["minimum"] - 1
        case int() | float() if "maximum" in schema:
            place.value = schema["maximum"] + 1
        case list() if "maxItems" in schema and place.value and schema["maxItems"] < 200:
            place.value = [copy.deepcopy(place.value[0]) for _ in range(schema["maxItems"] + 1)]
        case list() if schema.get("minItems", 0) > 0:
            place.value = []
        case dict() if schema.get("minProperties", 0) > 0 and not schema.get("required"):
            place.value = {}
        case _:
            return False
    return True


def null(place: Place, chance: Random) -> bool:
    """Put null."""
    place.value = None
    return True


def twice(place: Place, chance: Random) -> bool:
    """Put an item of a set or map a second time."""
    if place.schema.get("x-kubernetes-list-type") not in {"set", "map"} or not place.value:
        return False
    place.value = [*place.value, copy.deepcopy(place.value[0])]
    return True


def unknown(place: Place, chance: Random) -> bool:
    """Add an unknown field."""
    if not isinstance(place.value, dict) or "properties" not in place.schema:
        return False
    place.value["nobodyKnows"] = {"me": 1}
    return True


def dropped(place: Place, chance: Random) -> bool:
    """Leave out what may be left out."""
    if place.required or not isinstance(place.holder, dict):
        return False
    del place.holder[place.name]
    return True


def changed(place: Place, chance: Random) -> bool:
    """Put another value of the same sort, for better or worse."""
    match place.value:
        case bool():
            place.value = not place.value
        case int():
            place.value += 1
        case str() if "enum" in place.schema and len(place.schema["enum"]) > 1:
            place.value = chance.choice([each for each in place.schema["enum"] if each != place.value])
        case str() if "format" not in place.schema:
            place.value += "x"
        case _:
            return False
    return True


#: By name, what makes an object odd.
MUTATIONS: dict[str, Change] = {
    "without a required field": without_required,
    "of another type": of_another_type,
    "beyond an enum": beyond_enum,
    "against a pattern": against_pattern,
    "against a format": against_format,
    "out of range": out_of_range,
    "null": null,
    "twice in a list": twice,
    "unknown": unknown,
}
#: By name, how an object is edited.
EDITS: dict[str, Change] = {"changed": changed, "dropped": dropped, "null": null}
