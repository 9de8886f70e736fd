"""The versions of a resource for field managers: their schemas, and the conversion between them.

Guarantees
- The versions are those that the registry serves at the moment: an added one is known at once, a removed one is
  unknown.
- The merge schema of a definition is made once; field managers are made once for a definition and a subresource.
  Those of custom resources are dropped with their definition.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec

from steersman.apiserver.documents import copied
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.field_managers.typed_problems import typed_problems
from steersman.apiserver.field_managers.webhook_results import WebhookResults
from steersman.apiserver.registry import crd
from steersman.apiserver.registry.builtin.strategy import definition_of
from steersman.apiserver.registry.builtin.types.canonical_form import empty, knows
from steersman.apiserver.registry.conversion import Conversion
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.registry import ResourceRegistry
from steersman.apiserver.registry.reset_fields import reset_fields
from steersman.kinds.definitions import definition as definition_named, schema_of
from steersman.objects import GroupKind, GroupVersionKind
from steersman.patches import FieldManager, FieldSet, MergeSchema, NotConvertible, UnknownVersion, Versions

_NOTHING = FieldSet()


class Managed(NamedTuple):
    """The field manager of a resource for one of its endpoints."""

    definition: Definition
    fields: FieldManager
    schema: MergeSchema
    #: An object before anything is set. Never changed.
    empty: Tree
    #: Whether it is the endpoint of the status.
    of_status: bool = False


class ServedVersions:
    """The versions of a resource that a registry serves, for one endpoint."""

    def __init__(self, registry: ResourceRegistry, definition: Definition, subresource: str, schemas: _Schemas) -> None:
        self._registry = registry
        self._definition = definition
        self._api_version = definition.gvk.api_version
        self._resource = definition.resource
        self._prefix = definition.prefix
        self._subresource = subresource
        self._schemas = schemas
        # Nearly all calls concern the version itself.
        self._schema = schemas.of(definition)
        self._ignored = reset_fields(definition, subresource)

    def _find(self, api_version: str) -> Definition:
        if api_version == self._api_version:
            return self._definition
        group, _, version = api_version.rpartition("/")
        definition = self._registry.find(group, version, self._resource)
        # kube-apiserver's core group does not know the types of other groups, nor they its types (Event has both).
        if definition is None or definition.prefix != self._prefix or bool(group) != bool(self._definition.gvk.group):
            raise UnknownVersion(f"{self._resource} are not served in {api_version}")
        return definition

    def schema(self, api_version: str) -> MergeSchema:
        """The merge schema of a version."""
        return self._schema if api_version == self._api_version else self._schemas.of(self._find(api_version))

    def ignored(self, api_version: str) -> FieldSet:
        """The fields that the endpoint resets."""
        if api_version == self._api_version:
            return self._ignored
        try:
            return reset_fields(self._find(api_version), self._subresource)
        except UnknownVersion:
            return _NOTHING

    def convert(self, tree: Mapping[str, Any], api_version: str) -> Mapping[str, Any]:
        """The object in another version, converted through the stored one."""
        present: str = tree.get("apiVersion", "")
        wanted = self._find(api_version)
        if present == api_version:
            return tree
        converted = copied(tree)
        source = self._find(present)
        if source.conversion is not None:
            source.conversion.to_stored(converted)
        if wanted.conversion is not None:
            wanted.conversion.from_stored(converted)
        converted["apiVersion"], converted["kind"] = wanted.gvk.api_version, wanted.gvk.kind
        return converted


class DeclaredVersions:
    """The versions of a custom resource that its definition declares, served or not, for one endpoint.

    An object that cannot be converted, or does not fit the target, raises `NotConvertible`: kube-apiserver then rejects
    an apply, and an update keeps the stored managed fields.
    """

    def __init__(
        self,
        definition: Definition,
        subresource: str,
        schemas: _Schemas,
        conversion: Conversion,
        results: WebhookResults | None,
    ) -> None:
        self._results = results
        self._definition = definition
        self._api_version = definition.gvk.api_version
        self._subresource = subresource
        self._schemas = schemas
        self._conversion = conversion
        self._schema = schemas.of(definition)
        self._ignored = reset_fields(definition, subresource)

    def _version(self, api_version: str) -> str:
        group, _, version = api_version.rpartition("/")
        if group != self._definition.gvk.group or version not in self._conversion.schemas:
            raise NotConvertible(f"request to convert CR to an invalid group/version: {api_version}")
        return version

    def schema(self, api_version: str) -> MergeSchema:
        """The merge schema of a version."""
        if api_version == self._api_version:
            return self._schema
        version, gvk = self._version(api_version), self._definition.gvk
        return self._schemas.declared(msgspec.structs.replace(gvk, version=version), self._conversion.schemas[version])

    def ignored(self, api_version: str) -> FieldSet:
        """The fields that the endpoint resets; at the main endpoint, only those of its own version."""
        return self._ignored if self._subresource or api_version == self._api_version else _NOTHING

    def convert(self, tree: Mapping[str, Any], api_version: str) -> Mapping[str, Any]:
        """The object in another version, through the version of the request."""
        present = tree.get("apiVersion")
        if present == api_version == self._api_version:
            return tree
        version = self._version(api_version)
        if present == api_version:
            return tree
        converted = copied(tree)
        if self._api_version not in {present, api_version}:
            converted = self._changed(converted, self._definition.gvk.version)
        converted = self._changed(converted, version)
        fields = {name: value for name, value in converted.items() if name != "metadata"}
        if problems := typed_problems(fields, self.schema(api_version)):
            raise NotConvertible(problems)
        return converted

    def _changed(self, tree: Tree, version: str) -> Tree:
        if self._conversion.webhook is not None:
            if self._results is None:
                raise NotConvertible("no webhook is called here")
            return self._results.converted(tree, version)
        if self._conversion.change is None:
            return tree | {"apiVersion": f"{self._definition.gvk.group}/{version}"}
        try:
            self._conversion.change(tree, version)
        except RequestRejected as refused:
            raise NotConvertible(refused.status.message) from None
        return tree


class OneVersion:
    """A kind with a single version that is not served by itself, such as a Scale."""

    def __init__(self, api_version: str, schema: MergeSchema) -> None:
        self._api_version = api_version
        self._schema = schema

    def _check(self, api_version: str) -> None:
        if api_version != self._api_version:
            raise UnknownVersion(f"there is only {self._api_version}, not {api_version}")

    def schema(self, api_version: str) -> MergeSchema:
        """The merge schema."""
        self._check(api_version)
        return self._schema

    def ignored(self, api_version: str) -> FieldSet:
        """No field is reset."""
        del api_version
        return _NOTHING

    def convert(self, tree: Mapping[str, Any], api_version: str) -> Mapping[str, Any]:
        """The object unchanged."""
        self._check(api_version)
        return tree


class _Schemas:
    """Merge schemas by kind; a definition that replaced another has its own schemas."""

    def __init__(self) -> None:
        self._made: dict[GroupVersionKind, tuple[Tree, MergeSchema]] = {}

    def of(self, definition: Definition) -> MergeSchema:
        """The merge schema of a definition."""
        if not definition.custom:
            return built_in_schema(definition.gvk)
        return self.declared(definition.gvk, definition.schema())

    def declared(self, gvk: GroupVersionKind, schema: Tree) -> MergeSchema:
        """The merge schema of a custom resource's version."""
        entry = self._made.get(gvk)
        if entry is None or entry[0] is not schema:
            entry = self._made[gvk] = (schema, MergeSchema(schema))
        return entry[1]

    def keep(self, kinds: Container[GroupKind]) -> None:
        """Drop the schemas of all other kinds."""
        self._made = {gvk: entry for gvk, entry in list(self._made.items()) if gvk.group_kind in kinds}


