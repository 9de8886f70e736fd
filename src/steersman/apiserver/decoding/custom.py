"""Custom resources as they are read: fields that their schema does not know are told, and left to pruning.

Guarantees
- Metadata, also those of embedded objects, have their types and nothing unknown in them.
- Findings come as kube-apiserver tells them: what came twice in the order of the text, then unknown metadata, then
  unknown fields in the order of their paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from steersman.apiserver.decoding.careful import CarefulReader, Unreadable, as_pairs
from steersman.apiserver.decoding.fitting import fits
from steersman.apiserver.decoding.shapes import object_meta

Tree = dict[str, Any]
Schema = Mapping[str, Any]
_OF_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})


def read_custom(schema: Schema, tree: Tree) -> list[str]:
    """Set the metadata of a tree right in place and return what a strict reader refuses; `Unreadable` for wrong types."""
    found = _read_metadata(tree, "") if "metadata" in tree else []
    unknown: list[str] = []
    _unknown(schema, tree, "", unknown, root=True)
    embedded: list[str] = []
    _embedded(schema, tree, "", embedded)
    return [f'unknown field "{path}"' for path in (*found, *sorted(unknown), *sorted(embedded))]


def _read_metadata(tree: Tree, path: str) -> list[str]:
    metadata = tree["metadata"]
    if fits(object_meta(), metadata) >= 0:
        return []
    reader = CarefulReader()
    tree["metadata"] = reader.read(as_pairs(metadata), object_meta())
    prefix = f"{path}.metadata" if path else "metadata"
    return [f"{prefix}.{finding.partition(' field ')[2][1:-1]}" for finding in reader.findings]


def _unknown(
    schema: Schema | None, value: Any, path: str, found: list[str], *, root: bool = False, preserved: bool = False
) -> None:
    """Collect the paths that pruning drops; ``preserved``: the value keeps what its schema does not know."""
    preserved = preserved or bool(schema and schema.get("x-kubernetes-preserve-unknown-fields"))
    if isinstance(value, list):
        items: Schema | None = schema.get("items") if schema is not None else None
        for at, item in enumerate(cast("list[Any]", value)):
            if items is not None or not preserved:
                _unknown(items, item, f"{path}[{at}]", found, preserved=preserved)
        return
    if not isinstance(value, dict):
        return
    schema = schema if schema is not None else {}
    properties: Schema = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    whole = root or schema.get("x-kubernetes-embedded-resource")
    for name, inner in cast("Tree", value).items():
        here = f"{path}.{name}" if path else name
        if whole and name in _OF_EVERY_OBJECT:
            continue
        below = properties.get(name, additional)
        if below is not None:
            _unknown(cast("Schema", below) if isinstance(below, Mapping) else None, inner, here, found)
        elif not preserved:
            found.append(here)


def _embedded(schema: Schema, value: Any, path: str, found: list[str]) -> None:
    """Set the metadata of embedded objects right, and collect what is unknown in them."""
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, Mapping):
            for at, item in enumerate(cast("list[Any]", value)):
                _embedded(cast("Schema", items), item, f"{path}[{at}]", found)
        return
    if not isinstance(value, dict):
        return
    members = cast("Tree", value)
    if schema.get("x-kubernetes-embedded-resource"):
        _embedded_object(members, path, found)
    properties: Schema = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    for name, inner in members.items():
        below = properties.get(name, additional)
        if isinstance(below, Mapping):
            _embedded(cast("Schema", below), inner, f"{path}.{name}" if path else name, found)


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
