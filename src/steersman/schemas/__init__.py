"""Schemas: types -> structural schema -> CRD, and validation. Pure: no IO, no clock, no randomness.

Guarantees
- `crd_for` turns resource classes into a CustomResourceDefinition that Kubernetes accepts and enforces. A type or a
  marker that it would not accept raises `TypeError` with the class, the field and what to write.
- `validate` and `problems` agree with the server about every value, except for CEL rules, and use its messages.
- Everything also works on plain JSON trees, so that client and server share one implementation.
"""

from steersman.objects.field_problems import FieldProblem
from steersman.schemas.admission import admitted
from steersman.schemas.checking import problems, validate
from steersman.schemas.definition import crd_for, crd_yaml
from steersman.schemas.structural import QUANTITY_PATTERN, readable_schema, schema_for
from steersman.schemas.validation import SchemaTooDeep, validate_tree

__all__ = [
    "QUANTITY_PATTERN",
    "FieldProblem",
    "SchemaTooDeep",
    "admitted",
    "crd_for",
    "crd_yaml",
    "problems",
    "readable_schema",
    "schema_for",
    "validate",
    "validate_tree",
]
