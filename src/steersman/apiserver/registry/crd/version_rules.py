"""Validation of a version's subresources, columns and selectable fields.

Guarantee: messages and order are kube-apiserver's.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from steersman.apiserver.registry.builtin.types.trees import Tree
from steersman.golang import printed_json
from steersman.objects.field_problems import FieldProblem, Printed, duplicate, invalid, required, too_many, until_enough
from steersman.schemas import PathRefused, conversion_problem, resolve_path

SELECTABLE_MAX: Final = 8
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES: Final = frozenset({"string", "boolean", "integer"})
_WARNING_MAX: Final = 256
_NOT_SELECTABLE: Final = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)


def deprecation_problems(version: Tree, path: str) -> list[FieldProblem]:
    """The problems of a version's deprecation warning."""
    warning: str | None = version.get("deprecationWarning")
    if warning is None:
        return []
    reasons: list[str] = []
    if not version.get("deprecated"):
        reasons.append("can only be set for deprecated versions")
    else:
        if len(warning.encode()) > _WARNING_MAX:
            reasons.append(f"must be <= {_WARNING_MAX} characters long")
        if not warning:
            reasons.append("must not be an empty string")
        at = _first_unprintable(warning)
        if at is not None:
            said = "must only contain printable UTF-8 characters; non-printable character found at index"
            reasons.append(f"{said} {at}")
    return [invalid(f"{path}.deprecationWarning", Printed(printed_json(warning)), reason) for reason in reasons]


def _first_unprintable(text: str) -> int | None:
    """The byte offset of the first character that Go does not print; None if there is none."""
    for at, sign in enumerate(text):
        if sign != " " and unicodedata.category(sign)[0] not in "LMNPS":
            return len(text[:at].encode())
    return None


def subresource_problems(subresources: Tree | None, path: str) -> list[FieldProblem]:
    """The problems of the paths of the subresource ``scale``."""
    scale: Tree | None = (subresources or {}).get("scale")
    if scale is None:
        return []
    problems: list[FieldProblem] = []
    for name, prefix in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        where, value = f"{path}.scale.{name}", scale[name]
        if not value:
            problems.append(required(where))
        elif not value.startswith("."):
            problems.append(_not_simple(where, value))
        elif not value.startswith(f"{prefix}."):
            problems.append(invalid(where, value, f"should be a json path under {prefix}"))
    selector = scale.get("labelSelectorPath")
    if selector:
        where = f"{path}.scale.labelSelectorPath"
        if not selector.startswith("."):
            problems.append(_not_simple(where, selector))
        elif not selector.startswith((".spec.", ".status.")):
            said = "should be a json path under either .spec or .status"
            problems.append(invalid(where, Printed(printed_json(selector)), said))
    return problems


def _not_simple(path: str, value: str) -> FieldProblem:
    return invalid(path, value, "must be a simple json path starting with .")


def column_problems(columns: list[Tree], path: str) -> list[FieldProblem]:
    """The problems of a table's columns."""
    problems: list[FieldProblem] = []
    for at, column in until_enough(columns, problems):
        where = f"{path}[{at}]"
        if not column["name"]:
            problems.append(required(f"{where}.name"))
        said = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not column["type"]:
            problems.append(required(f"{where}.type", said))
        elif column["type"] not in _COLUMN_TYPES:
            problems.append(invalid(f"{where}.type", column["type"], said))
        format_ = column.get("format")
        if format_ and format_ not in _COLUMN_FORMATS:
            problems.append(invalid(f"{where}.format", format_, f"must be one of {','.join(_COLUMN_FORMATS)}"))
        if not column["jsonPath"]:
            problems.append(required(f"{where}.JSONPath"))
        elif not column["jsonPath"].startswith("."):
            problems.append(_not_simple(f"{where}.JSONPath", column["jsonPath"]))
    return problems


def selectable_problems(
    fields: list[Tree], schema: Mapping[str, Any], path: str, *, any_number: bool
) -> list[FieldProblem]:
    """The problems of selectable fields; ``any_number`` allows more than the limit."""
    parent = path.rpartition(".")[0]
    problems: list[FieldProblem] = []
    if reason := conversion_problem(schema):
        # Then only the syntax of a field can be checked, not its target.
        problems.append(invalid(f"{parent}.schema.openAPIV3Schema", "", reason))
        fields, schema = [field for field in fields if not field["jsonPath"].startswith(".")], {}
    seen: set[str] = set()
    for at, field in until_enough(fields, problems):
        where, given = f"{path}[{at}].jsonPath", field["jsonPath"]
        if not given:
            problems.append(required(where))
            continue
        try:
            resolved = resolve_path(given, schema, brackets=False)
        except PathRefused as refused:
            problems.append(invalid(where, given, f"is an invalid path: {refused}"))
            continue
        if resolved.root == "metadata":
            problems.append(invalid(where, given, "must not point to fields in metadata"))
        if resolved.schema is None or resolved.schema.get("type") not in _SELECTABLE_TYPES:
            problems.append(invalid(where, given, _NOT_SELECTABLE))
        if resolved.path in seen:
            problems.append(duplicate(where, given))
        seen.add(resolved.path)
    if len(seen) > SELECTABLE_MAX and not any_number:
        problems.append(too_many(path, len(seen), SELECTABLE_MAX))
    return problems
