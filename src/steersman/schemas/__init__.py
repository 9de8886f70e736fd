"""Schemas: types -> structural schema -> CRD, and validation. Pure: no IO, no clock, no randomness.

Guarantees
- `crd_for` turns resource classes into a CustomResourceDefinition that Kubernetes accepts and enforces. A type or a
  marker that it would not accept raises `TypeError` with the class, the field and what to write.
- `validate` and `problems` agree with the server about every value, except for CEL rules, and use its messages.
- Everything also works on plain JSON trees, so that client and server share one implementation.
"""

from steersman.objects.field_problems import FieldProblem as FieldProblem
from steersman.schemas.admission import admitted as admitted
from steersman.schemas.checking import problems as problems, validate as validate
from steersman.schemas.definition import crd_for as crd_for, crd_yaml as crd_yaml
from steersman.schemas.structural import (
    QUANTITY_PATTERN as QUANTITY_PATTERN,
    readable_schema as readable_schema,
    schema_for as schema_for,
)
from steersman.schemas.validation import SchemaTooDeep as SchemaTooDeep, validate_tree as validate_tree
