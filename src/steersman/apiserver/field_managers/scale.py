"""Managed fields of a scale: those of its object's replicas, as fields of a scale.

Guarantees
- A scale has an owner of its replicas wherever the object has one, in every served version.
- A manager that takes the replicas through a scale owns them in the object, with the subresource ``scale``; the
  previous owner loses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from steersman.apiserver.field_managers.versions import Managed, OneVersion, built_in_schema
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.registry import ResourceRegistry
from steersman.kinds import schema_of
from steersman.objects import GroupVersionKind
from steersman.patches import (
    FieldManager,
    FieldSet,
    ManagedFields,
    Owned,
    Path,
    PathElement,
    read_managed_fields,
    write_managed_fields,
)

SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")
_REPLICAS: Final[Path] = (PathElement.field("spec"), PathElement.field("replicas"))


@cache
def managed_scale() -> Managed:
    """The field manager of scales."""
    schema, api_version = built_in_schema(SCALE), SCALE.api_version
    fields = FieldManager(OneVersion(api_version, schema), api_version=api_version, subresource="scale")
    empty: Tree = {
        "kind": SCALE.kind,
        "apiVersion": api_version,
        "metadata": {"creationTimestamp": None},
        "spec": {},
        "status": {"replicas": 0},
    }
    definition = Definition(gvk=SCALE, resource="scales", schema=lambda: schema_of(SCALE))
    return Managed(definition, fields, schema, empty)


class ScaledFields:
    """Translates the managed fields of one object to its scale and back."""

    def __init__(self, registry: ResourceRegistry, definition: Definition, entries: list[Any] | None) -> None:
        self._api_version = definition.gvk.api_version
        self._paths = _paths(registry, definition)
        self._of_object = read_managed_fields(entries)

    def of_scale(self) -> list[Tree]:
        """The managed fields of the scale."""
        found: ManagedFields = {}
        for owner, owned in self._of_object.items():
            path = self._paths.get(owned.api_version)
            if path is not None and path in owned.fields:
                found[owner] = Owned(FieldSet([_REPLICAS]), SCALE.api_version, owned.time)
        return write_managed_fields(found)

    def of_object(self, scale_entries: list[Any] | None) -> list[Tree]:
        """The managed fields of the object, given those of its changed scale."""
        of_scale = read_managed_fields(scale_entries)
        found: ManagedFields = {}
        for owner, owned in self._of_object.items():
            if owned.api_version not in self._paths:
                continue
            path = self._paths[owned.api_version]
            if path is None or path not in owned.fields or of_scale.pop(owner, None) is not None:
                found[owner] = owned
            elif left := owned.fields - FieldSet([path]):
                found[owner] = owned.with_fields(left)
        own = self._paths[self._api_version]
        for owner, owned in of_scale.items():
            if own is not None and _REPLICAS in owned.fields:
                before = self._of_object.get(owner)
                found[owner] = Owned(FieldSet([own]), self._api_version, None if before is None else before.time)
        return write_managed_fields(found)


def _paths(registry: ResourceRegistry, definition: Definition) -> Mapping[str, Path | None]:
    """The path of the replicas in each version; None for a version without a scale."""
    found: dict[str, Path | None] = {}
    for each in registry:
        if each.resource == definition.resource and each.prefix == definition.prefix:
            path = each.scale and tuple(PathElement.field(name) for name in each.scale.spec_replicas)
            found[each.gvk.api_version] = path or None
    return found
