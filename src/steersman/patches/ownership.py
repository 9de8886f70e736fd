"""Ownership: what an update or an apply does to the fields of others, and what an apply leaves behind.

Guarantees:

- An update takes what it changes from everybody else. An apply takes only what nobody else owns with another value, or all
  of it if it is forced; otherwise it raises `ApplyConflicts`, which names every owner and field.
- An apply removes what its manager applied before and does not now, unless somebody else owns it too.
- Owners that wrote in another version are compared in theirs; those of a version that is no more lose their entry.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from steersman.patches.applied_set import held_set
from steersman.patches.changes import Changes, changes_between
from steersman.patches.errors import PatchError
from steersman.patches.field_set import EMPTY, FieldSet, Path, format_path, make_field_set
from steersman.patches.managed_fields import ManagedFields, Owned, Owner, non_empty
from steersman.patches.merge_schema import DEDUCED, MergeSchema
from steersman.patches.merging import merge_applied
from steersman.patches.selecting import with_named_fields, without_fields

__all__ = ["ApplyConflict", "ApplyConflicts", "UnknownVersion", "Versions"]


class UnknownVersion(PatchError):
    """A version of a kind that is not served any more."""


class Versions(Protocol):
    """The versions of a kind: how each merges, what its endpoints ignore, and how objects pass from one to another."""

    def schema(self, api_version: str) -> MergeSchema:
        """The merge schema of a version; raises `UnknownVersion`."""
        ...

    def ignored(self, api_version: str) -> FieldSet:
        """The fields that requests to this endpoint do not change; nobody owns them by it."""
        ...

    def convert(self, tree: Mapping[str, Any], api_version: str) -> Mapping[str, Any]:
        """The object in another version; raises `UnknownVersion`."""
        ...


class ApplyConflict(NamedTuple):
    """A field that somebody else owns with another value."""

    owner: Owner
    path: Path

    def __str__(self) -> str:
        return f"{self.owner.manager}: {format_path(self.path)}"


class ApplyConflicts(PatchError):
    """An apply would take fields from others, and was not told to."""

    def __init__(self, conflicts: list[ApplyConflict]) -> None:
        self.conflicts = conflicts
        super().__init__(f"others own what is applied: {'; '.join(str(each) for each in conflicts)}")


def record_update(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    managed: ManagedFields,
    *,
    owner: Owner,
    api_version: str,
    versions: Versions,
) -> ManagedFields:
    """Tell what everybody owns after an update; the owner's time is left as it was."""
    managed = _fitted(old, managed, versions)
    left, changes = _taken(old, new, managed, owner=owner, api_version=api_version, versions=versions, force=True)
    own = left.get(owner, Owned(EMPTY, api_version))
    fields = (own.fields - changes.removed) | changes.modified | changes.added
    left[owner] = Owned(fields.without(versions.ignored(api_version)), api_version, own.time)
    return non_empty(left)


def record_apply(
    live: Mapping[str, Any],
    applied: Mapping[str, Any],
    managed: ManagedFields,
    *,
    owner: Owner,
    api_version: str,
    versions: Versions,
    force: bool,
) -> tuple[dict[str, Any], ManagedFields]:
    """Merge an applied object into the live one, and tell what everybody owns then."""
    schema = versions.schema(api_version)
    managed = _fitted(live, managed, versions)
    merged = merge_applied(live, applied, schema)
    last = managed.get(owner)
    fields = held_set(applied, schema).without(versions.ignored(api_version))
    managed[owner] = Owned(fields, api_version, last.time if last is not None else None)
    if last is not None and not (last.api_version == api_version and last.fields <= fields):
        # who applies all that it applied before leaves nothing behind
        merged = dict(_pruned(merged, managed, last=last, api_version=api_version, versions=versions))
    left, _ = _taken(live, merged, managed, owner=owner, api_version=api_version, versions=versions, force=force)
    return merged, left


