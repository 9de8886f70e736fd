"""Metadata that every object carries."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Raw

from steersman.markers import ListMap, ListSet
from steersman.objects.identity import GroupVersion
from steersman.objects.struct import Struct, field

_NO_FIELDS = Raw(b"")

#: The metadata in which the server keeps the identity and the versions of an object.
SERVER_BOOKKEEPING = frozenset(
    {"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}
)
#: The metadata that only the server writes: the same, and the deletion.
SERVER_METADATA = SERVER_BOOKKEEPING | {"deletionGracePeriodSeconds", "deletionTimestamp"}


class OwnerReference(Struct):
    """An owner of an object; the garbage collector deletes the object when all its owners are gone."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None

    @property
    def group(self) -> str:
        """The API group of the owner."""
        return GroupVersion.parse(self.api_version).group


class ManagedFieldsEntry(Struct):
    """The fields that one manager owns through one operation."""

    manager: str | None = None
    operation: str | None = None
    api_version: str | None = None
    time: datetime | None = None
    fields_type: str | None = None
    fields_v1: Raw = field(default=_NO_FIELDS, name="fieldsV1")
    subresource: str | None = None

    def fields(self) -> dict[str, Any]:
        """The owned fields, decoded."""
        return msgspec.json.decode(self.fields_v1) if self.fields_v1 else {}


class ObjectMeta(Struct):
    """Name, labels, ownership and history of an object."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: Annotated[list[OwnerReference], ListMap("uid")] | None = None
    finalizers: Annotated[list[str], ListSet()] | None = None
    managed_fields: list[ManagedFieldsEntry] | None = None
    self_link: str | None = None

    __unshown__: ClassVar[frozenset[str]] = frozenset({"_origin", "managed_fields"})


class ListMeta(Struct):
    """Metadata of a list: the version it was read at, and where the next page starts."""

    resource_version: str | None = None
    continue_: str | None = None
    remaining_item_count: int | None = None
    self_link: str | None = None
