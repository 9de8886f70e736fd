"""Schemas: types -> structural schema -> CRD, and validation. Pure: no IO, no clock, no randomness.

Guarantees
- `crd_for` turns resource classes into a CustomResourceDefinition that Kubernetes accepts and enforces. A type or a
  marker that it would not accept raises `TypeError` with the class, the field and what to write.
- `validate` and `problems` agree with the server about every value, except for CEL rules, and use its messages.
- Everything also works on plain JSON trees, so that client and server share one implementation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.schemas.admission import DefaultsTooLarge as DefaultsTooLarge, admitted as admitted, pruned as pruned
from steersman.schemas.checks import problems as problems, validate as validate
from steersman.schemas.definition import (
    crd_for as crd_for,
    crd_yaml as crd_yaml,
    undescribed_crd as undescribed_crd,
)
from steersman.schemas.embedded_objects import embedded_problems as embedded_problems
from steersman.schemas.form_constraints import constraint_check as constraint_check
from steersman.schemas.list_types import list_type_problems as list_type_problems
from steersman.schemas.object_form import ObjectForm as ObjectForm, form_of as form_of
from steersman.schemas.quick_validation import quick_check as quick_check
from steersman.schemas.structural_schema import (
    QUANTITY_PATTERN as QUANTITY_PATTERN,
    Misuse as Misuse,
    readable_schema as readable_schema,
    schema_for as schema_for,
)
from steersman.schemas.validation import (
    SchemaTooDeep as SchemaTooDeep,
    schema_problems as schema_problems,
    validate_tree as validate_tree,
)

# Imported on first use: only some programs need them.
if TYPE_CHECKING:
    from steersman.schemas.docstrings import (
        class_description as class_description,
        own_descriptions as own_descriptions,
    )
    from steersman.schemas.field_path import PathRefused as PathRefused, resolve_path as resolve_path
    from steersman.schemas.structure.defaults import default_problems as default_problems, is_pruned as is_pruned
    from steersman.schemas.structure.keywords import (
        SCHEMA_TYPES as SCHEMA_TYPES,
        Leniency as Leniency,
        is_atomic_set as is_atomic_set,
        keyword_problems as keyword_problems,
        map_key_problems as map_key_problems,
    )
    from steersman.schemas.structure.rules import (
        conversion_problem as conversion_problem,
        is_schema as is_schema,
        structural_problems as structural_problems,
    )
    from steersman.schemas.structure.texts import (
        SCHEMA_FIELDS as SCHEMA_FIELDS,
        list_text as list_text,
        pointer_text as pointer_text,
        printed_schema as printed_schema,
        struct_text as struct_text,
    )
    from steersman.schemas.versions.definition_changes import (
        DefinitionChange as DefinitionChange,
        definition_changes as definition_changes,
    )
    from steersman.schemas.versions.definition_losses import (
        removed_parts as removed_parts,
        version_differences as version_differences,
    )
    from steersman.schemas.versions.partial_objects import convert_parts as convert_parts, lacks_parts as lacks_parts
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.schemas.docstrings": ["class_description", "own_descriptions"],
            "steersman.schemas.field_path": ["PathRefused", "resolve_path"],
            "steersman.schemas.structure.defaults": ["default_problems", "is_pruned"],
            "steersman.schemas.structure.keywords": [
                "SCHEMA_TYPES",
                "Leniency",
                "is_atomic_set",
                "keyword_problems",
                "map_key_problems",
            ],
            "steersman.schemas.structure.rules": ["conversion_problem", "is_schema", "structural_problems"],
            "steersman.schemas.structure.texts": [
                "SCHEMA_FIELDS",
                "list_text",
                "pointer_text",
                "printed_schema",
                "struct_text",
            ],
            "steersman.schemas.versions.definition_changes": ["DefinitionChange", "definition_changes"],
            "steersman.schemas.versions.definition_losses": ["removed_parts", "version_differences"],
            "steersman.schemas.versions.partial_objects": ["convert_parts", "lacks_parts"],
        },
    )

__all__ = [
    "admitted",
    "crd_for",
    "crd_yaml",
    "problems",
    "schema_for",
    "validate",
    "validate_tree",
]
