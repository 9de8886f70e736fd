"""Kinds whose fields are managed on the engine and here: built-in ones, and a custom one with everything that merges.

The custom kind has two versions without a conversion of their own, in which some places merge in another way and some are
not there at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from patches.test_patches_engine import SPEC as FIELDS

from steersman.apiserver.registry.builtin.types import canonical_form
from steersman.kinds.definitions import definition, schema_of
from steersman.objects import GroupVersionKind
from steersman.patches import (
    STATUS_FIELDS,
    FieldManager,
    FieldSet,
    MergeSchema,
    NotConvertible,
    PathElement,
    UnknownVersion,
)
from steersman.testing import Engine

TEXT = {"type": "string"}
NOTHING = FieldSet()
ALL_BUT_STATUS = FieldSet([(PathElement.field("metadata"),), (PathElement.field("spec"),)])
FREE = {"x-kubernetes-preserve-unknown-fields": True}

PAIR = {"type": "object", "required": ["a", "b"], "properties": {"a": TEXT, "b": TEXT, "c": TEXT}}
STATUS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ready": {"type": "boolean"},
        "replicas": {"type": "integer"},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {"type": "object", "required": ["type"], "properties": {"type": TEXT, "status": TEXT}},
        },
    },
}


def keyed(items: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
        "items": items,
    }


def atomic(place: dict[str, Any]) -> dict[str, Any]:
    name = "x-kubernetes-list-type" if place["type"] == "array" else "x-kubernetes-map-type"
    kept = {key: value for key, value in place.items() if key != "x-kubernetes-list-map-keys"}
    return kept | {name: "atomic"}


#: Versions, the stored one first.
SPECS: dict[str, dict[str, Any]] = {
    "v1": FIELDS
    | {
        "pairs": keyed(PAIR, "a", "b"),
        "items": {"type": "array", "items": FREE, "x-kubernetes-list-type": "atomic"},
        "only1": TEXT,
    },
    "v2": FIELDS
    | {
        "pairs": keyed(PAIR, "a"),
        "items": {"type": "array", "items": FREE, "x-kubernetes-list-type": "atomic"},
        "set": atomic(FIELDS["set"]),
        "atomicList": FIELDS["atomicList"] | {"x-kubernetes-list-type": "set"},
        "map": atomic(FIELDS["map"]),
        "atomicMap": {key: value for key, value in FIELDS["atomicMap"].items() if key != "x-kubernetes-map-type"},
        "half": {**FIELDS["half"], "x-kubernetes-map-type": "atomic"},
    },
}


def sample_schema(version: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": SPECS[version]}, "status": STATUS},
    }


async def install(engine: Engine, group: str) -> None:
    """Let the engine serve the custom kind."""
    versions = [
        {
            "name": version,
            "served": True,
            "storage": version == "v1",
            "schema": {"openAPIV3Schema": sample_schema(version)},
            "subresources": {"status": {}},
        }
        for version in SPECS
    ]
    names = {"plural": "samples", "singular": "sample", "kind": "Sample"}
    custom = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"samples.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }
    await engine.kubectl("create", "-f", "-", stdin=json.dumps(custom))
    await engine.kubectl("wait", "--for=condition=Established", f"crd/samples.{group}", "--timeout=30s")


class Served:
    """The versions of a kind as one of its endpoints sees them."""

    def __init__(
        self, schemas: dict[str, MergeSchema], ignored: dict[str, FieldSet], *, is_custom: bool = False
    ) -> None:
        self._schemas, self._ignored, self._is_custom = schemas, ignored, is_custom

    def schema(self, api_version: str) -> MergeSchema:
        if api_version not in self._schemas:
            raise NotConvertible(api_version) if self._is_custom else UnknownVersion(api_version)
        return self._schemas[api_version]

    def ignored(self, api_version: str) -> FieldSet:
        return self._ignored.get(api_version, NOTHING)

    def convert(self, tree: Mapping[str, Any], api_version: str) -> Mapping[str, Any]:
        self.schema(api_version)
        return tree if tree["apiVersion"] == api_version else {**tree, "apiVersion": api_version}


class Endpoint:
    """Where objects of a kind are written, and its field manager here."""

    def __init__(
        self,
        kind: str,
        plural: str,
        api_version: str,
        versions: Served,
        *,
        empty: dict[str, Any],
        subresource: str = "",
    ) -> None:
        self.kind, self.plural, self.api_version, self.subresource = kind, plural, api_version, subresource
        self.fields = FieldManager(versions, api_version=api_version, subresource=subresource)
        self.empty = empty | {"apiVersion": api_version, "kind": kind}

    def collection(self, namespace: str) -> str:
        root = "apis" if "/" in self.api_version else "api"
        return f"/{root}/{self.api_version}/namespaces/{namespace}/{self.plural}"


def built_in(kind: str, api_version: str, plural: str, package: str) -> list[Endpoint]:
    """The main endpoint of a built-in kind."""
    group, _, version = api_version.rpartition("/")
    schema = MergeSchema(
        schema_of(GroupVersionKind(group, version, kind)), resolve=lambda name: definition(name.rpartition("/")[2])
    )
    ignored = NOTHING if kind == "ConfigMap" else STATUS_FIELDS
    versions = Served({api_version: schema}, {api_version: ignored})
    return [Endpoint(kind, plural, api_version, versions, empty=canonical_form.empty(f"{package}.{kind}"))]


def custom(group: str) -> list[Endpoint]:
    """All endpoints of the custom kind."""
    schemas = {f"{group}/{version}": MergeSchema(sample_schema(version)) for version in SPECS}
    endpoints: list[Endpoint] = []
    for each in schemas:
        # the main endpoint knows what it resets in its own version only, that of the status in all
        main, status = {each: STATUS_FIELDS}, dict.fromkeys(schemas, ALL_BUT_STATUS)
        endpoints.append(Endpoint("Sample", "samples", each, Served(schemas, main, is_custom=True), empty={}))
        endpoints.append(
            Endpoint("Sample", "samples", each, Served(schemas, status, is_custom=True), empty={}, subresource="status")
        )
    return endpoints
