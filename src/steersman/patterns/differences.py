"""What of a live object differs from what a child says of it, as a merge patch, and which fields it wants to be absent. Pure.

Guarantees
- Values that mean the same are the same: notations of quantities, orders of lists that merge, ``stringData`` and what it
  becomes make no difference.
- A field that a child does not mention is not in the patch. A null is, if the field is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from steersman.patches import MergeSchema, is_subset

Tree: TypeAlias = dict[str, Any]
#: Steps into a tree: a name, or for an item of a list what its ``name`` is.
Path: TypeAlias = tuple["str | ItemNamed", ...]


class ItemNamed(str):
    """The item of a list that has this name."""

    __slots__ = ()


def merge_patch_towards(intent: Tree, live: Tree, schema: MergeSchema | None) -> Tree:
    """The smallest merge patch that makes a live object hold every value of an intent; empty if it does."""
    own = {name: value for name, value in intent.items() if name not in {"apiVersion", "kind", "metadata"}}
    metadata: Tree = intent.get("metadata") or {}
    wanted = own | {"metadata": _merged_metadata(metadata, live.get("metadata") or {})}
    identity = {name: intent.get(name) for name in ("apiVersion", "kind")}
    if not _has_null(wanted) and is_subset(identity | wanted, identity | live, schema):
        return {}
    return _patch(wanted, live, schema)


def _merged_metadata(metadata: Tree, live: Tree) -> Tree:
    """The metadata to ask for: a merge patch replaces lists, so that others' owners and finalizers are joined."""
    wanted = {name: value for name, value in metadata.items() if name not in {"name", "namespace"}}
    references: list[Tree] = live.get("ownerReferences") or []
    if own := wanted.get("ownerReferences"):
        uids = {each.get("uid") for each in own}
        wanted["ownerReferences"] = [*(each for each in references if each.get("uid") not in uids), *own]
    present: list[str] = live.get("finalizers") or []
    if names := wanted.get("finalizers"):
        wanted["finalizers"] = [*present, *(name for name in names if name not in present)]
    return wanted


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
        return any(each is None or _has_null(each) for each in cast("Tree", value).values())
    return False


def without_nulls(tree: Tree) -> tuple[Tree, tuple[Path, ...]]:
    """A tree without its nulls, and where they were: a server-side apply would store some of them as empty values."""
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
    """Read ``spec.paused``, or a JSON pointer where names have dots: ``/metadata/annotations/example.com~1note``."""
    if text.startswith("/"):
        return tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))
    return tuple(text.split("."))


def find(tree: Tree, path: Path) -> tuple[list[str | int], Any] | None:
    """Where a path leads in a live tree, as the steps of a JSON pointer, and what is there; None if nothing is."""
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
