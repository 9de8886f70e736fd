"""Which updates change only what garbage collection changes: permissions on the content do not concern them."""

from __future__ import annotations

from typing import Any, cast

from steersman.objects import Tree

#: Metadata fields that garbage collection changes, or that the server maintains.
_COLLECTED = frozenset({"ownerReferences", "finalizers", "selfLink", "managedFields"})


def is_collection(obj: Tree, old: Tree | None) -> bool:
    """Whether a write is an update that changes only what garbage collection changes."""
    return old is not None and _compared(obj) == _compared(old)


def _compared(obj: Tree) -> Any:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _COLLECTED}
    return without_empty({**obj, "metadata": metadata})


def without_empty(value: Any) -> Any:
    """A value without empty members, which Go does not distinguish from missing ones."""
    if isinstance(value, dict):
        members = ((name, without_empty(inner)) for name, inner in cast("Tree", value).items())
        return {name: inner for name, inner in members if inner not in (None, "", [], {})}
    return list(map(without_empty, cast("list[Any]", value))) if isinstance(value, list) else value
