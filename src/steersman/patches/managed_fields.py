"""Managed fields: ``metadata.managedFields`` read, and written as Kubernetes writes it.

Guarantees:

- One entry an owner: its name, its operation, its subresource and, for updates, the version it wrote.
- Entries are written in Kubernetes' order. Of more than `MAX_UPDATERS` updaters the oldest share one entry.
- What is no list of entries raises `ManagedFieldsError` with the words of kube-apiserver.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from steersman.objects.time import parse_time
from steersman.patches.errors import FieldSetError, PatchError, TooDeep
from steersman.patches.field_set import EMPTY, FieldSet

__all__ = ["MAX_UPDATERS", "ManagedFields", "ManagedFieldsError", "Operation", "Owned", "Owner"]

MAX_UPDATERS: Final = 10
"""How many entries of updates an object keeps."""

ANCIENT: Final = "ancient-changes"

Operation: TypeAlias = Literal["Apply", "Update"]


class ManagedFieldsError(PatchError):
    """A list of managed fields cannot be read."""


class Owner(NamedTuple):
    """Who owns fields; the version is empty for those who apply, since they are the same in every version."""

    manager: str
    operation: Operation
    api_version: str = ""
    subresource: str = ""

    @classmethod
    def of(cls, manager: str, operation: Operation, api_version: str, subresource: str = "") -> "Owner":
        """Name the owner behind a request."""
        return cls(manager, operation, "" if operation == "Apply" else api_version, subresource)


class Owned(NamedTuple):
    """What an owner owns, in which version, and since when it has not changed it."""

    fields: FieldSet
    api_version: str
    time: str | None = None


ManagedFields: TypeAlias = dict[Owner, Owned]
"""The owners of an object's fields."""


def read_managed_fields(entries: Sequence[Any] | None) -> ManagedFields:
    """Read the entries of an object."""
    found: ManagedFields = {}
    for index, entry in enumerate(entries or ()):
        if not isinstance(entry, Mapping):
            raise ManagedFieldsError(f"entry {index} is no object")
        given = cast("Mapping[str, Any]", entry)
        operation, api_version = given.get("operation"), given.get("apiVersion") or ""
        if operation not in {"Apply", "Update"}:
            raise ManagedFieldsError("operation must be `Apply` or `Update`")
        if not api_version:
            raise ManagedFieldsError("apiVersion must not be empty")
        fields_type = given.get("fieldsType") or ""
        if fields_type != "FieldsV1":
            problem = f'invalid fieldsType "{fields_type}"' if fields_type else "missing fieldsType"
            raise ManagedFieldsError(f"{problem} in managed fields entry {index}")
        owner = Owner.of(given.get("manager") or "", operation, api_version, given.get("subresource") or "")
        try:
            fields = FieldSet.parse(given.get("fieldsV1") or {})
        except (FieldSetError, TooDeep) as error:
            raise ManagedFieldsError(f"error decoding set: {error}") from error
        found[owner] = Owned(fields, api_version, given.get("time"))
    return found


def write_managed_fields(managed: ManagedFields) -> list[dict[str, Any]]:
    """Write the entries of an object, in Kubernetes' order."""
    return [_entry(owner, managed[owner]) for owner in sorted(managed, key=lambda owner: _order(owner, managed[owner]))]


def _entry(owner: Owner, owned: Owned) -> dict[str, Any]:
    entry: dict[str, Any] = {"manager": owner.manager} if owner.manager else {}
    entry |= {"operation": owner.operation, "apiVersion": owned.api_version}
    if owned.time is not None:
        entry["time"] = owned.time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": owned.fields.to_json()}
    if owner.subresource:
        entry["subresource"] = owner.subresource
    return entry


def _order(owner: Owner, owned: Owned) -> tuple[Any, ...]:
    return (owner.operation, _seconds(owned), owner.manager, owned.api_version, owner.subresource)


def _seconds(owned: Owned) -> int:
    try:
        return 0 if owned.time is None else int(parse_time(owned.time).timestamp())
    except ValueError:
        return 0


def without_oldest(managed: ManagedFields) -> ManagedFields:
    """Give the fields of the oldest updaters to one owner a version, so that few enough are left."""
    updaters = [owner for owner in managed if owner.operation == "Update"]
    surplus = len(updaters) - MAX_UPDATERS
    if surplus <= 0:
        return managed
    left = dict(managed)
    first: dict[str, Owner] = {}
    for owner in sorted(updaters, key=lambda owner: (_seconds(managed[owner]), owner)):
        owned = managed[owner]
        version = owned.api_version
        if version not in first:
            first[version] = owner
            continue
        shared = Owner.of(ANCIENT, "Update", version)
        gathered = left.get(shared)
        if gathered is None:
            gathered = left.pop(first[version])
        del left[owner]
        left[shared] = Owned(owned.fields | gathered.fields, version, owned.time)
        surplus -= 1
        if surplus == 0:
            break
    return left


def non_empty(managed: ManagedFields) -> ManagedFields:
    """Leave out owners that own nothing."""
    return {owner: owned for owner, owned in managed.items() if owned.fields != EMPTY}
