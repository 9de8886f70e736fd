"""Check that the defaults of a schema are valid for the schema itself.

Guarantees
- `default_problems` finds what kube-apiserver finds, with its messages; fields are checked in the order of their names.
- Fields of a default that its schema does not describe are a problem; `is_pruned` checks one value.
- The input is a structural schema in canonical form: see `schemas.structure.rules`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from msgspec.structs import replace

from steersman.golang.regexp import one_budget
from steersman.objects.field_problems import FieldProblem, invalid
from steersman.schemas.embedded_objects import embedded_problems
from steersman.schemas.structure.rules import is_schema
from steersman.schemas.validation import schema_problems

Schema = Mapping[str, Any]
#: Why a value cannot be metadata; empty if it can.
MetadataCheck = Callable[[Any], str]
#: The problems that the CEL rules of a schema find in a default; called with the schema, the default and its path.
CelCheck = Callable[[Schema, Any, str], list[FieldProblem]]

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_OF_EVERY_OBJECT: Final = frozenset({"apiVersion", "kind", "metadata"})
#: Parts of a schema that do not apply to defaults, only to stored objects.
_NOT_ASKED: Final = frozenset({"x-kubernetes-int-or-string"})
_INDEX: Final = object()


def default_problems(
    schema: Schema, path: str, *, pruned: bool, cel: CelCheck, metadata: MetadataCheck
) -> list[FieldProblem]:
    """The problems of the defaults in a kind's schema. ``pruned``: they may hold no unknown fields."""
    check = _Defaults(pruned=pruned, cel=cel, metadata=metadata)
    with one_budget():
        return list(check.node({**schema, _EMBEDDED: True}, path, (), {}, in_metadata=False))


class _Defaults:
    def __init__(self, *, pruned: bool, cel: CelCheck, metadata: MetadataCheck) -> None:
        self._pruned = pruned
        self._cel = cel
        self._metadata = metadata

    def node(
        self, schema: Schema, path: str, steps: tuple[Any, ...], whole: Schema, *, in_metadata: bool
    ) -> Iterator[FieldProblem]:
        """Check a schema and everything below; ``steps`` lead to it from ``whole``, the object that it is part of."""
        embedded = schema.get(_EMBEDDED)
        if embedded:
            steps, whole, in_metadata = (), schema, False
        if "default" in schema:
            yield from self._default(schema, f"{path}.default", steps, whole, in_metadata=in_metadata)
        items = schema.get("items")
        if items is not None:
            yield from self.node(items, f"{path}.items", (*steps, _INDEX), whole, in_metadata=in_metadata)
        properties: Mapping[str, Schema] | None = schema.get("properties")
        if properties:
            for name in sorted(properties):
                inside = in_metadata or bool(embedded and name in _OF_EVERY_OBJECT)
                yield from self.node(
                    properties[name], f"{path}.properties[{name}]", (*steps, name), whole, in_metadata=inside
                )

    def _default(
        self, schema: Schema, path: str, steps: tuple[Any, ...], whole: Schema, *, in_metadata: bool
    ) -> Iterator[FieldProblem]:
        value = schema["default"]
        if in_metadata:
            found = self._embedded({**whole, _EMBEDDED: True}, _surrounded(value, steps), "")
            if found:
                words = str(found[0]) if len(found) == 1 else f"[{', '.join(map(str, found))}]"
                yield invalid(path, value, f"must result in valid metadata: {words}")
                return
        else:
            if self._pruned and not is_pruned(schema, value):
                yield invalid(path, value, "must not have unknown fields")
            found = self._embedded(schema, value, path)
            if found:
                yield from found
                return
        wrong = [_placed(problem, path) for problem in schema_problems(_asked(schema), value, every_format=True)]
        yield from wrong or self._cel(schema, value, path)

    def _embedded(self, schema: Schema, value: Any, path: str) -> list[FieldProblem]:
        """The problems of embedded objects. For values of the wrong type, only the first is reported."""
        unreadable = next(self._unreadable(schema, value, path), None)
        return [*embedded_problems(schema, value, path)] if unreadable is None else [unreadable]

    def _unreadable(self, schema: Schema | None, value: Any, path: str) -> Iterator[FieldProblem]:
        if schema is None:
            return
        if isinstance(value, list):
            for at, item in enumerate(cast("list[Any]", value)):
                yield from self._unreadable(schema.get("items"), item, f"{path}[{at}]")
        if not isinstance(value, dict):
            return
        members = cast("dict[str, Any]", value)
        known: Mapping[str, Schema] = schema.get("properties") or {}
        additional: Any = schema.get("additionalProperties")
        for name in sorted(members):
            at = f"{path}.{name}" if path else name
            if schema.get(_EMBEDDED) and name in _OF_EVERY_OBJECT:
                yield from self._wrong_type(name, members[name], at)
            if name in known:
                yield from self._unreadable(known[name], members[name], at)
            elif is_schema(additional):
                yield from self._unreadable(additional, members[name], f"{path}[{name}]")

    def _wrong_type(self, name: str, value: Any, path: str) -> Iterator[FieldProblem]:
        if name == "metadata":
            words = self._metadata(value)
            if words:
                yield invalid(path, value, words)
        elif not isinstance(value, str):
            yield invalid(path, value, "must be a string")


