"""Schemas: types <-> structural schema <-> CRD, and validation. Pure: no IO, no clock, no randomness.

Guarantees
- `crd_for` turns resource classes into a CustomResourceDefinition that Kubernetes accepts and enforces. A type or a
  marker that it would not accept raises `TypeError` with the class, the field and what to write.
- `validate` and `problems` agree with the server about every value, except for CEL rules, and use its messages.
- Everything also works on plain JSON trees, so that client and server share one implementation.
- `read_openapi` and `read_crds` read the kinds of servers and CRD files; `write_models` writes them as Python.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steersman.schemas.admission import admitted
from steersman.schemas.checking import problems, validate
from steersman.schemas.definition import crd_for, crd_yaml
from steersman.schemas.field_problems import FieldProblem
from steersman.schemas.structural import schema_for
from steersman.schemas.validation import SchemaTooDeep, validate_tree

if TYPE_CHECKING:
    from steersman.schemas.models import Target, write_models
    from steersman.schemas.models_description import Catalog
    from steersman.schemas.openapi import discovery_path, read_crds, read_openapi, served_group_versions
    from steersman.schemas.openapi_types import UnreadableSchema

__all__ = [
    "Catalog",
    "FieldProblem",
    "SchemaTooDeep",
    "Target",
    "UnreadableSchema",
    "admitted",
    "crd_for",
    "crd_yaml",
    "discovery_path",
    "problems",
    "read_crds",
    "read_openapi",
    "schema_for",
    "served_group_versions",
    "validate",
    "validate_tree",
    "write_models",
]

#: Schema -> Python models. Loaded lazily: validation does not need the generator.
_LAZY = {
    "Catalog": "models_description",
    "Target": "models",
    "UnreadableSchema": "openapi_types",
    "discovery_path": "openapi",
    "read_crds": "openapi",
    "read_openapi": "openapi",
    "served_group_versions": "openapi",
    "write_models": "models",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"steersman.schemas.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
