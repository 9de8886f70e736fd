"""Applies to objects whose managed fields the plan has renamed: a dry run must still remove what the former names applied. Pure.

A renamed operator (``formerly=``) first renames its entries in ``managedFields``, and so does a child that is declared
with ``prune=False`` in one release alone. Then the apply removes what its own entry held before. The server of a plan
keeps the former names, because nothing is written: so the dry run is sent under them.
"""

from __future__ import annotations

from typing import Any, cast

from steersman.patches import FieldSet, FieldSetError, moved_managers
from steersman.plan.trees import Tree, part


def renamed_owners(before: Tree, planned: Tree, manager: str, subresource: str) -> list[str]:
    """The managers of an object on the server whose applied fields belong to ``manager`` in the plan."""
    held = _applied(before, subresource)
    owned = _applied(planned, subresource)
    own = owned.get(manager)
    return [] if own is None else [name for name, fields in held.items() if name not in owned and fields <= own]


def senders(before: Tree, renamed: list[str], manager: str, subresource: str) -> list[str]:
    """The names under which to send the dry runs of an apply: ``manager`` only if it owns applied fields on the server."""
    return [manager, *renamed] if not renamed or manager in _applied(before, subresource) else renamed


def with_owner(tree: Tree, renamed: list[str], manager: str) -> Tree:
    """An object with the entries of the renamed managers under the current name."""
    metadata = part(tree, "metadata")
    entries = moved_managers(metadata.get("managedFields") or (), renamed, manager)
    return tree if entries is None else {**tree, "metadata": {**metadata, "managedFields": entries}}


def _applied(tree: Tree, subresource: str) -> dict[str, FieldSet]:
    """The fields that each manager applied through an endpoint; without those that cannot be read."""
    found: dict[str, FieldSet] = {}
    for entry in cast("list[dict[str, Any]]", part(tree, "metadata").get("managedFields") or []):
        if entry.get("operation") == "Apply" and (entry.get("subresource") or "") == subresource:
            try:
                found[str(entry.get("manager") or "")] = FieldSet.parse(entry.get("fieldsV1") or {})
            except FieldSetError:
                continue
    return found
