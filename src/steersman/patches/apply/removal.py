"""Remove what a manager applied before and does not apply now.

Guarantees:

- A field is removed if the manager applied it last time and no one owns it now; list items are removed with everything
  in them.
- Fields that would be removed along with it, but never belonged to this manager, stay.
- Managers of another version are compared in that version. If a version is no longer served, it prunes nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

from steersman.patches.applied_fields import held_set
from steersman.patches.apply.managed_fields import ManagedFields, Owned
from steersman.patches.apply.selection import with_named_fields, without_fields
from steersman.patches.apply.versions import UnknownVersion, Versions, converted
from steersman.patches.field_set import EMPTY, FieldSet
from steersman.patches.merge_schema import MergeSchema

_PUTTING_BACK: Final = "failed to prune fields: failed add back owned items: failed to convert {} object at version {}"
_TRYING: Final = "failed to prune fields: failed to convert merged object to last applied version"


def pruned(
    merged: Mapping[str, Any], managed: ManagedFields, *, last: Owned, api_version: str, versions: Versions
) -> Mapping[str, Any]:
    """Remove what the manager applied last time and no one owns now. The object stays in ``api_version``."""
    try:
        whole = converted(versions, merged, last.api_version, trying=_TRYING)
    except UnknownVersion:
        return merged
    schema = versions.schema(last.api_version)
    before = with_named_fields(last.fields, schema)
    if all(owned.api_version == last.api_version for owned in managed.values()):
        return without_fields(whole, _given_up(_named(whole, schema), before, managed, schema), schema)
    left: Mapping[str, Any] = without_fields(whole, before, schema)
    left = _with_owned(whole, left, managed, at=last.api_version, versions=versions)
    try:
        left = converted(versions, left, last.api_version)
    except UnknownVersion:
        return merged
    # Everything else that was removed along with it never belonged to this manager.
    gone = _named(whole, schema) - _named(left, schema)
    return converted(versions, without_fields(whole, gone & before, schema), api_version)


def _given_up(held: FieldSet, before: FieldSet, managed: ManagedFields, schema: MergeSchema) -> FieldSet:
    """The fields of an object that were applied before and that no one owns now, or that are inside such a field.

    Gives the same result as the way through the trees of several versions, without trees.
    """
    owned = EMPTY
    for each in managed.values():
        owned |= each.fields
    unowned = held.at_or_below(before) - with_named_fields(owned, schema)
    return held.at_or_below(unowned) & before


def _with_owned(
    merged: Mapping[str, Any], left: Mapping[str, Any], managed: ManagedFields, *, at: str, versions: Versions
) -> Mapping[str, Any]:
    """Restore the fields that others own, or the manager still does; first in the version in which it was pruned."""
    owned: dict[str, FieldSet] = {at: EMPTY}
    for each in managed.values():
        owned[each.api_version] = owned.get(each.api_version, EMPTY) | each.fields
    for api_version, fields in owned.items():
        try:
            merged = converted(versions, merged, api_version, trying=_PUTTING_BACK.format("merged", api_version))
            left = converted(versions, left, api_version, trying=_PUTTING_BACK.format("pruned", api_version))
            schema = versions.schema(api_version)
        except UnknownVersion:
            continue
        kept = _named(left, schema) | with_named_fields(fields, schema)
        left = without_fields(merged, _named(merged, schema) - kept, schema)
    return left


def _named(tree: Mapping[str, Any], schema: MergeSchema) -> FieldSet:
    return with_named_fields(held_set(tree, schema), schema)
