"""The difference between a live object and a declared child: as a merge patch, as an overwrite, and fields to remove. Pure.

Guarantees
- Equivalent values are equal: spellings of quantities, the order of lists that merge, and ``stringData`` and its encoded form
  make no difference.
- A field that a child does not mention is not in the patch. A null is, if the live object has the field.
- An overwrite has only what the child mentions, and what belongs to others: identity, owners, finalizers, status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import msgspec

from steersman.objects import SERVER_METADATA
from steersman.patches import MergeSchema, is_subset

Tree: TypeAlias = dict[str, Any]
#: Steps into a tree: the name of a field, or the ``name`` of a list item.
Path: TypeAlias = tuple["str | ItemNamed", ...]

#: The metadata of a live object that an overwrite keeps.
_KEPT_METADATA = frozenset({"uid", "resourceVersion", "ownerReferences", "finalizers"})


class ItemNamed(str):
    """The list item with this name."""

    __slots__ = ()


def merge_patch_toward(intent: Tree, live: Tree, schema: MergeSchema | None) -> Tree:
    """The smallest merge patch that gives a live object every value of an intent; empty if it has them all."""
    own = {name: value for name, value in intent.items() if name not in {"apiVersion", "kind", "metadata"}}
    metadata: Tree = intent.get("metadata") or {}
    wanted = own | {"metadata": _merged_metadata(metadata, live.get("metadata") or {})}
    identity = {name: intent.get(name) for name in ("apiVersion", "kind")}
    if not _has_null(wanted) and is_subset(identity | wanted, identity | live, schema):
        return {}
    return _patch(wanted, live, schema)


def _merged_metadata(metadata: Tree, live: Tree) -> Tree:
    """The metadata to send. A merge patch replaces lists, so owners and finalizers of other writers are included."""
    wanted = {name: value for name, value in metadata.items() if name not in {"name", "namespace"}}
    references: list[Tree] = live.get("ownerReferences") or []
    if own := wanted.get("ownerReferences"):
        uids = {reference.get("uid") for reference in own}
        wanted["ownerReferences"] = [*(reference for reference in references if reference.get("uid") not in uids), *own]
    present: list[str] = live.get("finalizers") or []
    if names := wanted.get("finalizers"):
        wanted["finalizers"] = [*present, *(name for name in names if name not in present)]
    return wanted


def overwrite_of(intent: Tree, live: Tree, marks: Mapping[str, Mapping[str, str]]) -> Tree:
    """The object that replaces a live one. ``marks`` are the labels and annotations to keep, unless the intent has them."""
    own, _ = without_nulls(intent)
    present: Tree = live.get("metadata") or {}
    metadata = {**present, **own["metadata"]}
    metadata = {name: metadata[name] for name in metadata if name in own["metadata"] or name in _KEPT_METADATA}
    metadata |= _merged_metadata(own["metadata"], present)
    for place, kept in marks.items():
        if kept:
            metadata[place] = {**kept, **(metadata.get(place) or {})}
    status = {"status": live["status"]} if "status" in live else {}
    return {**status, **own, "metadata": metadata}


def content_of(tree: Tree) -> bytes:
    """What the authors of an object write, encoded in a fixed order: without its status and the server's own metadata."""
    metadata = {name: value for name, value in tree["metadata"].items() if name not in SERVER_METADATA}
    rest = {name: value for name, value in tree.items() if name != "status"}
    return msgspec.json.encode(rest | {"metadata": metadata}, order="deterministic")


def _patch(intent: Mapping[str, Any], live: Mapping[str, Any], schema: MergeSchema | None) -> Tree:
    patch: Tree = {}
    for name, value in intent.items():
        place = schema.field(name) if schema is not None else None
        there = live.get(name)
        if value is None:
            if there is not None:
                patch[name] = None
        elif isinstance(value, dict) and isinstance(there, dict) and not (place is not None and place.is_atomic_map):
            inner = _patch(cast("Tree", value), cast("Tree", there), place)
            if inner:
                patch[name] = inner
        elif not is_subset({name: value}, live, schema):
            patch[name] = value
    return patch


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(member is None or _has_null(member) for member in cast("Tree", value).values())
    return False


def without_nulls(tree: Tree) -> tuple[Tree, tuple[Path, ...]]:
    """A tree without its nulls, and their paths: server-side apply would store some nulls as empty values."""
    paths: list[Path] = []
    return cast("Tree", _stripped(tree, (), paths)), tuple(paths)


def _stripped(value: Any, path: Path, paths: list[Path]) -> Any:
    if isinstance(value, dict):
        kept: Tree = {}
        for name, inner in cast("Tree", value).items():
            if inner is None:
                paths.append((*path, name))
            else:
                kept[name] = _stripped(inner, (*path, name), paths)
        return kept
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if not all(isinstance(item, dict) and "name" in item for item in items):
            return items
        return [_stripped(item, (*path, ItemNamed(item["name"])), paths) for item in items]
    return value


def parse_path(text: str) -> Path:
    """Parse ``spec.paused``, or a JSON pointer for names with dots: ``/metadata/annotations/example.com~1note``."""
    if text.startswith("/"):
        return tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))
    return tuple(text.split("."))


def find(tree: Tree, path: Path) -> tuple[list[str | int], Any] | None:
    """Resolve a path in a live tree: the steps of a JSON pointer, and the value there; None if the path does not exist."""
    steps: list[str | int] = []
    place: Any = tree
    for step in path:
        if isinstance(step, ItemNamed):
            index = _index_named(place, step)
            if index is None:
                return None
            steps.append(index)
            place = place[index]
        elif isinstance(place, dict) and cast("Tree", place).get(step) is not None:
            steps.append(step)
            place = cast("Tree", place)[step]
        else:
            return None
    return steps, place


def _index_named(items: Any, name: str) -> int | None:
    if not isinstance(items, list):
        return None
    for index, item in enumerate(cast("list[Any]", items)):
        if isinstance(item, dict) and cast("Tree", item).get("name") == name:
            return index
    return None
