"""Whose conditions are whose: on a kind of somebody else's nothing is said, but under names of one's own.

Guarantees
- A condition of a kind that this program did not declare is never overwritten: that of a Pod is the kubelet's, and what it
  says decides who gets traffic.
- What could collide is refused where it is written, with what to write.
"""

from __future__ import annotations

from steersman.objects import Object, Resource
from steersman.patterns.graph import MachineGraph, check_condition, check_foreign


def is_ours(kind: type[Object]) -> bool:
    """Whether a kind is declared by this program: a `Resource`, and not the model of a kind that somebody else declares."""
    return issubclass(kind, Resource)


def ready_of(kind: type[Object], said: str, where: str) -> tuple[str, bool]:
    """The condition that sums up, and whether conditions are written at all; ``said`` is empty if nobody named it."""
    if said:
        check_condition(said, where, reserved=(), option="ready")
        if not is_ours(kind):
            check_foreign(said, kind.__name__, where, option="ready")
        return said, True
    return "Ready", is_ours(kind)


def check_shared(graph: MachineGraph, kind: type[Object], where: str) -> None:
    """Refuse states whose conditions somebody else may set, or would never be written though they look so."""
    if is_ours(kind):
        return
    for node in graph.states:
        here = f"{where}, state {node.name}"
        if graph.reports:
            check_foreign(node.condition, kind.__name__, here)
        elif "/" in node.condition:
            raise TypeError(
                f"{here}: {kind.__name__} is a kind of somebody else, so no condition is written unless the one that sums up"
                f' is named too; write ready="{node.condition.partition("/")[0]}/Ready"'
            )
