"""Metadata as kube-apiserver decodes it: null means absent, unknown fields are dropped, other types are rejected.

A server that validates times later decodes `WireMetadata[str]`, one that rejects them at once `WireMetadata[datetime]`.
"""

from typing import Any, Generic, TypeVar

import msgspec

TimeT = TypeVar("TimeT")


class WireOwner(msgspec.Struct, rename="camel"):
    """An owner reference."""

    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class WireManager(msgspec.Struct, Generic[TimeT], rename="camel"):
    """An entry of ``managedFields``."""

    manager: str | None = None
    operation: str | None = None
    api_version: str | None = None
    time: TimeT | None = None
    fields_type: str | None = None
    #: Of any type: an invalid field set owns nothing.
    fields_v1: Any = None
    subresource: str | None = None


class WireMetadata(msgspec.Struct, Generic[TimeT], rename="camel"):
    """The metadata of an object."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    self_link: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: TimeT | None = None
    deletion_timestamp: TimeT | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None
    owner_references: list[WireOwner] | None = None
    finalizers: list[str | None] | None = None
    managed_fields: list[WireManager[TimeT]] | None = None
