"""Fields of custom resources: those outside the schema are found, and left to pruning.

Guarantees
- Metadata, also of embedded objects, has the right types and no unknown fields.
- Findings have kube-apiserver's order: first unknown metadata, then unknown fields sorted by path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from steersman.apiserver.go_types.reader import Unreadable
from steersman.apiserver.go_types.shapes import object_meta
from steersman.apiserver.go_types.text import read_part
from steersman.apiserver.registry.definition import Tree

Schema = Mapping[str, Any]
#: The kinds of fields whose empty values decoding drops, by their type in a tree.
_EMPTY = {list: "list", dict: "map"}
_OF_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})
#: The maximum total length of collected paths, except the last one.
_PATHS_LENGTH = 1024 * 1024


def read_fields(schema: Schema, tree: Tree, *, has_form: bool) -> list[str]:
    """Normalize the metadata of a tree, in place, and return what strict decoding rejects. Raises `Unreadable`.

    ``has_form`` says that the rest of the tree has the form of its schema.
    """
    found = _read_metadata(tree, "") if "metadata" in tree else []
    if has_form:
        return [f'unknown field "{path}"' for path in found]
    unknown = _Paths()
    _unknown(schema, tree, [], unknown, root=True)
    embedded: list[str] = []
    _embedded(schema, tree, [], embedded)
    return [f'unknown field "{path}"' for path in (*found, *unknown.ordered(), *sorted(embedded))]


class _Paths:
    """The reported paths, sorted; the first ones found if there are too many."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._left = _PATHS_LENGTH

    def add(self, path: list[str], name: str = "") -> None:
        """Add a field."""
        if self._left > 0:
            place = "".join(path)
            self._found.append(f"{place}.{name}" if place and name else place or name)
            self._left -= len(self._found[-1])

    def ordered(self) -> list[str]:
        """All added paths, sorted."""
        return sorted(self._found)


def _step(path: list[str], name: str) -> str:
    return f".{name}" if path else name


def _without_empty(metadata: Any) -> Any:
    """Metadata without empty lists and maps, as decoding makes it: a patch that removes the last finalizer leaves one."""
    if not isinstance(metadata, dict):
        return metadata
    members, fields = cast("Tree", metadata), object_meta().fields
    empty = [
        name
        for name, value in members.items()
        if not value
        and type(value) in _EMPTY
        and (place := fields.get(name)) is not None
        and place.omitted
        and place.shape.kind == _EMPTY[type(value)]
    ]
    return {name: value for name, value in members.items() if name not in empty} if empty else members


def _read_metadata(tree: Tree, path: str) -> list[str]:
    tree["metadata"], findings = read_part(_without_empty(tree["metadata"]), object_meta())
    if not findings:
        return []
    prefix = f"{path}.metadata" if path else "metadata"
    return [f"{prefix}.{finding.partition(' field ')[2][1:-1]}" for finding in findings]


def _unknown(
    schema: Schema | None, value: Any, path: list[str], found: _Paths, *, root: bool = False, preserved: bool = False
) -> None:
    """Collect the paths that pruning drops; ``preserved``: the value keeps fields outside its schema."""
    preserved = preserved or bool(schema and schema.get("x-kubernetes-preserve-unknown-fields"))
    if isinstance(value, list):
        items: Schema | None = schema.get("items") if schema is not None else None
        for at, item in enumerate(cast("list[Any]", value)):
            if isinstance(item, (dict, list)) and (items is not None or not preserved):
                path.append(f"[{at}]")
                _unknown(items, item, path, found, preserved=preserved)
                path.pop()
        return
    if not isinstance(value, dict):
        return
    schema = schema if schema is not None else {}
    properties: Schema = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    whole = root or schema.get("x-kubernetes-embedded-resource")
    for name, inner in cast("Tree", value).items():
        if whole and name in _OF_EVERY_OBJECT:
            continue
        below = properties.get(name, additional)
        if below is None:
            if not preserved:
                found.add(path, name)
        elif isinstance(inner, (dict, list)):
            path.append(_step(path, name))
            _unknown(cast("Schema", below) if isinstance(below, Mapping) else None, inner, path, found)
            path.pop()


def _embedded(schema: Schema, value: Any, path: list[str], found: list[str]) -> None:
    """Normalize the metadata of embedded objects, and collect unknown fields in it."""
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, Mapping):
            for at, item in enumerate(cast("list[Any]", value)):
                if isinstance(item, (dict, list)):
                    path.append(f"[{at}]")
                    _embedded(cast("Schema", items), item, path, found)
                    path.pop()
        return
    if not isinstance(value, dict):
        return
    members = cast("Tree", value)
    if schema.get("x-kubernetes-embedded-resource"):
        _embedded_object(members, "".join(path), found)
    properties: Schema = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    for name, inner in members.items():
        below = properties.get(name, additional)
        if isinstance(below, Mapping) and isinstance(inner, (dict, list)):
            path.append(_step(path, name))
            _embedded(cast("Schema", below), inner, path, found)
            path.pop()


def _embedded_object(members: Tree, path: str, found: list[str]) -> None:
    for name in ("apiVersion", "kind"):
        if name in members and not isinstance(members[name], str):
            shown = msgspec.json.encode(members[name]).decode()
            raise Unreadable(f"{path}.{name}: Invalid value: {shown}: must be a string")
    if "metadata" in members:
        shown = msgspec.json.encode(members["metadata"]).decode()
        try:
            found += _read_metadata(members, path)
        except Unreadable as error:
            raise Unreadable(f"{path}.metadata: Invalid value: {shown}: {error}") from None
