"""Objects inside objects (``x-kubernetes-embedded-resource``): an apiVersion, a kind and, if there is one, sound metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, cast

import msgspec

from steersman.schemas.field_problems import FieldProblem, problem

Schema = Mapping[str, Any]

_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_KIND: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_ANNOTATIONS_MAX: Final = 256 * 1024


class _Owner(msgspec.Struct, rename="camel"):
    """An owner reference as the server decodes it: null is absent."""

    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class _Managed(msgspec.Struct, rename="camel"):
    manager: str | None = None
    operation: str | None = None
    api_version: str | None = None
    time: datetime | None = None
    fields_type: str | None = None
    subresource: str | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    """Metadata as the server decodes it: wrong types are refused, unknown fields are dropped."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    self_link: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None
    owner_references: list[_Owner] | None = None
    finalizers: list[str | None] | None = None
    managed_fields: list[_Managed] | None = None


def embedded_problems(schema: Schema, tree: Any, path: str) -> Iterator[FieldProblem]:
    """What is wrong with all embedded objects of a tree."""
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
        elif name == "kind" and (len(value) > 63 or not _KIND.fullmatch(value.lower())):
            said = "may have mixed case, but should otherwise match: [a-z]([-a-z0-9]*[a-z0-9])?, at most 63 characters"
            yield problem(at, "FieldValueInvalid", value, said)
    if tree.get("metadata") is not None:
        at = _child(path, "metadata")
        try:
            metadata = msgspec.convert(tree["metadata"], _Metadata)
        except msgspec.ValidationError as error:
            yield problem(at, "FieldValueInvalid", tree["metadata"], str(error))
        else:
            yield from _metadata_problems(metadata, at)


def _metadata_problems(metadata: _Metadata, path: str) -> Iterator[FieldProblem]:
    if metadata.name in {".", ".."}:
        yield problem(f"{path}.name", "FieldValueInvalid", metadata.name, f"may not be '{metadata.name}'")
    for name, value in (("name", metadata.name or ""), ("generateName", metadata.generate_name or "")):
        for sign in (sign for sign in "/%" if sign in value):
            yield problem(f"{path}.{name}", "FieldValueInvalid", value, f"may not contain '{sign}'")
    if metadata.namespace and (len(metadata.namespace) > 63 or not _LABEL.fullmatch(metadata.namespace)):
        said = "a lowercase RFC 1123 label of at most 63 characters is expected"
        yield problem(f"{path}.namespace", "FieldValueInvalid", metadata.namespace, said)
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
        yield from _name_problems(name, path)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        said = "finalizer orphan and foregroundDeletion cannot be both set"
        yield problem(path, "FieldValueInvalid", finalizers, said)


def _map_problems(metadata: _Metadata, path: str) -> Iterator[FieldProblem]:
    """Check labels and annotations."""
    for key, value in (metadata.labels or {}).items():
        yield from _name_problems(key, f"{path}.labels")
        if value and (len(value) > 63 or not _NAME.fullmatch(value)):
            said = "a label value has at most 63 letters, digits, '-', '_' or '.', and begins and ends with a letter or digit"
            yield problem(f"{path}.labels", "FieldValueInvalid", value, said)
    annotations = metadata.annotations or {}
    for key in annotations:
        yield from _name_problems(key.lower(), f"{path}.annotations")
    if sum(len(key.encode()) + len((value or "").encode()) for key, value in annotations.items()) > _ANNOTATIONS_MAX:
        yield problem(f"{path}.annotations", "FieldValueTooLong", "", f"may not be more than {_ANNOTATIONS_MAX} bytes")


def _name_problems(name: str, path: str) -> Iterator[FieldProblem]:
    """Check a qualified name: ``name`` or ``example.com/name``."""
    prefix, slash, last = name.rpartition("/")
    if slash and ("/" in prefix or len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        yield problem(path, "FieldValueInvalid", name, "prefix part must be a lowercase RFC 1123 subdomain")
    if len(last) > 63 or not _NAME.fullmatch(last):
        said = "name part has at most 63 letters, digits, '-', '_' or '.', and begins and ends with a letter or digit"
        yield problem(path, "FieldValueInvalid", name, said)


def _owner_problems(owners: list[_Owner], path: str) -> Iterator[FieldProblem]:
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
