r"""Cells of custom columns: the result of a JSONPath in an object, as the engine prints it.

Guarantees
- A path that finds nothing, or a value of another type than its column, gives an empty cell, never an error.
- Only plain paths are supported (``.spec.replicas``, ``.status.conditions[0].type``, ``.spec.ports[*].name``,
  ``.status.conditions[?(@.type=="Ready")].status``); anything else gives an empty cell. Of several values the first one
  is shown.
- As in kube-apiserver, a dot in a name is escaped, also in quotes: ``.metadata.labels.app\.kubernetes\.io/name`` and
  ``.metadata.labels['app\.kubernetes\.io/name']`` find the same.
"""

from __future__ import annotations

import re
from typing import Any, cast

from steersman.apiserver.registry.ages import since
from steersman.apiserver.registry.definition import Tree

#: One step of a path. A name ends where it does for kube-apiserver, and a backslash escapes the next character.
_STEP = re.compile(
    r"\.(?P<name>(?:[^\\*.,\[\]$@{} \t\r\n]|\\.)+)|\['(?P<quoted>[^'\],]*)'\]"
    r"|\[(?P<index>-?[0-9]+)\]|(?P<all>\.?\[\*\]|\.\*)"
    r"""|\[\?\(@\.(?P<field>[A-Za-z0-9_-]+)\s*==\s*["'](?P<value>[^"']*)["']\)\]"""
)
#: More characters than the index of any list has; Python cannot convert thousands of digits.
_INDEX_MAX = 20


def follow(path: str, obj: Any) -> list[Any]:
    """The values that a path finds in a tree: none, one, or several."""
    found = [obj]
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return []
        at = step.end()
        found = [inner for value in found for inner in _one_step(step, value)]
    return found


def _one_step(step: re.Match[str], value: Any) -> list[Any]:
    if step["all"] is not None:
        return list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else _items(value)
    if step["quoted"] is not None:
        return follow(f".{step['quoted']}", value)
    if step["name"] is not None:
        name = step["name"].replace("\\", "")
        members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        return [members[name]] if name in members else []
    items = _items(value)
    if step["index"] is not None:
        if len(step["index"]) > _INDEX_MAX:
            return []
        index = int(step["index"])
        return [items[index]] if -len(items) <= index < len(items) else []
    return [
        item
        for item in items
        if isinstance(item, dict) and cast("dict[str, Any]", item).get(step["field"]) == step["value"]
    ]


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def json_path_text(path: str, obj: Tree) -> str:
    """The value of a custom resource's selectable field, as text."""
    found = follow(path, obj)
    if not found or found[0] is None:
        return ""
    value = found[0]
    return str(value).lower() if isinstance(value, bool) else str(value)


def json_path_cell(path: str, column_type: str, obj: Tree) -> Any:
    """The cell of a custom column."""
    found = follow(path, obj)
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
            return value if isinstance(value, str) else _printed(value)


def _printed(value: Any) -> str:
    import msgspec  # noqa: PLC0415 - only tables with odd cells need it

    return msgspec.json.encode(value, order="deterministic").decode()
