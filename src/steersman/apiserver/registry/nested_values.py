"""Values at a path of a custom resource, with kube-apiserver's messages about values of another type."""

from __future__ import annotations

from typing import Any, cast

from steersman.apiserver.registry.definition import Tree
from steersman.golang import printed_value, type_name


def nested_value(obj: Tree, path: tuple[str, ...], expected: type, called: str) -> tuple[Any, str]:
    """The value at a path, None if absent; and the problem with it, as text."""
    value: Any = obj
    for depth, name in enumerate(path):
        if value is None:
            return None, ""
        if not isinstance(value, dict):
            where = ".".join(path[: depth + 1])
            return None, f".{where} accessor error: {_shown(value)}, expected map[string]interface{{}}"
        members = cast("Tree", value)
        if name not in members:
            return None, ""
        value = members[name]
    if type(value) is not expected:
        return None, f".{'.'.join(path)} accessor error: {_shown(value)}, expected {called}"
    return value, ""


def _shown(value: Any) -> str:
    return f"{printed_value(value)} is of the type {type_name(value)}"
