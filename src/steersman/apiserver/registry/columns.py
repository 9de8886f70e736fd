"""Cells of custom columns: the result of a JSONPath in an object, as the engine prints it.

Guarantees
- A path that finds nothing, or a value of another type than its column, gives an empty cell, never an error.
- Only plain paths are supported (``.spec.replicas``, ``.status.conditions[0].type``, ``.spec.ports[*].name``,
  ``.status.conditions[?(@.type=="Ready")].status``); anything else gives an empty cell. Of several values the first one
  is shown.
"""

from __future__ import annotations

import re
from typing import Any, cast

from steersman.aio import now
from steersman.apiserver.registry.definition import Tree
from steersman.objects import parse_time

_STEP = re.compile(
    r"\.(?P<name>[A-Za-z0-9_-]+|\\\.)|\[(?P<index>-?[0-9]+)\]|(?P<all>\.?\[\*\]|\.\*)|\['(?P<quoted>(?:[^'\\]|\\.)*)'\]"
    r"""|\[\?\(@\.(?P<field>[A-Za-z0-9_-]+)\s*==\s*["'](?P<value>[^"']*)["']\)\]"""
)


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
    name = step["name"] if step["name"] is not None else step["quoted"]
    if name is not None:
        members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        return [members[name]] if name in members else []
    items = _items(value)
    if step["index"] is not None:
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


def json_path_cell(path: str, kind: str, obj: Tree) -> Any:
    """The cell of a custom column."""
    found = follow(path, obj)
    if not found:
        return None
    value = found[0]
    match kind:
        case "integer":
            return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "number":
            return value if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return age(value) if isinstance(value, str) else "<invalid>"
        case _:
            return value if isinstance(value, str) else _printed(value)


def _printed(value: Any) -> str:
    import msgspec  # noqa: PLC0415 - only tables with odd cells need it

    return msgspec.json.encode(value, order="deterministic").decode()


def age(timestamp: str | None) -> str:
    """How long ago a moment was, as in tables: ``45s``, ``3m12s``, ``5d``; ``<unknown>`` without one."""
    if not timestamp:
        return "<unknown>"
    try:
        seconds = int((now() - parse_time(timestamp)).total_seconds())
    except ValueError:
        return "<invalid>"
    return human_duration(seconds)


def human_duration(seconds: int) -> str:  # noqa: PLR0911 - one return a magnitude reads best
    """A duration with as much precision as a reader needs."""
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        rest = seconds % 60
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = seconds // 3600
    if hours < 8:
        rest = minutes % 60
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    return _days(hours)


def _days(hours: int) -> str:
    if hours < 192:
        days, rest = divmod(hours, 24)
        return f"{days}d{rest}h" if rest else f"{days}d"
    days = hours // 24
    if days < 730:
        return f"{days}d"
    years, rest = divmod(days, 365)
    return f"{years}y{rest}d" if years < 8 and rest else f"{years}y"
