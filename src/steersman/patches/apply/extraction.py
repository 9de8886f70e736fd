"""The part of an object that one manager applied, as the start of its next intent.

Guarantees:

- Applying the extracted object with the same manager changes nothing: it holds all that the manager applied and still
  owns, with its current values, and otherwise only the object's type and name.
- For a manager that applied nothing, or lost all its fields to others, it holds only the type and the name.
- Of a manager that applied another version of the kind, in which fields have other names, it holds everything that no other
  manager owns: nothing else tells which fields are its own now.
"""

from collections.abc import Mapping
from typing import Any, cast

from steersman.patches.applied_fields import held_set
from steersman.patches.apply.managed_fields import Owner, read_managed_fields
from steersman.patches.apply.selection import only_fields
from steersman.patches.field_set import EMPTY, FieldSet
from steersman.patches.merge_schema import MergeSchema


def extract_applied_tree(
    obj: Mapping[str, Any], *, manager: str, subresource: str = "", schema: MergeSchema
) -> dict[str, Any]:
    """The fields that a manager applied to an object, through the main endpoint or a subresource such as ``status``.

    ``schema`` belongs to the version of ``obj``, which should be the version that the manager applies next. Raises
    `ManagedFieldsError` if the object's managed fields cannot be read.
    """
    reduced = only_fields(obj, _applied_fields(obj, manager, subresource, schema), schema)
    metadata: dict[str, Any] = obj.get("metadata") or {}
    identity = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
    kind = {name: obj[name] for name in ("apiVersion", "kind") if name in obj}
    return kind | reduced | {"metadata": identity | cast("dict[str, Any]", reduced.get("metadata") or {})}


def _applied_fields(obj: Mapping[str, Any], manager: str, subresource: str, schema: MergeSchema) -> FieldSet:
    metadata: Mapping[str, Any] = obj.get("metadata") or {}
    owners = read_managed_fields(metadata.get("managedFields"))
    owned = owners.pop(Owner(manager, "Apply", "", subresource), None)
    if owned is None:
        return EMPTY
    if owned.api_version == obj.get("apiVersion"):
        return owned.fields
    if owned.fields.leaves().issubset(held_set(obj, schema)):
        return owned.fields
    left = held_set({name: obj[name] for name in obj if _is_part_of(name, subresource)}, schema)
    for other in owners.values():
        left -= other.fields
    return owned.fields | left


def _is_part_of(name: str, subresource: str) -> bool:
    """Whether fields below this one may have other names in another version, and an endpoint writes them."""
    return name == subresource if subresource else name not in {"apiVersion", "kind", "metadata", "status"}
