"""A CustomResourceDefinition in kube-apiserver's internal form, which it validates.

Guarantees
- What all versions have in common is stored once for all: messages name it ``spec.validation``, ``spec.subresources``
  and so on, and versions do not hold it.
- `printed_versions` returns the versions as messages print them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from steersman.apiserver.registry.builtin.types.trees import Tree, items
from steersman.golang import printed_json
from steersman.patches import quickly_equal
from steersman.schemas import list_text, pointer_text, printed_schema, struct_text

#: Fields of single versions or of all versions, and their common names.
_COMMON: Final = (
    ("subresources", "subresources"),
    ("schema", "validation"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
)


def internal_spec(spec: Mapping[str, Any]) -> Tree:
    """The spec of a definition in internal form; parts of it are shared."""
    made: Tree = dict(spec)
    versions = [dict(version) for version in items(spec, "versions")]
    if not versions:
        return made
    made["versions"] = versions
    for name, common in _COMMON:
        first = versions[0].get(name)
        if all(quickly_equal(version.get(name), first) for version in versions[1:]):
            for version in versions:
                version.pop(name, None)
            if first is not None:
                made[common] = first
    return made


def schemas_of(spec: Mapping[str, Any]) -> list[Tree]:
    """All schemas of an internal spec, each once."""
    holders = [spec.get("validation"), *(version.get("schema") for version in items(spec, "versions"))]
    found = [cast("Tree", holder).get("openAPIV3Schema") for holder in holders if holder is not None]
    return [schema for schema in found if schema is not None]


def printed_versions(spec: Mapping[str, Any]) -> str:
    """The printed versions of an internal spec."""
    versions: Any = spec.get("versions")
    return "null" if versions is None else f"[{','.join(map(_version, versions))}]"


def _version(version: Tree) -> str:
    return struct_text(
        [
            ("Name", printed_json(version["name"])),
            ("Served", printed_json(version["served"])),
            ("Storage", printed_json(version["storage"])),
            ("Deprecated", printed_json(version.get("deprecated", False))),
            ("DeprecationWarning", printed_json(version.get("deprecationWarning"))),
            ("Schema", pointer_text(version.get("schema"), _validation)),
            ("Subresources", pointer_text(version.get("subresources"), _subresources)),
            ("AdditionalPrinterColumns", list_text(version.get("additionalPrinterColumns"), _column)),
            ("SelectableFields", list_text(version.get("selectableFields"), _selectable)),
        ]
    )


def _validation(validation: Tree) -> str:
    return struct_text([("OpenAPIV3Schema", pointer_text(validation.get("openAPIV3Schema"), printed_schema))])


def _subresources(subresources: Tree) -> str:
    status = pointer_text(subresources.get("status"), printed_json)
    return struct_text([("Status", status), ("Scale", pointer_text(subresources.get("scale"), _scale))])


def _scale(scale: Tree) -> str:
    return struct_text(
        [
            ("SpecReplicasPath", printed_json(scale["specReplicasPath"])),
            ("StatusReplicasPath", printed_json(scale["statusReplicasPath"])),
            ("LabelSelectorPath", printed_json(scale.get("labelSelectorPath"))),
        ]
    )


def _column(column: Tree) -> str:
    return struct_text(
        [
            ("Name", printed_json(column["name"])),
            ("Type", printed_json(column["type"])),
            ("Format", printed_json(column.get("format", ""))),
            ("Description", printed_json(column.get("description", ""))),
            ("Priority", printed_json(column.get("priority", 0))),
            ("JSONPath", printed_json(column["jsonPath"])),
        ]
    )


def _selectable(field: Tree) -> str:
    return struct_text([("JSONPath", printed_json(field["jsonPath"]))])
