"""Merge patches (RFC 7386): apply one, or compute the one between two objects.

Guarantees:

- `apply_merge_patch` changes neither of its arguments; the result may share parts with them.
- ``apply_merge_patch(before, merge_patch_between(before, after))`` is ``after``. A merge patch cannot store a null in
  an object, so a null in ``after`` means that the field is absent, which is how a caller removes it. Lists are replaced
  whole and keep their nulls.
- Equal objects give the empty patch ``{}``.
"""

from typing import Any, cast

from steersman.patches.errors import MAX_DEPTH, TooDeep
from steersman.patches.trees import check_depth, json_equal


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """Apply a merge patch: objects merge, null removes a field, everything else replaces the old value."""
    return _applied(target, patch, 0)


def _applied(target: Any, patch: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise TooDeep
    if not isinstance(patch, dict):
        check_depth(patch)
        return patch
    change = cast("dict[str, Any]", patch)
    if not isinstance(target, dict):
        return _alone(change, depth)
    merged: dict[str, Any] = dict(cast("dict[str, Any]", target))
    for name, inner in change.items():
        if inner is None:
            merged.pop(name, None)
        else:
            merged[name] = _applied(merged.get(name), inner, depth + 1)
    return merged


def _alone(patch: dict[str, Any], depth: int) -> dict[str, Any]:
    """A patch in place of no object: without its nulls, and the patch itself if it has none."""
    merged = patch
    for name, inner in patch.items():
        value = None if inner is None else _applied(None, inner, depth + 1)
        if value is inner and value is not None:
            continue
        if merged is patch:
            merged = dict(patch)
        if value is None:
            del merged[name]
        else:
            merged[name] = value
    return merged


def merge_patch_between(before: Any, after: Any) -> Any:
    """Compute the merge patch from one value to another; ``{}`` if they are equal objects."""
    return _between(before, after, 0)


def _between(before: Any, after: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise TooDeep
    if not isinstance(after, dict):
        check_depth(after)
        return after
    old = cast("dict[str, Any]", before) if isinstance(before, dict) else {}
    new = cast("dict[str, Any]", after)
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    for name, inner in new.items():
        if isinstance(inner, dict):
            found = old.get(name)
            below = _between(found, cast("dict[str, Any]", inner), depth + 1)
            if below or not isinstance(found, dict):
                patch[name] = below
        elif name not in old or not json_equal(old[name], inner):
            check_depth(inner)
            patch[name] = inner
    return patch
