"""What a rule of readiness works with: one way to read typed objects and trees, and the verdict it gives. Pure.

Guarantees
- Reading never raises: what is absent, unset or of an unexpected form reads as None.
- Nothing is converted: a field is one attribute of a struct or one entry of a tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec import UNSET

from steersman.objects import Object, Unstructured
from steersman.objects.struct import wire_name

#: Messages of objects are quoted up to here: a scheduler may name thousands of nodes.
_LONGEST = 1000


class Readiness(msgspec.Struct, frozen=True):
    """Whether an object is what its spec asks for, and why not, in words."""

    ready: bool
    #: One CamelCase word, fit for the reason of a condition.
    reason: str
    #: Words that follow the object's name, such as "1 of 3 replicas are ready".
    message: str
    #: It will not become ready by waiting: somebody has to change it.
    failed: bool = False


def at(node: Any, *path: str) -> Any:
    """Walk along Python names into a struct or a tree; None where there is nothing."""
    for name in path:
        if isinstance(node, dict):
            node = cast("dict[str, Any]", node).get(wire_name(name))
        else:
            node = getattr(node, name, None)
            if node is UNSET:
                return None
    return node


def root(obj: Object | Unstructured) -> Any:
    """Where walking begins: an object, or its tree."""
    return obj.tree if isinstance(obj, Unstructured) else obj


def number(node: Any, *path: str, default: int = 0) -> int:
    """A number; the default if there is none."""
    value = at(node, *path)
    return value if isinstance(value, int) else default


def items(node: Any, *path: str) -> Iterator[Any]:
    """The items of a list; none if it is no list."""
    value = at(node, *path)
    if isinstance(value, list):
        yield from cast("list[Any]", value)


def condition(obj: Any, kind: str) -> Any:
    """The condition of this type in the status, or None."""
    for each in items(obj, "status", "conditions"):
        if at(each, "type") == kind:
            return each
    return None


def holds(found: Any) -> bool:
    """Whether a condition is there and True."""
    return at(found, "status") == "True"


def quoted(node: Any, *, reason: str = "reason", message: str = "message") -> str:
    """What an object says itself: "ImagePullBackOff: Back-off pulling image ...", or one of the two, or nothing."""
    said = [one_line(at(node, reason)), one_line(at(node, message))]
    return ": ".join(each for each in said if each)


def one_line(value: Any) -> str:
    """Somebody else's text as part of a sentence."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def word(value: Any, default: str) -> str:
    """Somebody else's reason, if it is fit for a condition of ours."""
    return value if isinstance(value, str) and value.isascii() and value.isalnum() and value[0].isalpha() else default


def generation(obj: Any) -> int:
    """How often what is asked for has changed."""
    return number(obj, "metadata", "generation")


def unobserved(obj: Any) -> Readiness | None:
    """The verdict on an object whose controller has not seen what is asked for now; None if it has."""
    seen, asked = number(obj, "status", "observed_generation"), generation(obj)
    return stale(seen, asked) if seen < asked else None


def stale(seen: int, asked: int) -> Readiness:
    """The verdict where a status is about an older generation."""
    if not seen:
        return waits("NotObserved", "its controller has not looked at it yet")
    return waits("NotObserved", f"its controller has not seen the last change yet (generation {asked}, seen {seen})")


def ready(message: str = "it is ready", *, reason: str = "Ready") -> Readiness:
    """It is what was asked for."""
    return Readiness(ready=True, reason=reason, message=message)


def waits(reason: str, message: str) -> Readiness:
    """It may become ready by itself."""
    return Readiness(ready=False, reason=reason, message=message)


def failed(reason: str, message: str) -> Readiness:
    """It will not become ready by waiting."""
    return Readiness(ready=False, reason=reason, message=message, failed=True)
