"""What is known about one object while its machine is drawn. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from steersman.objects import Object, Unstructured
from steersman.patterns.graph import SUSPENDED, MachineGraph
from steersman.patterns.verdicts import at, items, number, root

#: How a state is, in a word that stands for a colour: done, under way or waiting, broken, not known, not gone through.
Mood: TypeAlias = Literal["good", "busy", "bad", "unknown", "idle"]

_BROKEN = frozenset({"Error", "Failed", "NotOurs", "Immutable"})


class Observed(msgspec.Struct, frozen=True):
    """One condition, as it was found."""

    status: str
    reason: str = ""
    message: str = ""

    @property
    def mood(self) -> Mood:
        """Which colour it gets."""
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
    """An object: its name, its conditions, and whether it is being deleted or left alone."""

    #: As it is shown, such as ``default/main``.
    name: str
    conditions: Mapping[str, Observed]
    deleting: bool = False
    suspended: bool = False
    #: Whether the controller has seen the last change of the spec.
    observed: bool = True

    @classmethod
    def of(cls, obj: Object | Unstructured) -> Live:
        """What an object says of itself."""
        node = root(obj)
        conditions = {
            str(at(each, "type")): Observed(
                status=str(at(each, "status") or "Unknown"),
                reason=str(at(each, "reason") or ""),
                message=str(at(each, "message") or ""),
            )
            for each in items(node, "status", "conditions")
        }
        # on a kind of somebody else's it has a domain before it
        suspended = next((found for name, found in conditions.items() if name.rpartition("/")[2] == SUSPENDED), None)
        return cls(
            name=str(obj.key),
            conditions=conditions,
            deleting=obj.deleting,
            suspended=suspended is not None and suspended.status == "True",
            observed=number(node, "status", "observed_generation") >= obj.generation,
        )

    def state(self, graph: MachineGraph, name: str) -> Observed | None:
        """The condition of a state; None if it has none, since no pass went there."""
        return self.conditions.get(graph.node(name).condition)

    def mood(self, graph: MachineGraph, name: str) -> Mood:
        """The colour of a state."""
        found = self.state(graph, name)
        return "idle" if found is None else found.mood

    def stopped_at(self, graph: MachineGraph) -> str | None:
        """The state that the last pass did not get beyond; None if it went through, or if there was none."""
        if self.deleting or self.suspended:
            return None
        return next((name for name in graph.names if self.mood(graph, name) in {"busy", "bad"}), None)
