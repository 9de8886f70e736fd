"""Managed fields: read and write ``metadata.managedFields`` as Kubernetes does.

Guarantees:

- One entry per owner: its name, its operation, its subresource and, for updates, its version.
- Entries are written in Kubernetes' order. Beyond `MAX_UPDATERS` updaters, the oldest share one entry.
- Field sets that were read before, or are written unchanged, cost next to nothing.
- Anything but a list of entries raises `ManagedFieldsError` with kube-apiserver's message.
"""

from collections.abc import Mapping
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec

from steersman.objects import parse_time
from steersman.patches.errors import FieldSetError, PatchError, TooDeep
from steersman.patches.field_set import EMPTY, FieldSet

MAX_UPDATERS: Final = 10
"""The maximum number of update entries of an object."""

ANCIENT: Final = "ancient-changes"

#: Longer field sets are not cached, so that the cache is bounded in bytes as well.
_LONGEST: Final = 8192

Operation: TypeAlias = Literal["Apply", "Update"]


class ManagedFieldsError(PatchError):
    """A list of managed fields cannot be read."""


class Owner(NamedTuple):
    """The owner of fields. Appliers have no version, because they are the same in every version."""

    manager: str
    operation: Operation
    api_version: str = ""
    subresource: str = ""

    @classmethod
    def of(cls, manager: str, operation: Operation, api_version: str, subresource: str = "") -> "Owner":
        """The owner behind a request."""
        return cls(manager, operation, "" if operation == "Apply" else api_version, subresource)


class Owned(NamedTuple):
    """The fields of an owner, their version, and the time of the last change."""

    fields: FieldSet
    api_version: str
    time: str | None = None
    written: Mapping[str, Any] | None = None
    """The fieldsV1 of these fields, if they were read and have not changed since."""

    def with_fields(self, fields: FieldSet) -> "Owned":
        """The same owner with other fields."""
        return self if fields is self.fields else Owned(fields, self.api_version, self.time)

    def at(self, time: str | None) -> "Owned":
        """The same fields with another time."""
        return self if time == self.time else self._replace(time=time)


ManagedFields: TypeAlias = dict[Owner, Owned]
"""The owners of an object's fields."""


def read_managed_fields(entries: Any, *, canonical: bool = True) -> ManagedFields:
    """Parse the entries of an object.

    ``canonical`` means that this package wrote them, so they may be written unchanged.
    """
    found: ManagedFields = {}
    if entries is not None and not isinstance(entries, list):
        raise ManagedFieldsError("managed fields are no list")
    for index, entry in enumerate(cast("list[Any]", entries or [])):
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
        written: Any = given.get("fieldsV1") or {}
        try:
            fields = _read_fields(written)
        except (FieldSetError, TooDeep) as error:
            raise ManagedFieldsError(f"error decoding set: {error}") from error
        found[owner] = Owned(fields, api_version, given.get("time"), written if canonical else None)
    return found


def _read_fields(written: Any) -> FieldSet:
    try:
        printed = _encode(written)
    except RecursionError:
        raise TooDeep from None
    return _fields_of(printed) if len(printed) <= _LONGEST else FieldSet.parse(written)


@lru_cache(maxsize=256)
def _fields_of(printed: bytes) -> FieldSet:
    return FieldSet.parse(printed)


_encode = msgspec.json.Encoder().encode


def write_managed_fields(managed: ManagedFields) -> list[dict[str, Any]]:
    """The entries of an object in Kubernetes' order. They may share parts with those that were read."""
    return [_entry(owner, managed[owner]) for owner in sorted(managed, key=lambda owner: _order(owner, managed[owner]))]


def _entry(owner: Owner, owned: Owned) -> dict[str, Any]:
    entry: dict[str, Any] = {"manager": owner.manager} if owner.manager else {}
    entry["operation"] = owner.operation
    entry["apiVersion"] = owned.api_version
    if owned.time is not None:
        entry["time"] = owned.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = owned.fields.to_json() if owned.written is None else owned.written
    if owner.subresource:
        entry["subresource"] = owner.subresource
    return entry


def _order(owner: Owner, owned: Owned) -> tuple[Any, ...]:
    return (owner.operation, _seconds(owned), owner.manager, owned.api_version, owner.subresource)


def _seconds(owned: Owned) -> int:
    return 0 if owned.time is None else _seconds_of(owned.time)


@lru_cache(maxsize=256)
def _seconds_of(time: str) -> int:
    try:
        return int(parse_time(time).timestamp())
    except ValueError:
        return 0


def without_oldest(managed: ManagedFields) -> ManagedFields:
    """Merge the oldest updaters into one owner per version, so that at most `MAX_UPDATERS` are left."""
    updaters = [owner for owner in managed if owner.operation == "Update"]
    surplus = len(updaters) - MAX_UPDATERS
    if surplus <= 0:
        return managed
    left = dict(managed)
    first: dict[str, Owner] = {}
    gathered: dict[Owner, list[FieldSet]] = {}
    for owner in sorted(updaters, key=lambda owner: (_seconds(managed[owner]), owner)):
        owned = managed[owner]
        version = owned.api_version
        if version not in first:
            first[version] = owner
            continue
        shared = Owner.of(ANCIENT, "Update", version)
        if shared not in gathered:
            oldest = left[shared] if shared in left else left.pop(first[version])
            gathered[shared] = [oldest.fields]
        del left[owner]
        gathered[shared].append(owned.fields)
        left[shared] = Owned(owned.fields, version, owned.time)
        surplus -= 1
        if surplus == 0:
            break
    for shared, sets in gathered.items():
        left[shared] = left[shared].with_fields(_union(sets))
    return left


def _union(sets: list[FieldSet]) -> FieldSet:
    """The union of field sets, computed in pairs: a linear fold would copy the accumulated set thousands of times."""
    while len(sets) > 1:
        sets = [one | other for one, other in zip_longest(sets[::2], sets[1::2], fillvalue=EMPTY)]
    return sets[0]
