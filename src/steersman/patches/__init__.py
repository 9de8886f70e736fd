"""Patches: changes to JSON objects, and ownership of fields. Pure: JSON trees in, JSON trees out.

Guarantees:

- **No argument is ever changed.** Results may share parts with arguments.
- **As in Kubernetes.** JSON patches apply, field sets print and combine, and an applied object owns exactly the fields
  as in kube-apiserver 1.37. Every deviation is named in its module.
- **Equal in meaning is equal.** `is_subset` and `semantically_equal` see through the notations of quantities, times,
  bytes and list order. In doubt, they answer no.
- **Safe on hostile input.** Any JSON gives a result or a `PatchError`. Values that nest too deeply raise `TooDeep`,
  never ``RecursionError``.

Content:

- JSON patch (RFC 6902): `JsonPatch` and its operations in ``steersman.patches.json_patch`` (``json_patch.add(...)``),
  and `json_patch_between`.
- Merge patch (RFC 7386): `apply_merge_patch`, `merge_patch_between`.
- Strategic merge patch: `apply_strategic_merge`, with the schema of a built-in kind.
- Ownership: `FieldSet`, `PathElement`, `format_path`; `applied_set` with a `MergeSchema`.
- Server-side apply: `FieldManager` over the `Versions` of a kind; `ApplyConflicts`; `extract_applied_tree` for one manager's
  intent.
- Comparison: `is_subset`, `semantically_equal`, `difference`; `changes_nothing` and `projection` for applied fields.
"""

from steersman.patches import json_patch as json_patch
from steersman.patches.applied_fields import (
    STATUS_FIELDS as STATUS_FIELDS,
    STRIPPED_FIELDS as STRIPPED_FIELDS,
    applied_set as applied_set,
    item_text as item_text,
)
from steersman.patches.apply.extraction import extract_applied_tree as extract_applied_tree
from steersman.patches.apply.field_manager import FieldManager as FieldManager
from steersman.patches.apply.managed_fields import (
    ManagedFields as ManagedFields,
    ManagedFieldsError as ManagedFieldsError,
    Owned as Owned,
    Owner as Owner,
    read_managed_fields as read_managed_fields,
    write_managed_fields as write_managed_fields,
)
from steersman.patches.apply.manager_names import (
    moved_managers as moved_managers,
    renamed_managers as renamed_managers,
)
from steersman.patches.apply.merge import merge_applied as merge_applied
from steersman.patches.apply.ownership import ApplyConflict as ApplyConflict, ApplyConflicts as ApplyConflicts
from steersman.patches.apply.selection import only_fields as only_fields
from steersman.patches.apply.versions import (
    NotConvertible as NotConvertible,
    UnknownVersion as UnknownVersion,
    Versions as Versions,
)
from steersman.patches.comparison import (
    difference as difference,
    is_subset as is_subset,
    semantically_equal as semantically_equal,
)
from steersman.patches.errors import (
    MAX_DEPTH as MAX_DEPTH,
    CopiesTooLarge as CopiesTooLarge,
    FieldSetError as FieldSetError,
    JsonPatchError as JsonPatchError,
    JsonPatchTestFailed as JsonPatchTestFailed,
    PatchError as PatchError,
    SchemaMismatch as SchemaMismatch,
    TooDeep as TooDeep,
)
from steersman.patches.field_set import FieldSet as FieldSet
from steersman.patches.json_patch import (
    MAX_COPIED_BYTES as MAX_COPIED_BYTES,
    MAX_OPERATIONS as MAX_OPERATIONS,
    JsonPatch as JsonPatch,
    Operation as Operation,
    apply_operations as apply_operations,
    growth_of as growth_of,
    pointer as pointer,
)
from steersman.patches.json_patch_difference import json_patch_between as json_patch_between
from steersman.patches.merge_patch import (
    apply_merge_patch as apply_merge_patch,
    merge_patch_between as merge_patch_between,
)
from steersman.patches.merge_schema import MergeSchema as MergeSchema, Resolver as Resolver
from steersman.patches.no_op_apply import changes_nothing as changes_nothing, projection as projection
from steersman.patches.path_element import Path as Path, PathElement as PathElement, format_path as format_path
from steersman.patches.strategic_merge import (
    StrategicMergeError as StrategicMergeError,
    apply_strategic_merge as apply_strategic_merge,
)
from steersman.patches.trees import check_depth as check_depth, json_equal as json_equal, quickly_equal as quickly_equal

__all__ = [
    "json_patch",
]