def _taken(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    managed: ManagedFields,
    *,
    owner: Owner,
    api_version: str,
    versions: Versions,
    force: bool,
) -> tuple[ManagedFields, Changes]:
    """Take from others what changed between two states."""
    whole = changes_between(old, new, versions.schema(api_version))
    seen = {api_version: _without_ignored(whole, versions.ignored(api_version))}
    left: ManagedFields = {}
    conflicts: list[ApplyConflict] = []
    for other in sorted(managed):
        owned = managed[other]
        if other == owner:
            left[other] = owned
            continue
        try:
            changes = seen.get(owned.api_version) or _changes_in(old, new, owned.api_version, versions)
        except UnknownVersion:
            continue
        seen[owned.api_version] = changes
        lost = owned.fields & (changes.modified | changes.added)
        conflicts.extend(ApplyConflict(other, path) for path in lost)
        left[other] = owned._replace(fields=(owned.fields - lost) - changes.removed)
    if conflicts and not force:
        raise ApplyConflicts(conflicts)
    return non_empty(left), seen[api_version]


def _changes_in(old: Mapping[str, Any], new: Mapping[str, Any], api_version: str, versions: Versions) -> Changes:
    before, after = versions.convert(old, api_version), versions.convert(new, api_version)
    found = changes_between(before, after, versions.schema(api_version))
    return _without_ignored(found, versions.ignored(api_version))


def _without_ignored(changes: Changes, ignored: FieldSet) -> Changes:
    return Changes(*(each.without(ignored) for each in changes)) if ignored else changes


def _pruned(
    merged: Mapping[str, Any], managed: ManagedFields, *, last: Owned, api_version: str, versions: Versions
) -> Mapping[str, Any]:
    """Remove what the manager applied last time and nobody owns now."""
    try:
        whole = versions.convert(merged, last.api_version)
    except UnknownVersion:
        return merged
    schema = versions.schema(last.api_version)
    pruned: Mapping[str, Any] = without_fields(whole, with_named_fields(last.fields, schema), schema)
    pruned = _with_owned(whole, pruned, managed, at=last.api_version, versions=versions)
    try:
        pruned = versions.convert(pruned, last.api_version)
    except UnknownVersion:
        return merged
    # whatever else went with it was never this manager's
    gone = _named(whole, schema) - _named(pruned, schema)
    pruned = without_fields(whole, gone & with_named_fields(last.fields, schema), schema)
    return versions.convert(pruned, api_version)


def _with_owned(
    merged: Mapping[str, Any], pruned: Mapping[str, Any], managed: ManagedFields, *, at: str, versions: Versions
) -> Mapping[str, Any]:
    """Put back what others own, or the manager itself still does; first in the version in which it was pruned."""
    owned: dict[str, FieldSet] = {at: EMPTY}
    for each in managed.values():
        owned[each.api_version] = owned.get(each.api_version, EMPTY) | each.fields
    for api_version, fields in owned.items():
        try:
            merged, pruned = versions.convert(merged, api_version), versions.convert(pruned, api_version)
            schema = versions.schema(api_version)
        except UnknownVersion:
            continue
        kept = _named(pruned, schema) | with_named_fields(fields, schema)
        pruned = without_fields(merged, _named(merged, schema) - kept, schema)
    return pruned


def _named(tree: Mapping[str, Any], schema: MergeSchema) -> FieldSet:
    return with_named_fields(held_set(tree, schema), schema)


def _fitted(live: Mapping[str, Any], managed: ManagedFields, versions: Versions) -> ManagedFields:
    """Field sets that were written when a place merged by its parts, which is atomic now, own it as a whole."""
    fitted: ManagedFields = {}
    for owner, owned in managed.items():
        try:
            versions.convert(live, owned.api_version)
            fields = _fit(owned.fields, versions.schema(owned.api_version))
        except UnknownVersion:
            continue
        fitted[owner] = owned._replace(fields=fields)
    return fitted


def _fit(fields: FieldSet, schema: MergeSchema) -> FieldSet:
    nodes: dict[str, tuple[bool, FieldSet]] = {}
    for text, (member, below) in fields.nodes.items():
        place = _known_place(schema, text)
        if place is None or not below:
            nodes[text] = (member, below)
        elif _is_atomic(place, below):
            nodes[text] = (True, EMPTY)
        else:
            nodes[text] = (member, _fit(below, place))
    return make_field_set(nodes)


def _known_place(schema: MergeSchema, text: str) -> MergeSchema | None:
    if not text.startswith("f:"):
        return schema.items if schema.allows_list else None
    place = schema.field(text[2:]) if schema.allows_map else None
    return None if place is DEDUCED else place


def _is_atomic(place: MergeSchema, below: FieldSet) -> bool:
    named = any(text.startswith("f:") for text in below.nodes)
    return place.is_atomic_map and place.allows_map if named else place.allows_list and place.list_type == "atomic"
