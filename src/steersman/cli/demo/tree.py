"""Objects as an ownership tree, in lines for a terminal. Pure.

Guarantees: owners are above what they own, ordered by kind and name. Objects without an owner here are at the top. Each
object appears once, even in a cycle of owners. Lines respect the given width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from steersman.kinds.core_v1 import ConfigMap, Pod, Service
from steersman.objects import Object, is_true

_NAME_WIDTH = 34


class Line(msgspec.Struct, frozen=True):
    """One object of the tree: its branch, name and state."""

    branch: str
    name: str
    state: str
    #: "good", "busy", or "" for neutral.
    mood: str = ""

    def text(self, width: int) -> str:
        """The line without colors."""
        return f"{self.branch}{self.name:<{max(_NAME_WIDTH - len(self.branch), 1)}} {self.state}".rstrip()[:width]


def tree_lines(objects: Iterable[Object]) -> list[Line]:
    """The lines of a tree."""
    ordered = sorted(objects, key=_order)
    uids = {obj.metadata.uid for obj in ordered}
    children: dict[str | None, list[Object]] = {}
    for obj in ordered:
        owner = next((ref.uid for ref in obj.metadata.owner_references or () if ref.uid in uids), None)
        children.setdefault(owner, []).append(obj)
    seen: set[str | None] = set()
    lines: list[Line] = []
    # Objects that own each other have no root: the first of them goes to the top.
    for root in (*children.get(None, ()), *ordered):
        lines += _below(root, children, "", "", seen)
    return lines


def _below(
    obj: Object, children: dict[str | None, list[Object]], own: str, rest: str, seen: set[str | None]
) -> Iterator[Line]:
    uid = obj.metadata.uid
    if uid in seen:
        return
    seen.add(uid)
    state, mood = state_of(obj)
    yield Line(own, f"{type(obj).__name__} {obj.key.name}", state, mood)
    below = [child for child in children.get(uid, ()) if child.metadata.uid not in seen]
    for place, child in enumerate(below):
        last = place == len(below) - 1
        yield from _below(
            child, children, f"{rest}{'└─ ' if last else '├─ '}", f"{rest}{'   ' if last else '│  '}", seen
        )


def state_of(obj: Object) -> tuple[str, str]:
    """The state of an object in a few words, and its mood."""
    if obj.deleting:
        return "terminating", "busy"
    match obj:
        case Pod():
            phase = (obj.status.phase if obj.status else None) or "Pending"
            ready = obj.status is not None and is_true(obj.status.conditions, "Ready")
            return ("Running, ready", "good") if ready else (phase, "busy")
        case Service():
            return obj.spec.cluster_ip or "" if obj.spec else "", ""
        case ConfigMap():
            return ", ".join(sorted(obj.data or {})), ""
        case _:
            return _replicas(obj)


def _replicas(obj: Object) -> tuple[str, str]:
    spec: Any = getattr(obj, "spec", None)
    status: Any = getattr(obj, "status", None)
    wanted, ready = getattr(spec, "replicas", None), getattr(status, "ready_replicas", 0)
    if wanted is None:
        return "", ""
    return f"{ready} of {wanted} ready", "good" if ready == wanted else "busy"


def _order(obj: Object) -> tuple[str, str, list[tuple[int, str]]]:
    """Sort by kind and name, with numbers in names as numbers."""
    parts = obj.key.name.split("-")
    return type(obj).__name__, obj.key.namespace, [(int(part), "") if part.isdigit() else (-1, part) for part in parts]
