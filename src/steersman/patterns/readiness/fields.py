"""Read fields of typed objects and of JSON trees in the same way. Pure.

Guarantees
- Reading never raises: an absent or unset field, or one of an unexpected type, reads as None.
- Nothing is converted: a field is one attribute of a struct or one entry of a tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from msgspec import UNSET

from steersman.objects import Object, Unstructured, wire_name

#: Quoted messages are truncated to this length: a scheduler may name thousands of nodes.
_LONGEST = 1000


def at(node: Any, *path: str) -> Any:
    """Follow Python names into a struct or a tree; None where a field is absent."""
    for name in path:
        if isinstance(node, dict):
            node = cast("dict[str, Any]", node).get(wire_name(name))
        else:
            node = getattr(node, name, None)
            if node is UNSET:
                return None
    return node


def root(obj: Object | Unstructured) -> Any:
    """The starting point for `at`: an object, or its tree."""
    return obj.tree if isinstance(obj, Unstructured) else obj


def number(node: Any, *path: str, default: int = 0) -> int:
    """A number; the default if the field is absent."""
    value = at(node, *path)
    return value if isinstance(value, int) else default


def items(node: Any, *path: str) -> Iterator[Any]:
    """The items of a list; empty if the field is not a list."""
    value = at(node, *path)
    if isinstance(value, list):
        yield from cast("list[Any]", value)


def condition(obj: Any, kind: str) -> Any:
    """The condition of this type in the status; None if absent."""
    for each in items(obj, "status", "conditions"):
        if at(each, "type") == kind:
            return each
    return None


def holds(found: Any) -> bool:
    """Whether a condition exists and is True."""
    return at(found, "status") == "True"


def quoted(node: Any, *, reason: str = "reason", message: str = "message") -> str:
    """An object's own explanation: "ImagePullBackOff: Back-off pulling image ...", or one part of it, or an empty string."""
    said = [one_line(at(node, reason)), one_line(at(node, message))]
    return ": ".join(each for each in said if each)


def one_line(value: Any) -> str:
    """A message of another program on one line, truncated to fit into a condition."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def word(value: Any, default: str) -> str:
    """The reason that another program gave, if it is valid in a condition; otherwise the default."""
    return value if isinstance(value, str) and value.isascii() and value.isalnum() and value[0].isalpha() else default


def generation(obj: Any) -> int:
    """The object's generation: how often its spec has changed."""
    return number(obj, "metadata", "generation")
