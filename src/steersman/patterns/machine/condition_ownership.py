"""Condition ownership: on a kind that another program declares, our conditions need a domain prefix.

Guarantees
- Steersman never overwrites another program's condition on a kind that this program did not declare. A Pod's conditions
  belong to the kubelet and decide which Pods get traffic.
- A condition name that could collide raises where it is written, with what to write instead.
"""

from __future__ import annotations

from steersman.objects import Object, Resource
from steersman.patterns.machine.graph import MachineGraph, check_condition, check_foreign


def is_ours(kind: type[Object]) -> bool:
    """Whether this program declares the kind: a `Resource`, not a model of another program's kind."""
    return issubclass(kind, Resource)


def ready_of(kind: type[Object], said: str, where: str) -> tuple[str, bool]:
    """The summary condition, and whether conditions are written at all; ``said`` is empty if the program named none."""
    if said:
        check_condition(said, where, reserved=(), option="ready")
        if not is_ours(kind):
            check_foreign(said, kind.__name__, where, option="ready")
        return said, True
    return "Ready", is_ours(kind)


def check_shared(graph: MachineGraph, kind: type[Object], where: str) -> None:
    """Reject states whose conditions another program may set, or that would never be written."""
    if is_ours(kind):
        return
    for node in graph.states:
        here = f"{where}, state {node.name}"
        if graph.reports:
            check_foreign(node.condition, kind.__name__, here)
        elif "/" in node.condition:
            raise TypeError(
                f"{here}: {kind.__name__} is a kind of another program, so Steersman writes no condition unless the summary"
                f' is named too: write ready="{node.condition.partition("/")[0]}/Ready"'
            )
