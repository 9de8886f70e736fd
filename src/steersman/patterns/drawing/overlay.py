"""The live status of one object, drawn over its machine. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from steersman.objects import Object, Unstructured
from steersman.patterns.machine.graph import SUSPENDED, MachineGraph
from steersman.patterns.readiness.fields import at, items, number, root

#: The condition of a state as a color: complete, in progress or waiting, failed, unknown, not visited.
Mood: TypeAlias = Literal["good", "busy", "bad", "unknown", "idle"]

_BROKEN = frozenset({"Error", "Failed", "NotOurs", "Immutable"})


class Observed(msgspec.Struct, frozen=True):
    """One condition of an object."""

    status: str
    reason: str = ""
    message: str = ""

    @property
    def mood(self) -> Mood:
        """The color of the condition."""
        if self.status == "True":
            return "good"
        if self.status == "False":
            return "bad" if self.reason in _BROKEN else "busy"
        return "unknown"

    @property
    def words(self) -> str:
        """Status and reason: ``False: ChildrenNotReady``."""
        return f"{self.status}: {self.reason}" if self.reason else self.status


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """An object: its name, its conditions, and whether it is being deleted or suspended."""

    #: The displayed name, such as ``default/main``.
    name: str
    conditions: Mapping[str, Observed]
    deleting: bool = False
    suspended: bool = False
    #: Whether the controller has observed the current generation.
    observed: bool = True

    @classmethod
    def of(cls, obj: Object | Unstructured) -> Live:
        """Read the live status from an object."""
        node = root(obj)
        conditions = {
            str(at(each, "type")): Observed(
                status=str(at(each, "status") or "Unknown"),
                reason=str(at(each, "reason") or ""),
                message=str(at(each, "message") or ""),
            )
            for each in items(node, "status", "conditions")
        }
        # On another program's kind the condition has a domain prefix.
        suspended = next((found for name, found in conditions.items() if name.rpartition("/")[2] == SUSPENDED), None)
        return cls(
            name=str(obj.key),
            conditions=conditions,
            deleting=obj.deleting,
            suspended=suspended is not None and suspended.status == "True",
            observed=number(node, "status", "observed_generation") >= obj.generation,
        )

    def state(self, graph: MachineGraph, name: str) -> Observed | None:
        """The condition of a state; None if no reconcile visited it."""
        return self.conditions.get(graph.node(name).condition)

    def mood(self, graph: MachineGraph, name: str) -> Mood:
        """The color of a state."""
        found = self.state(graph, name)
        return "idle" if found is None else found.mood

    def stopped_at(self, graph: MachineGraph) -> str | None:
        """The state where the last reconcile stopped; None if it was complete, or if there was none."""
        if self.deleting or self.suspended:
            return None
        return next((name for name in graph.names if self.mood(graph, name) in {"busy", "bad"}), None)
