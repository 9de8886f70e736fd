"""Bodies of built-in kinds: decoded into the Go types of their kind.

Guarantees
- The object has its kind's types: unknown fields are dropped, and nulls and zeroes that the server does not print
  become absent; quantities, times and bytes have the server's printed form.
- A body of another kind is decoded as that kind first: its own mistakes are reported first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from steersman.apiserver.decoding.rejections import Decoded, other_kind, unhandled, warnings_of
from steersman.apiserver.go_types.reader import TypedTree, Unreadable
from steersman.apiserver.go_types.shapes import is_registered, shape_of
from steersman.apiserver.go_types.text import Text, read_typed
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.objects import GroupVersionKind

#: Versions of bodies that no endpoint serves, but one accepts, and the version with the same fields.
ACCEPTED = {
    GroupVersionKind("policy", "v1beta1", "Eviction"): GroupVersionKind("policy", "v1", "Eviction"),
}


def builtin_object(
    definition: Definition, text: Text, given: GroupVersionKind, directive: str, twice: Sequence[str] = ()
) -> Decoded:
    """The object of a text that declares this kind. ``twice`` are the duplicate fields of the patch that made it."""
    expected = definition.gvk
    if not given.version and given.group in {"", expected.group}:
        given = GroupVersionKind(expected.group, expected.version, given.kind)
    given = GroupVersionKind(given.group, given.version, given.kind or expected.kind)
    given = ACCEPTED.get(given, given)
    is_other, is_reset = given != expected, _resets_managers(text.tree)
    shape, is_known = shape_of(given), not is_other or is_registered(given)
    try:
        typed = TypedTree(text.tree, []) if shape is None else read_typed(text, shape, keeps_tree=is_other)
    except Unreadable as error:
        raise unhandled(given, expected, str(error)) from (None if is_other else error)
    if is_other:
        raise other_kind(given, expected, is_registered=is_known)
    tree: Tree = typed.tree
    if text.too_large:
        raise unhandled(expected, expected, text.too_large)
    if is_reset:
        tree["metadata"]["managedFields"] = []
    tree["kind"], tree["apiVersion"] = expected.kind, expected.api_version
    return Decoded(tree, warnings_of(text, [*twice, *typed.findings], expected, directive))


def _resets_managers(tree: Tree) -> bool:
    """Whether the managed fields are an empty list, which is kept: it clears all managers."""
    metadata: Any = tree.get("metadata")
    return isinstance(metadata, dict) and cast("Tree", metadata).get("managedFields") == []
