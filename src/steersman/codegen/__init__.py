"""Codegen: schemas -> the source of types. Pure: no IO, no clock, no randomness.

Guarantees
- `read_openapi` and `read_crds` read the kinds of servers and CRD files into one `ModelCatalog`; what they cannot read raises
  `UnreadableSchema`.
- `write_models` writes a catalog as Python modules or packages, as text. The same catalog gives the same text.
"""

from steersman.codegen.description import ModelCatalog as ModelCatalog
from steersman.codegen.layout import import_line as import_line, name_list as name_list
from steersman.codegen.models import (
    Target as Target,
    class_names_in as class_names_in,
    write_models as write_models,
)
from steersman.codegen.names import module_name as module_name
from steersman.codegen.openapi import (
    discovery_path as discovery_path,
    is_list as is_list,
    openapi_definitions as openapi_definitions,
    read_crds as read_crds,
    read_openapi as read_openapi,
    served_group_versions as served_group_versions,
)
from steersman.codegen.openapi_types import UnreadableSchema as UnreadableSchema

#: Programs import nothing from this room: its names are for other rooms.
__all__: list[str] = []
