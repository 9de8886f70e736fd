"""Objects inside objects (``x-kubernetes-embedded-resource``): an apiVersion, a kind and, if present, valid metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, cast

import msgspec

from steersman.objects.field_problems import FieldProblem, problem
from steersman.schemas.names import dns_1035_label, dns_label, label_value, path_segment, qualified_name
from steersman.wire import WireMetadata, WireOwner

Schema = Mapping[str, Any]

_ANNOTATIONS_MAX: Final = 256 * 1024


def embedded_problems(schema: Schema, tree: Any, path: str) -> Iterator[FieldProblem]:
    """The problems of all embedded objects of a tree."""
    if isinstance(tree, dict):
        tree = cast("dict[str, Any]", tree)
        if schema.get("x-kubernetes-embedded-resource"):
            yield from _object_problems(tree, path)
        properties: Schema = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        for name, value in tree.items():
            if name in properties:
                yield from embedded_problems(properties[name], value, _child(path, name))
            elif isinstance(additional, Mapping):
                yield from embedded_problems(cast("Schema", additional), value, f"{path}[{name}]")
    elif isinstance(tree, list) and schema.get("items") is not None:
        for index, value in enumerate(cast("list[Any]", tree)):
            yield from embedded_problems(schema["items"], value, f"{path}[{index}]")


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _object_problems(tree: dict[str, Any], path: str) -> Iterator[FieldProblem]:
    for name in ("apiVersion", "kind"):
        at, value = _child(path, name), tree.get(name)
        if name not in tree:
            yield problem(at, "FieldValueRequired")
        elif not isinstance(value, str):
            yield problem(at, "FieldValueInvalid", value, "must be a string")
        elif not value:
            yield problem(at, "FieldValueInvalid", value, "must not be empty")
        elif name == "apiVersion" and value.count("/") > 1:
            yield problem(at, "FieldValueInvalid", value, f"unexpected GroupVersion string: {value}")
        elif name == "kind" and (said := dns_1035_label(value.lower())):
            words = f"may have mixed case, but should otherwise match: {','.join(said)}"
            yield problem(at, "FieldValueInvalid", value, words)
    if tree.get("metadata") is not None:
        at = _child(path, "metadata")
        try:
            metadata = msgspec.convert(tree["metadata"], WireMetadata[datetime])
        except msgspec.ValidationError as error:
            yield problem(at, "FieldValueInvalid", tree["metadata"], str(error))
        else:
            yield from _metadata_problems(metadata, at)


def _metadata_problems(metadata: WireMetadata[datetime], path: str) -> Iterator[FieldProblem]:
    yield from _refused(
        f"{path}.generateName", metadata.generate_name or "", path_segment(metadata.generate_name or "", prefix=True)
    )
    yield from _refused(f"{path}.name", metadata.name or "", path_segment(metadata.name or ""))
    if metadata.namespace:
        yield from _refused(f"{path}.namespace", metadata.namespace, dns_label(metadata.namespace))
    if (metadata.generation or 0) < 0:
        yield problem(
            f"{path}.generation", "FieldValueInvalid", metadata.generation, "must be greater than or equal to 0"
        )
    yield from _map_problems(metadata, path)
    yield from _owner_problems(metadata.owner_references or [], f"{path}.ownerReferences")
    yield from _finalizer_problems([name or "" for name in metadata.finalizers or []], f"{path}.finalizers")
    for index, entry in enumerate(metadata.managed_fields or []):
        if entry.operation not in {"Apply", "Update"}:
            at = f"{path}.managedFields[{index}].operation"
            yield problem(at, "FieldValueInvalid", entry.operation or "", "must be `Apply` or `Update`")


def _finalizer_problems(finalizers: list[str], path: str) -> Iterator[FieldProblem]:
    for name in finalizers:
        yield from _refused(path, name, qualified_name(name))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        said = "finalizer orphan and foregroundDeletion cannot be both set"
        yield problem(path, "FieldValueInvalid", finalizers, said)


def _map_problems(metadata: WireMetadata[datetime], path: str) -> Iterator[FieldProblem]:
    """Check labels and annotations."""
    for key, value in (metadata.labels or {}).items():
        yield from _refused(f"{path}.labels", key, qualified_name(key))
        yield from _refused(f"{path}.labels", value or "", label_value(value or ""))
    annotations = metadata.annotations or {}
    for key in annotations:
        yield from _refused(f"{path}.annotations", key, qualified_name(key.lower()))
    if sum(len(key.encode()) + len((value or "").encode()) for key, value in annotations.items()) > _ANNOTATIONS_MAX:
        yield problem(f"{path}.annotations", "FieldValueTooLong", "", f"may not be more than {_ANNOTATIONS_MAX} bytes")


def _refused(path: str, value: str, words: list[str]) -> Iterator[FieldProblem]:
    for said in words:
        yield problem(path, "FieldValueInvalid", value, said)


def _owner_problems(owners: list[WireOwner], path: str) -> Iterator[FieldProblem]:
    controllers = 0
    for owner in owners:
        version = (owner.api_version or "").rpartition("/")[2]
        for name, value, said in (
            ("apiVersion", version, "version must not be empty"),
            ("kind", owner.kind, "must not be empty"),
            ("name", owner.name, "must not be empty"),
            ("uid", owner.uid, "must not be empty"),
        ):
            if not value:
                yield problem(f"{path}.{name}", "FieldValueInvalid", value or "", said)
        controllers += bool(owner.controller)
    if controllers > 1:
        yield problem(path, "FieldValueInvalid", controllers, "Only one reference can have Controller set to true")
