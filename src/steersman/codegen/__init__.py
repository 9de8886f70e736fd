"""Codegen: schemas -> the source of types. Pure: no IO, no clock, no randomness.

Guarantees
- `read_openapi` and `read_crds` read the kinds of servers and CRD files into one `Catalog`; what they cannot read raises
  `UnreadableSchema`.
- `write_models` writes a catalog as Python modules, as text. The same catalog gives the same text.
"""

from steersman.codegen.description import Catalog
from steersman.codegen.layout import import_line, name_list
from steersman.codegen.models import Target, write_models
from steersman.codegen.names import module_name
from steersman.codegen.openapi import (
    definitions_of,
    discovery_path,
    is_list,
    is_stable,
    read_crds,
    read_openapi,
    served_group_versions,
)
from steersman.codegen.openapi_types import UnreadableSchema

__all__ = [
    "Catalog",
    "Target",
    "UnreadableSchema",
    "definitions_of",
    "discovery_path",
    "import_line",
    "is_list",
    "is_stable",
    "module_name",
    "name_list",
    "read_crds",
    "read_openapi",
    "served_group_versions",
    "write_models",
]
