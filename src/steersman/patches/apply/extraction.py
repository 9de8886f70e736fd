"""The part of an object that one manager applied, as the start of its next intent.

Guarantees:

- Applying the extracted object with the same manager changes nothing: it holds all that the manager applied and still
  owns, with its current values, and otherwise only the object's type and name.
- For a manager that applied nothing, or lost all its fields to others, it holds only the type and the name.
"""

from collections.abc import Mapping
from typing import Any, cast

from steersman.patches.apply.managed_fields import Owner, read_managed_fields
from steersman.patches.apply.selection import only_fields
from steersman.patches.field_set import EMPTY, FieldSet
from steersman.patches.merge_schema import MergeSchema


def extract_applied_tree(
    obj: Mapping[str, Any], *, manager: str, subresource: str = "", schema: MergeSchema
) -> dict[str, Any]:
    """The fields that a manager applied to an object, through the main endpoint or a subresource such as ``status``.

    ``schema`` belongs to the version of ``obj``, which should be the version that the manager applies. Raises
    `ManagedFieldsError` if the object's managed fields cannot be read.
    """
    reduced = only_fields(obj, _applied_fields(obj, manager, subresource), schema)
    metadata: dict[str, Any] = obj.get("metadata") or {}
    identity = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
    kind = {name: obj[name] for name in ("apiVersion", "kind") if name in obj}
    return kind | reduced | {"metadata": identity | cast("dict[str, Any]", reduced.get("metadata") or {})}


def _applied_fields(obj: Mapping[str, Any], manager: str, subresource: str) -> FieldSet:
    metadata: Mapping[str, Any] = obj.get("metadata") or {}
    owned = read_managed_fields(metadata.get("managedFields")).get(Owner(manager, "Apply", "", subresource))
    return EMPTY if owned is None else owned.fields
