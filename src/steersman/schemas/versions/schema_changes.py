"""What a new schema refuses, prunes or means differently than the one that it replaces. Pure.

Guarantees
- A schema without a change here accepts every value that the old one accepted, keeps all of its fields, and gives it the
  same defaults. Server-side apply merges it in the same way.
- Only differences count: what both schemas refuse is no change.
- A keyword that this module does not know is a change as soon as it differs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

import msgspec

from steersman.cel import enforced_format
from steersman.schemas.validation import schema_problems

Schema = Mapping[str, Any]

_KEEP: Final = "keep the old schema, or make the change in a new version with a conversion"
_DEFAULT: Final = "keep the default, or give it to a new field"
_TYPE_META: Final = frozenset({"apiVersion", "kind", "metadata"})
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean", "int-or-string"})
_LEAST: Final = ("minLength", "minItems", "minProperties")
_MOST: Final = ("maxLength", "maxItems", "maxProperties")
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf", "not")
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
#: Formats that accept every value of another one.
_WIDER: Final = frozenset({("int32", "int64"), ("float", "double")})
#: What says nothing about values.
_WORDS: Final = frozenset({"description", "title", "example", "externalDocs", "$schema", "id"})
#: What this module compares.
_COMPARED: Final = frozenset(
    {
        *("type", "format", "nullable", "default", "enum", "pattern", "multipleOf"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *(*_LEAST, *_MOST, *_JUNCTORS),
        *("properties", "required", "items", "additionalProperties"),
        *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"),
        *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"),
        "x-kubernetes-validations",
    }
)


class SchemaChange(NamedTuple):
    """One change that breaks objects or clients: what, why it matters, and what to do."""

    path: str
    what: str
    reason: str
    advice: str = _KEEP


class _Place(NamedTuple):
    """A place in a schema."""

    path: str = ""
    #: The innermost list around it whose items have no keys: the server cannot tell which of its items are unchanged.
    keyless: str = ""

    def field(self, name: str) -> _Place:
        return self._replace(path=f"{self.path}.{name}" if self.path else name)

    def items(self, schema: Schema) -> _Place:
        keyed = schema.get("x-kubernetes-list-type") == "map"
        return _Place(f"{self.path}[]", self.keyless or ("" if keyed else self.path))

    def values(self) -> _Place:
        return self._replace(path=f"{self.path}{{}}")

    def refused_values(self) -> str:
        """What follows from a narrower schema of this value: ratcheting tolerates it only where it is unchanged."""
        if self.keyless:
            return (
                f"clients cannot write such a value any more, and an object that has one cannot change {self.keyless}"
            )
        return "clients cannot write such a value any more; the server tolerates a stored one until it changes"

    def refused_objects(self, which: str = "such an object", stored: str = "a stored one") -> str:
        """What follows from a constraint on the whole object at this place."""
        if not self.path:
            return f"the server refuses every write of {which}, also of its status"
        return f"clients cannot write {which} any more, and {stored} cannot change {self.keyless or self.path}"


def schema_changes(old: Schema, new: Schema) -> list[SchemaChange]:
    """The changes that break stored objects or clients, without the fields that the new schema removes."""
    return [*_changes(old, new, _Place())]


def _changes(old: Schema, new: Schema, at: _Place) -> Iterator[SchemaChange]:
    was, now = type_of(old), type_of(new)
    if was != now and not (now == "map" and _holds_nothing(old)):
        reason = "clients read and write the old type, and stored values have it"
        yield SchemaChange(at.path, f"type {now} instead of {was}", reason)
        return
    refused = at.refused_objects() if was in {"object", "map"} else at.refused_values()
    for what in _narrowed(old, new, was):
        yield SchemaChange(at.path, what, refused)
    yield from _merged_otherwise(old, new, at)
    for rule in _new_rules(old, new):
        advice = "also accept the old values in the rule, or add a version"
        yield SchemaChange(at.path, f"new rule {_cut(rule, 80)}", refused, advice)
    if bool(old.get("x-kubernetes-embedded-resource")) != bool(new.get("x-kubernetes-embedded-resource")):
        yield SchemaChange(
            at.path, "x-kubernetes-embedded-resource changed", "the server checks and prunes metadata differently"
        )
    for keyword in sorted((old.keys() | new.keys()) - _COMPARED - _WORDS):
        if old.get(keyword) != new.get(keyword):
            yield SchemaChange(
                at.path, f"{keyword} changed", "its effect on stored objects is unknown", "compare both schemas"
            )
    yield from _below(old, new, at)


def _below(old: Schema, new: Schema, at: _Place) -> Iterator[SchemaChange]:
    """The changes of fields, items and values."""
    yield from _required_changes(old, new, at)
    yield from _field_changes(old, new, at)
    inner, others = schema_of_values(old), schema_of_values(new)
    if inner is not None and others is not None:
        yield from _default_changes(inner, others, at.values(), always_set=False)
        yield from _changes(inner, others, at.values())
    if "items" in old and "items" in new:
        yield from _default_changes(old["items"], new["items"], at.items(old), always_set=False)
        yield from _changes(old["items"], new["items"], at.items(old))


def _field_changes(old: Schema, new: Schema, at: _Place) -> Iterator[SchemaChange]:
    ours, theirs = _properties(old), _properties(new)
    required: list[str] = old.get("required") or []
    is_open = bool(old.get("x-kubernetes-preserve-unknown-fields"))
    for name, field in theirs.items():
        place = at.field(name)
        if name in ours:
            yield from _default_changes(ours[name], field, place, always_set=name in required)
            yield from _changes(ours[name], field, place)
        elif is_open and (type_of(field) != "any" or field.keys() - _WORDS - {"x-kubernetes-preserve-unknown-fields"}):
            reason = "stored objects may have the field already, with any value; now it must fit the schema"
            yield SchemaChange(place.path, "new field among undeclared ones", reason)
        elif "default" in field and _may_refuse(new, name):
            reason = "the server adds the default to stored objects, which may then violate maxProperties, anyOf, oneOf or not"
            yield SchemaChange(place.path, "new field with a default", reason, "declare it without a default")
    for name, field in ours.items():
        if name not in theirs and new.get("x-kubernetes-preserve-unknown-fields"):
            yield from _undeclared(field, at.field(name))


def _undeclared(old: Schema, at: _Place) -> Iterator[SchemaChange]:
    """What a value in an open object loses with its schema: its defaults, and how server-side apply merges it."""
    yield from _default_changes(old, {}, at, always_set=False)
    yield from _merged_otherwise(old, {}, at)
    for name, field in _properties(old).items():
        yield from _undeclared(field, at.field(name))
    if (values := schema_of_values(old)) is not None:
        yield from _undeclared(values, at.values())
    if "items" in old:
        yield from _undeclared(old["items"], at.items(old))


def _may_refuse(schema: Schema, name: str) -> bool:
    """Whether an object may become invalid because it gets a field."""
    return "maxProperties" in schema or any(f"'{name}'" in repr(schema.get(each)) for each in _JUNCTORS)


def _required_changes(old: Schema, new: Schema, at: _Place) -> Iterator[SchemaChange]:
    before: list[str] = old.get("required") or []
    whole = not at.path or bool(new.get("x-kubernetes-embedded-resource"))
    for name in new.get("required") or ():
        field = _properties(new).get(name) or {}
        if name in before or field.get("default") is not None or (whole and name in _TYPE_META):
            continue
        what = "now required" if name in _properties(old) else "new required field without a default"
        reason = at.refused_objects("an object without it", "one that lacks it")
        yield SchemaChange(at.field(name).path, what, reason, "give it a default, or make it optional")


def _default_changes(old: Schema, new: Schema, at: _Place, *, always_set: bool) -> Iterator[SchemaChange]:
    """The change of a default. ``always_set`` is True if every object has the field anyway."""
    before, after = old.get("default"), new.get("default")
    if before == after and type(before) is type(after):
        if after is not None and new.get("nullable") and not old.get("nullable"):
            yield SchemaChange(
                at.path, "now nullable", "a null of a client stays null; before, the default replaced it", _DEFAULT
            )
        return
    if before is None:
        if not always_set:
            what, reason = (
                f"new default {_shown(after)}",
                "stored objects without the field get it: their meaning changes",
            )
            yield SchemaChange(at.path, what, reason, _DEFAULT)
        return
    what = "no default any more" if after is None else f"default {_shown(after)} instead of {_shown(before)}"
    reason = f"objects that rely on {_shown(before)} change their meaning; those stored with it keep it"
    yield SchemaChange(at.path, what, reason, _DEFAULT)


def _narrowed(old: Schema, new: Schema, kind: str) -> Iterator[str]:
    """The keywords of one value by which the new schema accepts less."""
    if old.get("nullable") and not new.get("nullable"):
        yield "no longer nullable"
    if kind in _SCALARS and old.get("enum"):
        # All values are known: ask the new schema about each of them.
        checked = {**new, "nullable": True}
        if lost := [value for value in old["enum"] if schema_problems(checked, value)]:
            yield f"no longer accepts {', '.join(map(_shown, lost))}"
        return
    if new.get("enum") and new["enum"] != old.get("enum"):
        yield f"accepts only {', '.join(map(_shown, new['enum']))}"
    yield from _narrowed_numbers(old, new, kind)
    pattern = new.get("pattern")
    if pattern and pattern != old.get("pattern"):
        yield _limit("pattern", old, new)
    types = ("integer", "string") if kind == "int-or-string" else (kind,)
    before, after = (enforced_format(types, each.get("format") or "") for each in (old, new))
    if after not in {"", "double", before} and (before, after) not in _WIDER:
        yield f"format {after} {f'instead of {before}' if before else 'added'}"
    for keyword in _JUNCTORS:
        before, after = (_junctor(each, keyword) for each in (old, new))
        if after and after != before:
            yield f"{keyword} {'changed' if before else 'added'}"


def _narrowed_numbers(old: Schema, new: Schema, kind: str) -> Iterator[str]:
    """The bounds, lengths and counts by which the new schema accepts less."""
    for keyword in _LEAST:
        if (new.get(keyword) or 0) > (old.get(keyword) or 0):
            yield _limit(keyword, old, new)
    for keyword in _MOST:
        if new.get(keyword) is not None and (old.get(keyword) is None or new[keyword] < old[keyword]):
            yield _limit(keyword, old, new)
    if kind not in {"integer", "number", "int-or-string"}:
        return
    for keyword, exclusive, sign in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        if new.get(keyword) is None:
            continue
        after = new[keyword], bool(new.get(exclusive))
        if old.get(keyword) is None or _is_tighter((old[keyword], bool(old.get(exclusive))), after, sign, kind):
            yield _limit(keyword, old, new, " (exclusive)" if after[1] else "")
    divisor = new.get("multipleOf")
    if divisor is not None and not _divides(divisor, old.get("multipleOf")):
        yield _limit("multipleOf", old, new)


def _is_tighter(before: tuple[float, bool], after: tuple[float, bool], sign: int, kind: str) -> bool:
    """Whether a bound excludes more. The server compares a whole number with the whole part of a bound, see `numbers`."""

    def whole(bound: tuple[float, bool]) -> float:
        return sign * math.trunc(bound[0]) + bound[1]

    if whole(after) > whole(before):
        return True
    return kind != "integer" and (sign * after[0], after[1]) > (sign * before[0], before[1])


def _divides(divisor: float, multiple: float | None) -> bool:
    if multiple is None or divisor == multiple:
        return divisor == multiple
    return isinstance(divisor, int) and isinstance(multiple, int) and multiple % divisor == 0


def _limit(keyword: str, old: Schema, new: Schema, more: str = "") -> str:
    before = old.get(keyword)
    instead = "added" if before is None else f"instead of {_cut(str(before), 60)}"
    return f"{keyword} {_cut(str(new[keyword]), 60)}{more} {instead}"


def _merged_otherwise(old: Schema, new: Schema, at: _Place) -> Iterator[SchemaChange]:
    """The changes of how server-side apply merges a value."""
    for what in _apply_keywords(old, new):
        yield SchemaChange(
            at.path, what, "server-side apply merges and owns items differently, so managers overwrite each other"
        )


def _apply_keywords(old: Schema, new: Schema) -> Iterator[str]:
    for keyword, usual in (("x-kubernetes-list-type", "atomic"), ("x-kubernetes-map-type", "granular")):
        before, after = old.get(keyword) or usual, new.get(keyword) or usual
        if before != after:
            yield f"{keyword} {after} instead of {before}"
    keys: list[str] = old.get("x-kubernetes-list-map-keys") or []
    others: list[str] = new.get("x-kubernetes-list-map-keys") or []
    if keys and others and set(keys) != set(others):
        yield f"x-kubernetes-list-map-keys {', '.join(others)} instead of {', '.join(keys)}"


def _new_rules(old: Schema, new: Schema) -> list[str]:
    known = {_identity(rule) for rule in old.get("x-kubernetes-validations") or ()}
    return [rule["rule"] for rule in new.get("x-kubernetes-validations") or () if _identity(rule) not in known]


def _identity(rule: Schema) -> tuple[str, bool]:
    return rule["rule"], bool(rule.get("optionalOldSelf"))


def type_of(schema: Schema) -> str:
    """The type of a value as a word: a JSON type, ``map``, ``int-or-string`` or ``any``."""
    if schema.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    if schema.get("additionalProperties"):
        return "map"
    return schema.get("type") or "any"


def schema_of_values(schema: Schema) -> Schema | None:
    """The schema of a map's values; None if it is no map."""
    found: Any = schema.get("additionalProperties")
    if found is True:
        return {"x-kubernetes-preserve-unknown-fields": True}
    return cast("Schema", found) or None


def _holds_nothing(schema: Schema) -> bool:
    """Whether the server prunes every field of an object."""
    return (
        type_of(schema) == "object"
        and not _properties(schema)
        and not schema.get("x-kubernetes-preserve-unknown-fields")
    )


def _properties(schema: Schema) -> dict[str, Schema]:
    return schema.get("properties") or {}


def _junctor(schema: Schema, keyword: str) -> Any:
    found = schema.get(keyword)
    return None if schema.get("x-kubernetes-int-or-string") and found == _INT_OR_STRING else _without_words(found)


def _without_words(value: Any) -> Any:
    if isinstance(value, dict):
        tree = cast("dict[str, Any]", value)
        return {
            name: _without_words(inner) for name, inner in tree.items() if name not in _WORDS or isinstance(inner, dict)
        }
    return [_without_words(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def _shown(value: Any) -> str:
    return _cut(msgspec.json.encode(value).decode(), 40)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}..."
