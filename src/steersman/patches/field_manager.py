"""The field manager: keeps ``metadata.managedFields`` of one kind's objects true through every write.

Guarantees:

- `FieldManager.update` and `FieldManager.apply` leave objects and managed fields as kube-apiserver 1.36 does.
- An object that nobody is recorded for stays so under updates; what it held before its first apply then belongs to
  ``before-first-apply``. An update that sends ``[]`` or ``[{}]`` forgets all owners.
- ``kubectl`` may apply over what its client-side apply wrote, and keeps that annotation up to date.
- Times change only when something else does.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from steersman.patches.applied_set import STRIPPED_FIELDS, applied_set, held_set
from steersman.patches.changes import changes_between
from steersman.patches.errors import PatchError
from steersman.patches.field_set import EMPTY, FieldSet
from steersman.patches.managed_fields import (
    ManagedFields,
    ManagedFieldsError,
    Owned,
    Owner,
    non_empty,
    read_managed_fields,
    without_oldest,
    write_managed_fields,
)
from steersman.patches.ownership import ApplyConflicts, Versions, record_apply, record_update

__all__ = ["FieldManager"]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_BEFORE: Final = "before-first-apply"
_KUBECTL: Final = "kubectl"
_CURRENT: Final = Owner("", "Update", "", "the operation under way")


class FieldManager:
    """Manages the fields of a kind through one of its endpoints: the main one, or a subresource."""

    def __init__(self, versions: Versions, *, api_version: str, subresource: str = "") -> None:
        self._versions = versions
        self._api_version = api_version
        self._subresource = subresource

    def update(
        self,
        live: Mapping[str, Any] | None,
        new: Mapping[str, Any],
        *,
        manager: str,
        now: str,
        empty: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The object to store in place of ``new``; ``empty`` is what an object of the kind is before anything is set."""
        managed = self._managed_before(live or {}, new)
        new = _without_managed(new)
        if live is not None and not managed:
            return dict(new)
        managed = self._update(live if live is not None else empty, new, managed, manager=manager, now=now)
        return _with_managed(new, without_oldest(managed))

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
        """The object to store after an apply, before defaults; raises `ApplyConflicts` and `SchemaMismatch`."""
        # a value that cannot be merged, or an item that is there twice, is refused before anything is done
        applied_set(applied, self._versions.schema(self._api_version))
        managed = read_managed_fields(_entries(live))
        if not managed:
            managed = self._update(empty, _without_managed(live), managed, manager=_BEFORE, now=now)
            managed = without_oldest(managed)
        try:
            merged, managed = self._apply(live, applied, managed, manager=manager, now=now, force=force)
        except ApplyConflicts as refused:
            if manager != _KUBECTL:
                raise
            allowed = self._last_applied_set(live)
            rest = [each for each in refused.conflicts if each.path not in allowed]
            if rest:
                raise ApplyConflicts(rest) from None
            merged, managed = self._apply(live, applied, managed, manager=manager, now=now, force=True)
        if manager == _KUBECTL:
            merged = _with_last_applied(merged, applied)
        return _with_managed(merged, managed)

    def _managed_before(self, live: Mapping[str, Any], new: Mapping[str, Any]) -> ManagedFields:
        """Owners may be set by an update of the main resource; what cannot be read, or is left out, stays as it was."""
        given = None if self._subresource else _entries(new)
        if given is not None and (not given or given == [{}]):
            return {}
        for entries in (given, _entries(live)):
            try:
                if found := read_managed_fields(entries):
                    return found
            except ManagedFieldsError:
                continue
        return {}

    def _update(
        self, old: Mapping[str, Any], new: Mapping[str, Any], managed: ManagedFields, *, manager: str, now: str
    ) -> ManagedFields:
        version = self._api_version
        left = record_update(old, new, managed, owner=_CURRENT, api_version=version, versions=self._versions)
        taken = left.pop(_CURRENT, None)
        fields = taken.fields - STRIPPED_FIELDS if taken is not None else EMPTY
        if fields:
            owner = Owner.of(manager or "unknown", "Update", version, self._subresource)
            kept = left[owner].fields if owner in left else EMPTY
            left[owner] = Owned(fields | kept, version, now)
        return left

    def _apply(
        self,
        live: Mapping[str, Any],
        applied: Mapping[str, Any],
        managed: ManagedFields,
        *,
        manager: str,
        now: str,
        force: bool,
    ) -> tuple[Mapping[str, Any], ManagedFields]:
        owner = Owner.of(manager, "Apply", self._api_version, self._subresource)
        merged, left = record_apply(
            live, applied, managed, owner=owner, api_version=self._api_version, versions=self._versions, force=force
        )
        own = left.get(owner, Owned(EMPTY, self._api_version))
        time = own.time if merged == live else now
        left[owner] = Owned(own.fields - STRIPPED_FIELDS, own.api_version, time)
        return merged, non_empty(left)

    def _last_applied_set(self, live: Mapping[str, Any]) -> FieldSet:
        """What client-side apply wrote and nobody has changed since."""
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
    text = json.dumps(given, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    return {**tree, "metadata": {**metadata, "annotations": annotations | {LAST_APPLIED: text}}}
