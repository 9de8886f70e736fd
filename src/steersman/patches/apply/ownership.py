"""Ownership: how an update or an apply changes the fields of other managers, and what an apply removes.

Guarantees:

- An update takes the fields that it changes from all other managers. An apply takes only fields that no one else owns
  with another value, or all if it is forced. Otherwise it raises `ApplyConflicts`, which names every owner and field.
- An apply removes what its manager applied before and does not apply now, unless another manager owns it too.
- Managers that wrote in another version are compared in that version. Managers of a version that is no longer served
  lose their entry.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from steersman.patches.apply.changes import NO_CHANGES, Changes, changes_between
from steersman.patches.apply.managed_fields import ManagedFields, Owned, Owner
from steersman.patches.apply.merge import merge_applied
from steersman.patches.apply.removal import pruned
from steersman.patches.apply.schema_changes import fitted
from steersman.patches.apply.versions import UnknownVersion, Versions, converted
from steersman.patches.errors import PatchError
from steersman.patches.field_set import FieldSet
from steersman.patches.path_element import Path, format_path


class ApplyConflict(NamedTuple):
    """A field that another manager owns with another value."""

    owner: Owner
    path: Path

    def __str__(self) -> str:
        return f"{self.owner.manager}: {format_path(self.path)}"


class ApplyConflicts(PatchError):
    """An apply without force would take fields from other managers."""

    def __init__(self, conflicts: list[ApplyConflict]) -> None:
        self.conflicts = conflicts
        super().__init__(f"others own what is applied: {'; '.join(str(conflict) for conflict in conflicts)}")


class Ownership:
    """The ownership of fields of a kind's objects, for writes in one of its versions."""

    def __init__(self, versions: Versions, api_version: str) -> None:
        self._versions = versions
        self._api_version = api_version

    def after_update(
        self, old: Mapping[str, Any], new: Mapping[str, Any], managed: ManagedFields
    ) -> tuple[ManagedFields, FieldSet]:
        """The managed fields after an update, and the fields that the update took."""
        managed = self._fitted(managed, old)
        changes = changes_between(old, new, self._versions.schema(self._api_version))
        if changes is NO_CHANGES:
            return managed, changes.added
        changes = changes.without(self._versions.ignored(self._api_version))
        left = self._taken(old, new, changes, managed, force=True)
        return left, changes.modified | changes.added

    def after_apply(
        self,
        live: Mapping[str, Any],
        applied: Mapping[str, Any],
        fields: FieldSet,
        managed: ManagedFields,
        *,
        owner: Owner,
        force: bool,
    ) -> tuple[Mapping[str, Any], ManagedFields]:
        """Merge an applied object, which holds ``fields``, into the live one.

        Returns it with the resulting managed fields.

        The merged object is the live one itself if nothing changes.
        """
        schema = self._versions.schema(self._api_version)
        managed = self._fitted(managed, live)
        merged: Mapping[str, Any] = merge_applied(live, applied, schema)
        last = managed.pop(owner, None)
        fields = fields.without(self._versions.ignored(self._api_version))
        own = Owned(fields, self._api_version, last.time if last is not None else None)
        owners = {**managed, owner: own}
        is_one_version = all(each.api_version == self._api_version for each in (last or own, *managed.values()))
        if last is not None and not (is_one_version and last.fields <= fields):
            # A manager that applies all its previous fields leaves nothing to prune.
            merged = pruned(merged, owners, last=last, api_version=self._api_version, versions=self._versions)
        if managed and merged is not live:
            changes = changes_between(live, merged, schema).without(self._versions.ignored(self._api_version))
            managed = self._taken(live, merged, changes, managed, force=force)
        if fields:
            managed[owner] = own
        return merged, managed

    def _taken(
        self, old: Mapping[str, Any], new: Mapping[str, Any], changes: Changes, managed: ManagedFields, *, force: bool
    ) -> ManagedFields:
        """Take the fields that changed between two states from their owners."""
        seen = {self._api_version: changes}
        left: ManagedFields = {}
        conflicts: list[ApplyConflict] = []
        for owner in sorted(managed):
            owned = managed[owner]
            try:
                found = seen.get(owned.api_version) or self._changes_in(owned.api_version, old, new)
            except UnknownVersion:
                continue
            seen[owned.api_version] = found
            lost = owned.fields & (found.modified | found.added)
            conflicts.extend(ApplyConflict(owner, path) for path in lost)
            fields = owned.fields - lost - found.removed
            if fields:
                left[owner] = owned.with_fields(fields)
        if conflicts and not force:
            raise ApplyConflicts(conflicts)
        return left

    def _changes_in(self, api_version: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Changes:
        before = converted(self._versions, old, api_version, trying="failed to convert old object")
        after = converted(self._versions, new, api_version, trying="failed to convert new object")
        found = changes_between(before, after, self._versions.schema(api_version))
        return found.without(self._versions.ignored(api_version))

    def _fitted(self, managed: ManagedFields, live: Mapping[str, Any]) -> ManagedFields:
        """The managers adapted to the current schemas, without those of versions that are no longer served."""
        found: ManagedFields = {}
        seen = {self._api_version}
        for owner, owned in managed.items():
            try:
                if owned.api_version not in seen:
                    # An object that cannot be converted to its owners' version cannot be written.
                    converted(self._versions, live, owned.api_version)
                    seen.add(owned.api_version)
                fields = fitted(owned.fields, self._versions.schema(owned.api_version))
            except UnknownVersion:
                continue
            if fields:
                found[owner] = owned.with_fields(fields)
        return found
