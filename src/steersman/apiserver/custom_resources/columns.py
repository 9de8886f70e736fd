"""The columns of a custom resource's tables, beside the name.

Guarantees
- A definition without columns has the engine's default: the age.
- A path that finds nothing, or a value of another type than its column, gives an empty cell, never an error. Of several
  values the first one is shown.
- A path that cannot be parsed ends the columns: those before it are shown. So kube-apiserver does it, which accepts such a
  definition. From the 501st column on, such a path gives empty cells instead.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from steersman.apiserver.forms.table import CUSTOM_AGE_COLUMN
from steersman.apiserver.registry.ages import since
from steersman.apiserver.registry.definition import Column, Tree
from steersman.apiserver.registry.json_path import JsonPath
from steersman.golang import printed_json, printed_value

#: Later columns are parsed when a table shows them: a definition with tens of thousands must not block the server.
_PARSED_MAX = 500


def columns_of(version: Tree) -> tuple[Column, ...]:
    """The columns of a version of a definition."""
    declared: list[Tree] | None = version.get("additionalPrinterColumns")
    if not declared:
        return (CUSTOM_AGE_COLUMN,)
    columns: list[Column] = []
    for number, column in enumerate(declared):
        path = JsonPath(column["jsonPath"])
        if number < _PARSED_MAX and not path.is_valid:
            break
        columns.append(
            Column(
                name=column["name"],
                type=column["type"],
                format=column.get("format") or "",
                description=column.get("description")
                or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
                priority=column.get("priority") or 0,
                cell=partial(_cell, path, column["type"]),
            )
        )
    return tuple(columns)


def _cell(path: JsonPath, column_type: str, obj: Tree) -> Any:
    found = path.find(obj)
    if not found:
        return None
    value = found[0]
    match column_type:
        case "integer":
            return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "number":
            return value if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return since(value) if isinstance(value, str) else None
        case _:
            return _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "<no value>"
    return printed_json(value) if isinstance(value, dict | list) else printed_value(value)