@cache
def built_in_schema(kind: GroupVersionKind) -> MergeSchema:
    """The merge schema of a built-in kind."""
    return MergeSchema(schema_of(kind), resolve=lambda name: definition_named(name.rpartition("/")[2]))


@cache
def _empty_built_in(kind: GroupVersionKind) -> Tree:
    name = definition_of(kind)
    tree = empty(name) if knows(name) else crd.empty_crd() if kind.kind == "CustomResourceDefinition" else {}
    return tree | {"apiVersion": kind.api_version, "kind": kind.kind}


def _versions(
    registry: ResourceRegistry,
    definition: Definition,
    subresource: str,
    schemas: _Schemas,
    results: WebhookResults | None,
) -> Versions:
    if definition.custom and definition.conversion is not None and definition.conversion.schemas:
        return DeclaredVersions(definition, subresource, schemas, definition.conversion, results)
    return ServedVersions(registry, definition, subresource, schemas)


class _Managers:
    """The field managers of one registry, as long as it serves their resources."""

    def __init__(self) -> None:
        self.schemas = _Schemas()
        self.made: dict[tuple[GroupVersionKind, str, str], Managed] = {}
        self._revision = -1

    def follow(self, registry: ResourceRegistry) -> None:
        """Drop what belongs to definitions that are no longer served."""
        if self._revision == registry.revision:
            return
        self._revision = registry.revision
        served = {id(definition) for definition in registry}
        # Worker threads add to both: iterate over copies.
        self.made = {
            key: managed
            for key, managed in list(self.made.items())
            if not managed.definition.custom or id(managed.definition) in served
        }
        self.schemas.keep({definition.gvk.group_kind for definition in registry})


def managed_of(
    registry: ResourceRegistry, definition: Definition, subresource: str, results: WebhookResults | None = None
) -> Managed:
    """The field manager of a resource, for a subresource or the main endpoint; with ``results``, for one write."""
    managers = registry.derived(_Managers)
    managers.follow(registry)
    key = (definition.gvk, definition.resource, subresource)
    managed = managers.made.get(key)
    if managed is None or managed.definition is not definition or results is not None:
        api_version = definition.gvk.api_version
        versions = _versions(registry, definition, subresource, managers.schemas, results)
        fields = FieldManager(versions, api_version=api_version, subresource=subresource)
        bare = {"apiVersion": api_version, "kind": definition.gvk.kind}
        before = bare if definition.custom else _empty_built_in(definition.gvk)
        managed = Managed(
            definition, fields, managers.schemas.of(definition), before, of_status=subresource == "status"
        )
        if results is None:
            managers.made[key] = managed
    return managed
