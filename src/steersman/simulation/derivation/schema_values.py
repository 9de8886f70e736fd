"""Values that a structural schema accepts, the plainest first. Pure: rules in CEL are left to the server.

Guarantees
- The same schema gives the same values.
- Every value is valid by the schema alone: types, enums, bounds, lengths, patterns, formats, list types.
- An example and a default of the schema come before all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias, cast

import msgspec

from steersman.golang.regexp import expression_problem, matching_texts
from steersman.schemas import QUANTITY_PATTERN, validate_tree

Schema: TypeAlias = Mapping[str, Any]

#: How many values of one schema are derived.
_MOST = 8
WORDS = ("alpha", "beta", "gamma", "delta")
_NUMBERS = (1, 2, 3, 0, 5, 10, 100, 1000)
_QUANTITIES = ("1", "2", "500m", "1Gi")
_RESOURCES = ("cpu", "memory")
#: Two values of each format that the server enforces, by its name without dashes.
_FORMATS: dict[str, tuple[str, ...]] = {
    "bsonobjectid": ("507f1f77bcf86cd799439011", "507f1f77bcf86cd799439012"),
    "byte": ("YWxwaGE=", "YmV0YQ=="),
    "cidr": ("10.0.0.0/24", "10.0.1.0/24"),
    "creditcard": ("4111111111111111", "5555555555554444"),
    "date": ("2030-01-01", "2030-06-01"),
    "datetime": ("2030-01-01T00:00:00Z", "2030-06-01T00:00:00Z"),
    "duration": ("1h", "2h"),
    "email": ("alpha@example.com", "beta@example.com"),
    "hexcolor": ("#102030", "#405060"),
    "hostname": ("alpha.example.com", "beta.example.com"),
    "ipv4": ("10.0.0.1", "10.0.0.2"),
    "ipv6": ("fd00::1", "fd00::2"),
    "isbn": ("0306406152", "9780306406157"),
    "isbn10": ("0306406152", "097522980X"),
    "isbn13": ("9780306406157", "9781861972712"),
    "mac": ("00:00:5e:00:53:01", "00:00:5e:00:53:02"),
    "rgbcolor": ("rgb(1,2,3)", "rgb(4,5,6)"),
    "ssn": ("111-22-3333", "222-33-4444"),
    "uri": ("https://alpha.example.com", "https://beta.example.com"),
    "uuid": ("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6ba7b811-9dad-11d1-80b4-00c04fd430c8"),
    "uuid3": ("6fa459ea-ee8a-3ca4-894e-db77e160355e", "6fa459eb-ee8a-3ca4-894e-db77e160355e"),
    "uuid4": ("16fd2706-8baf-433b-82eb-8c7fada847da", "16fd2707-8baf-433b-82eb-8c7fada847da"),
    "uuid5": ("886313e1-3b8a-5372-9b90-0c9aee199e5d", "886313e2-3b8a-5372-9b90-0c9aee199e5d"),
}
#: What a text is likely to be, by the last word of its field: no schema says it, and children are checked for it.
_NAMES: dict[str, tuple[str, ...]] = {
    "schedule": ("0 3 * * *", "30 4 * * *"),
    "cron": ("0 3 * * *", "30 4 * * *"),
    "interval": ("30s", "1m"),
    "timeout": ("30s", "1m"),
    "duration": ("30s", "1m"),
    "url": _FORMATS["uri"],
    "host": _FORMATS["hostname"],
    "hostname": _FORMATS["hostname"],
    "domain": _FORMATS["hostname"],
    "cidr": _FORMATS["cidr"],
    "ip": _FORMATS["ipv4"],
    "email": _FORMATS["email"],
}


def valid_values(schema: Schema, name: str = "") -> list[Any]:
    """Values for a field of this name; empty if none is found."""
    found: dict[bytes, Any] = {}
    for value in _candidates(schema, name):
        key = msgspec.json.encode(value, order="sorted")
        if key not in found and not validate_tree(dict(schema), value):
            found[key] = value
            if len(found) >= _MOST:
                break
    return list(found.values())


def obstacle(schema: Schema, name: str, path: str) -> str:
    """The innermost field that has no value, and why; empty if the schema has one."""
    if valid_values(schema, name):
        return ""
    for part, inner in cast("dict[str, Schema]", schema.get("properties") or {}).items():
        deeper = obstacle(inner, part, f"{path}.{part}") if part in schema.get("required", ()) else ""
        if deeper:
            return deeper
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        deeper = obstacle(schema["items"], name, f"{path}[]")
        if deeper:
            return deeper
    reasons = (
        "pattern",
        "format",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "multipleOf",
        "not",
        "allOf",
        "oneOf",
    )
    shown = ", ".join(f"{reason} {schema[reason]!r}" for reason in reasons if reason in schema)
    return f"{path}: no value is found for {schema.get('type', 'any type')}{f' with {shown}' if shown else ''}"


def _candidates(schema: Schema, name: str) -> Iterator[Any]:
    for keyword in ("example", "default"):
        if keyword in schema:
            yield schema[keyword]
    if schema.get("enum"):
        yield from schema["enum"]
        return
    if schema.get("x-kubernetes-int-or-string"):
        yield from _ints_or_strings(schema)
        return
    match schema.get("type"):
        case "boolean":
            yield from (True, False)
        case "integer" | "number":
            yield from _numbers(schema)
        case "string":
            yield from _texts(schema, name)
        case "array":
            yield from _lists(schema, name)
        case "object":
            yield from _objects(schema, name)
        case _:
            yield from WORDS


def _ints_or_strings(schema: Schema) -> Iterator[Any]:
    if schema.get("pattern") == QUANTITY_PATTERN:
        yield from _QUANTITIES
        return
    yield from _NUMBERS[:2]
    yield from _texts(schema, "") if "pattern" in schema else ("10%", "20%")


def _numbers(schema: Schema) -> Iterator[Any]:
    """Small numbers, then those next to the bounds; multiples if they must be."""
    step = schema.get("multipleOf", 1)
    low, high = schema.get("minimum"), schema.get("maximum")
    near = [low + step * times for times in range(3)] if low is not None else []
    near += [high - step * times for times in range(3)] if high is not None else []
    multiples = [bound // step * step + step * times for bound in near for times in (0, 1)] if near else []
    numbers = [step * number for number in _NUMBERS] if "multipleOf" in schema else list(_NUMBERS)
    yield from (_whole(number) for number in (*numbers, *near, *multiples))


def _whole(number: Any) -> Any:
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _texts(schema: Schema, name: str) -> Iterator[str]:
    shortest = schema.get("minLength", 0)
    form = str(schema.get("format", "")).replace("-", "")
    if form in _FORMATS:
        yield from _FORMATS[form]
    yield from _NAMES.get(_last_word(name), ())
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not expression_problem(pattern):
        yield from islice(matching_texts(pattern, shortest=shortest), 32)
        return
    longest = schema.get("maxLength")
    yield from (word[:longest] for word in WORDS)
    yield from (f"{word}-{'x' * shortest}"[: max(shortest, len(word))] for word in WORDS)


def _last_word(name: str) -> str:
    """The last word of a camel case name, in small letters."""
    start = max((place for place, sign in enumerate(name) if sign.isupper()), default=0)
    return name[start:].lower()


def _lists(schema: Schema, name: str) -> Iterator[list[Any]]:
    items = valid_values(cast("Schema", schema.get("items") or {}), name)
    least = max(1, schema.get("minItems", 0))
    # Sets need different items, so all lists do; if the items run out, they repeat.
    for count in (least, least + 1):
        for start in range(max(1, len(items))):
            turn = items[start:] + items[:start]
            yield [turn[number % len(turn)] for number in range(count)] if turn else []
    yield []


def _objects(schema: Schema, name: str) -> Iterator[dict[str, Any]]:
    if schema.get("x-kubernetes-embedded-resource"):
        yield from ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": word}} for word in WORDS)
        return
    properties = cast("dict[str, Schema]", schema.get("properties") or {})
    if properties:
        yield from _structs(schema, properties)
        return
    more = schema.get("additionalProperties")
    inner = cast("Schema", more) if isinstance(more, dict) else {"type": "string"}
    values = valid_values(inner, name)
    keys = _RESOURCES if inner.get("pattern") == QUANTITY_PATTERN else WORDS
    least = max(1, schema.get("minProperties", 0))
    for count in (least, least + 1):
        for start in range(len(values)):
            turn = values[start:] + values[:start]
            yield {key: turn[number % len(turn)] for number, key in enumerate(_more(keys, count))}
    yield {}


def _more(keys: tuple[str, ...], count: int) -> Iterable[str]:
    return (*keys, *(f"key-{number}" for number in range(count)))[:count]


def _structs(schema: Schema, properties: Mapping[str, Schema]) -> Iterator[dict[str, Any]]:
    """Objects with the required fields alone, then with one optional field each."""
    required = [part for part in properties if part in schema.get("required", ())]
    values = {part: valid_values(properties[part], part) for part in required}
    if all(values.values()):
        for turn in range(_MOST):
            yield {part: each[turn % len(each)] for part, each in values.items()}
        base = {part: each[0] for part, each in values.items()}
        for part, inner in properties.items():
            if part not in base:
                yield from ({**base, part: value} for value in valid_values(inner, part)[:1])