def is_pruned(schema: Schema, value: Any) -> bool:
    """Whether a value holds only fields that its schema describes."""
    return not _has_unknown(schema, value, top=bool(schema.get(_EMBEDDED)))


def _has_unknown(schema: Schema | None, value: Any, *, top: bool = False, keeps: bool = False) -> bool:
    """Whether a value holds unknown fields. ``keeps``: an enclosing list preserves them."""
    keeps = keeps or (schema is not None and bool(schema.get(_PRESERVE)))
    if isinstance(value, list):
        items: Schema | None = None if schema is None else schema.get("items")
        if keeps and items is None:
            return False
        return any(_has_unknown(items, item, keeps=keeps) for item in cast("list[Any]", value))
    if not isinstance(value, dict):
        return False
    members = cast("dict[str, Any]", value)
    if schema is None:
        return bool(members) and not keeps
    if top or schema.get(_EMBEDDED):
        members = {name: inner for name, inner in members.items() if name not in _OF_EVERY_OBJECT}
    return any(_is_unknown(schema, name, inner, keeps=keeps) for name, inner in members.items())


def _is_unknown(schema: Schema, name: str, value: Any, *, keeps: bool) -> bool:
    known: Mapping[str, Schema] = schema.get("properties") or {}
    additional: Any = schema.get("additionalProperties")
    if name in known:
        return _has_unknown(known[name], value)
    if additional is None:
        return not keeps
    # A map of anything does not describe its values, so everything inside them is unknown.
    return _has_unknown(cast("Schema", additional) if isinstance(additional, Mapping) else None, value)


def _surrounded(value: Any, steps: tuple[Any, ...]) -> dict[str, Any]:
    """An object that holds a value in its place, plus what every object has."""
    made: Any = copy.deepcopy(value)
    for step in reversed(steps):
        made = cast("Any", [made] if step is _INDEX else {step: made})
    return {"apiVersion": "validation/v1", "kind": "Validation", **made}


def _asked(schema: Any) -> Any:
    """The parts of a schema that apply to a default."""
    if isinstance(schema, Mapping):
        parts = cast("Schema", schema)
        return {name: _below(name, part) for name, part in parts.items() if name not in _NOT_ASKED}
    if isinstance(schema, list):
        return [_asked(part) for part in cast("list[Any]", schema)]
    return schema


def _below(name: str, part: Any) -> Any:
    if name in {"properties", "dependencies"}:
        return {key: _asked(inner) for key, inner in part.items()}
    return _asked(part) if name in {"items", "additionalProperties", "not", "allOf", "anyOf", "oneOf"} else part


def _placed(found: FieldProblem, path: str) -> FieldProblem:
    """A problem with its path in the schema. Problems of several schemas at once are reported for the whole."""
    if found.message.startswith('Invalid value: "": "'):
        return replace(found, path=path)
    return replace(found, path=f"{path}.{found.path.removeprefix('.')}" if found.path else path)
