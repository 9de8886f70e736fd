"""The field manager: keeps ``metadata.managedFields`` of one kind's objects correct through every write.

Guarantees:

- `FieldManager.update` and `FieldManager.apply` leave objects and managed fields as kube-apiserver 1.37 does.
- An object without recorded managers stays so under updates. At its first apply, its fields go to
  ``before-first-apply``. An update that sends ``[]`` or ``[{}]`` clears all managers.
- ``kubectl`` may apply over what its client-side apply wrote, and that annotation is kept up to date.
- Times change only when something else does.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from steersman.golang import printed_json
from steersman.patches.applied_fields import STRIPPED_FIELDS, held_set, least_length
from steersman.patches.apply.changes import changes_between
from steersman.patches.apply.managed_fields import (
    ManagedFields,
    ManagedFieldsError,
    Owned,
    Owner,
    read_managed_fields,
    without_oldest,
    write_managed_fields,
)
from steersman.patches.apply.ownership import ApplyConflicts, Ownership
from steersman.patches.apply.versions import Versions
from steersman.patches.errors import PatchError, TooDeep
from steersman.patches.field_set import EMPTY, FieldSet
from steersman.patches.path_element import PathElement
from steersman.patches.trees import quickly_equal

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_BEFORE: Final = "before-first-apply"
_KUBECTL: Final = "kubectl"
#: Fields that hold little but what is never recorded.
_STRIPPED: Final = frozenset({"apiVersion", "kind", "metadata"})
_ANNOTATIONS_MAX: Final = 256 * 1024


class FieldManager:
    """Manages the fields of a kind through one endpoint: the main one, or a subresource."""

    def __init__(self, versions: Versions, *, api_version: str, subresource: str = "") -> None:
        self._versions = versions
        self._api_version = api_version
        self._subresource = subresource
        self._ownership = Ownership(versions, api_version)

    def update(
        self,
        live: Mapping[str, Any] | None,
        new: Mapping[str, Any],
        *,
        manager: str,
        now: str,
        empty: Mapping[str, Any],
        fits: Callable[[int], bool] | None = None,
    ) -> dict[str, Any]:
        """The object to store in place of ``new``; ``empty`` is an object of the kind before anything is set.

        ``fits`` returns whether the object has room for managed fields of at least this many characters; if not, the
        object gets none.
        """
        try:
            managed = self._managed_before(live or {}, new)
            new = _without_managed(new)
            if live is not None and not managed:
                return dict(new)
            managed = self._updated(live if live is not None else empty, new, managed, manager=manager, now=now)
        except RecursionError:
            raise TooDeep from None
        if fits is not None and not fits(sum(owned.fields.least_length() for owned in managed.values())):
            return dict(new)
        return _with_managed(new, managed)

    def apply(
        self,
        live: Mapping[str, Any],
        applied: Mapping[str, Any],
        *,
        manager: str,
        now: str,
        force: bool,
        empty: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The object to store after an apply, before defaults. Raises `ApplyConflicts` and `SchemaMismatch`."""
        # Values that cannot be merged, and duplicate items, are rejected first.
        fields = held_set(applied, self._versions.schema(self._api_version), strict=True)
        managed = read_managed_fields(_entries(live))
        bare = _without_managed(live)
        owner = Owner.of(manager, "Apply", self._api_version, self._subresource)
        after = self._ownership.after_apply
        try:
            if not managed:
                managed = self._updated(empty, bare, managed, manager=_BEFORE, now=now)
            try:
                merged, left = after(bare, applied, fields, managed, owner=owner, force=force)
            except ApplyConflicts as refused:
                self._check_taken_over(refused, live, manager)
                merged, left = after(bare, applied, fields, managed, owner=owner, force=True)
        except RecursionError:
            raise TooDeep from None
        self._record(left, owner, managed.get(owner), now=None if quickly_equal(merged, bare) else now)
        if manager == _KUBECTL:
            merged = _with_last_applied(merged, applied)
        return _with_managed(merged, left)

    def recorded(self, applied: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
        """The part of an applied object that is stored, and how many characters its managed fields have at least."""
        ignored = self._versions.ignored(self._api_version)
        stored = {name: value for name, value in applied.items() if (PathElement.field(name),) not in ignored}
        own = {name: value for name, value in stored.items() if name not in _STRIPPED}
        return stored, least_length(own, self._versions.schema(self._api_version))

    def _managed_before(self, live: Mapping[str, Any], new: Mapping[str, Any]) -> ManagedFields:
        """The managed fields before the write.

        An update of the main resource may set them; unreadable or absent ones are ignored.
        """
        given, held = None if self._subresource else _entries(new), _entries(live)
        if given is not None and (not given or given == [{}]):
            return {}
        for entries, canonical in ((given if given != held else None, False), (held, True)):
            try:
                if found := read_managed_fields(entries, canonical=canonical):
                    return found
            except ManagedFieldsError:
                continue
        return {}

    def _updated(
        self, old: Mapping[str, Any], new: Mapping[str, Any], managed: ManagedFields, *, manager: str, now: str
    ) -> ManagedFields:
        left, taken = self._ownership.after_update(_without_managed(old), new, managed)
        taken -= STRIPPED_FIELDS
        if taken:
            owner = Owner.of(manager or "unknown", "Update", self._api_version, self._subresource)
            own = left.get(owner) or Owned(EMPTY, self._api_version)
            left[owner] = own.with_fields(own.fields | taken).at(now)
        return without_oldest(left)

    def _record(self, left: ManagedFields, owner: Owner, last: Owned | None, *, now: str | None) -> None:
        """Record what an owner applied, and when, if that changed anything."""
        own = left.pop(owner, None)
        fields = own.fields - STRIPPED_FIELDS if own is not None else EMPTY
        if not fields:
            return
        if last is not None and last.api_version == self._api_version and last.fields == fields:
            left[owner] = last if now is None else last.at(now)
        else:
            left[owner] = Owned(fields, self._api_version, now or (last.time if last is not None else None))

    def _check_taken_over(self, refused: ApplyConflicts, live: Mapping[str, Any], manager: str) -> None:
        """Let kubectl take what its client-side apply wrote and no one has changed since. Raises for everything else."""
        allowed = self._last_applied_set(live) if manager == _KUBECTL else EMPTY
        rest = [conflict for conflict in refused.conflicts if conflict.path not in allowed]
        if rest:
            raise ApplyConflicts(rest) from None

    def _last_applied_set(self, live: Mapping[str, Any]) -> FieldSet:
        """The fields that client-side apply wrote and no one has changed since."""
        annotations: Any = _metadata(live).get("annotations") or {}
        try:
            last: Any = json.loads(annotations.get(LAST_APPLIED) or "")
        except ValueError:
            return EMPTY
        if not isinstance(last, dict) or cast("dict[str, Any]", last).get("apiVersion") != self._api_version:
            return EMPTY
        schema = self._versions.schema(self._api_version)
        try:
            held = held_set(cast("dict[str, Any]", last), schema)
        except PatchError:
            return EMPTY
        changes = changes_between(cast("dict[str, Any]", last), live, schema)
        return held - changes.modified - changes.added - changes.removed


def _metadata(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = tree.get("metadata")
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _entries(tree: Mapping[str, Any]) -> list[Any] | None:
    return _metadata(tree).get("managedFields")


def _without_managed(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = _metadata(tree)
    if "managedFields" not in metadata:
        return tree
    return {**tree, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _with_managed(tree: Mapping[str, Any], managed: ManagedFields) -> dict[str, Any]:
    bare = dict(_without_managed(tree))
    if managed:
        bare["metadata"] = {**_metadata(bare), "managedFields": write_managed_fields(managed)}
    return bare


def _with_last_applied(tree: Mapping[str, Any], applied: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = _metadata(tree)
    annotations: dict[str, Any] = dict(metadata.get("annotations") or {})
    if not annotations.get(LAST_APPLIED):
        return tree
    given = dict(applied)
    given_metadata = dict(_metadata(applied))
    if "annotations" in given_metadata:
        given_annotations: dict[str, Any] = dict(given_metadata["annotations"] or {})
        given_annotations.pop(LAST_APPLIED, None)
        given_metadata["annotations"] = given_annotations
    given["metadata"] = given_metadata
    annotations[LAST_APPLIED] = f"{printed_json(given)}\n"
    if sum(len(f"{name}{value}".encode()) for name, value in annotations.items()) > _ANNOTATIONS_MAX:
        del annotations[LAST_APPLIED]
    return {**tree, "metadata": {**metadata, "annotations": annotations}}
