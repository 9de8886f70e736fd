"""Patches: changes to JSON objects, and ownership of fields. Pure: JSON trees in, JSON trees out.

Guarantees:

- **No argument is ever changed.** Results may share parts with arguments.
- **As in Kubernetes.** JSON patches apply, field sets print and combine, and an applied object owns exactly the fields
  as in kube-apiserver 1.36. Every deviation is named in its module.
- **Equal in meaning is equal.** `is_subset` and `semantically_equal` see through the notations of quantities, times,
  bytes and list order. In doubt, they answer no.
- **Safe on hostile input.** Any JSON gives a result or a `PatchError`. Values that nest too deeply raise `TooDeep`,
  never ``RecursionError``.

Content:

- JSON patch (RFC 6902): `JsonPatch` and its operations in ``steersman.patches.json_patch`` (``json_patch.add(...)``).
- Merge patch (RFC 7386): `apply_merge_patch`, `merge_patch_between`.
- Strategic merge patch: `apply_strategic_merge`, with the schema of a built-in kind.
- Ownership: `FieldSet`, `PathElement`, `format_path`; `applied_set` with a `MergeSchema`.
- Server-side apply: `FieldManager` over the `Versions` of a kind; `ApplyConflicts`; `extract_applied` for one manager's
  intent.
- Comparison: `is_subset`, `semantically_equal`, `difference`; `changes_nothing` and `projection` for applied fields.
"""

from steersman.patches import json_patch
from steersman.patches.applied_set import STATUS_FIELDS, STRIPPED_FIELDS, applied_set
from steersman.patches.comparison import difference, is_subset, semantically_equal
from steersman.patches.errors import (
    MAX_DEPTH,
    FieldSetError,
    JsonPatchError,
    JsonPatchTestFailed,
    PatchError,
    SchemaMismatch,
    TooDeep,
)
from steersman.patches.extracting import extract_applied
from steersman.patches.field_manager import FieldManager
from steersman.patches.field_set import FieldSet
from steersman.patches.json_patch import JsonPatch, Operation, pointer
from steersman.patches.managed_fields import Owner
from steersman.patches.merge_patch import apply_merge_patch, merge_patch_between
from steersman.patches.merge_schema import MergeSchema, Resolver
from steersman.patches.ownership import ApplyConflict, ApplyConflicts
from steersman.patches.path_element import Path, PathElement, format_path
from steersman.patches.selecting import only_fields
from steersman.patches.strategic_merge import StrategicMergeError, apply_strategic_merge
from steersman.patches.unchanged import changes_nothing, projection
from steersman.patches.versions import NotConvertible, UnknownVersion, Versions

__all__ = [
    "MAX_DEPTH",
    "STATUS_FIELDS",
    "STRIPPED_FIELDS",
    "ApplyConflict",
    "ApplyConflicts",
    "FieldManager",
    "FieldSet",
    "FieldSetError",
    "JsonPatch",
    "JsonPatchError",
    "JsonPatchTestFailed",
    "MergeSchema",
    "NotConvertible",
    "Operation",
    "Owner",
    "PatchError",
    "Path",
    "PathElement",
    "Resolver",
    "SchemaMismatch",
    "StrategicMergeError",
    "TooDeep",
    "UnknownVersion",
    "Versions",
    "applied_set",
    "apply_merge_patch",
    "apply_strategic_merge",
    "changes_nothing",
    "difference",
    "extract_applied",
    "format_path",
    "is_subset",
    "json_patch",
    "merge_patch_between",
    "only_fields",
    "pointer",
    "projection",
    "semantically_equal",
]
