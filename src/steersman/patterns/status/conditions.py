"""The conditions that a reconcile sets. Pure.

Guarantees
- Each state that ran has its condition. Ready is their conjunction, with the reason and message of the first that is not True.
- A state that was not reached is Unknown and names the condition that it waits for. A state that a complete reconcile skipped
  has no condition.
- Looping is set while the controller throttles the object. Its message stays as it was first set, so that it causes no writes.
- ``lastTransitionTime`` changes only with the status of its condition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

from steersman.objects import Object, format_time
from steersman.patterns.machine.graph import LOOPING, SUSPENDED, MachineGraph, StateNode
from steersman.patterns.machine.transitions import Complete, Stopped, Transition

Status: TypeAlias = Literal["True", "False", "Unknown"]
Tree: TypeAlias = dict[str, Any]

#: Longer messages are truncated: they are for people.
_MESSAGE_MAX = 2000

#: The label that makes every machine leave an object alone, with any value except "false".
SUSPEND_LABEL = "steersman.dev/suspend"


def suspension_of(obj: Object) -> str | None:
    """The value of the suspend label; None if the object is not suspended."""
    value = (obj.metadata.labels or {}).get(SUSPEND_LABEL)
    return None if value == "false" else value


def overwritten(graph: MachineGraph, obj: Object, before: Mapping[str, Mapping[str, Any]]) -> str:
    """What to write instead if a state set a condition that the machine sets itself; empty if none did."""
    for each in getattr(getattr(obj, "status", None), "conditions", None) or ():
        # A user's own type of a condition may lack fields.
        kind, status, reason = (getattr(each, field, None) for field in ("type", "status", "reason"))
        known = before.get(str(kind), dict[str, Any]())
        if kind in graph.conditions and (status, reason) != (known.get("status"), known.get("reason")):
            return (
                f"a state set condition {kind}, which Steersman sets from what the states return; return Wait(message,"
                " reason=...) or Failed(message, reason=...), or use another type"
            )
    return ""


class Observation(msgspec.Struct, frozen=True):
    """One condition without its timestamp."""

    type: str
    status: Status
    reason: str
    message: str = ""


class Visit(msgspec.Struct, frozen=True):
    """A state that ran, and its transition."""

    node: StateNode
    transition: Transition


class Observations(msgspec.Struct, frozen=True):
    """The result of a reconcile: conditions to set, and conditions to remove."""

    set: tuple[Observation, ...]
    removed: frozenset[str] = frozenset()
    #: Whether the reconcile acted on the current generation.
    observed: bool = True

    def get(self, condition: str) -> Observation | None:
        """The observation of one condition; None without one."""
        return next((each for each in self.set if each.type == condition), None)


def is_complete(visits: Sequence[Visit]) -> bool:
    """Whether a reconcile reached its end."""
    last = visits[-1].transition if visits else None
    return isinstance(last, Complete) and last.follows is None


def observe_states(graph: MachineGraph, visits: Sequence[Visit], present: Collection[str]) -> Observations:
    """The conditions after a reconcile; ``present`` names those that the object has."""
    ready = _ready(graph, visits)
    if len(graph.states) == 1 and graph.first.condition == graph.ready:
        return Observations((ready,), frozenset({graph.suspended}))
    said = [_of_visit(visit) for visit in visits]
    last = visits[-1]
    if isinstance(last.transition, Stopped):
        said.extend(_not_reached(graph, visits, present))
    named = {each.type for each in said}
    left = {node.condition for node in graph.states} - named
    return Observations((ready, *said), frozenset({graph.suspended, *left}))


def observe_deletion(graph: MachineGraph, reason: str, message: str) -> Observations:
    """The conditions of an object that is being deleted: those of the states stay as they are."""
    return Observations((_said(graph.ready, "False", reason, message),), frozenset({graph.suspended}))


def observe_suspension(graph: MachineGraph, value: str) -> Observations:
    """The conditions of a suspended object: all others stay as they are."""
    message = (
        f"label {SUSPEND_LABEL}={value}: Steersman applies, prunes and finalizes nothing until the label is removed"
    )
    return Observations((_said(graph.suspended, "True", SUSPENDED, message),), observed=False)


def with_loop(graph: MachineGraph, observations: Observations, loop: str, present: Mapping[str, Tree]) -> Observations:
    """Set the condition Looping with the message ``loop``, or remove it if ``loop`` is empty."""
    if not loop:
        return msgspec.structs.replace(observations, removed=observations.removed | {graph.looping})
    before = present.get(graph.looping, {})
    # The controller's message counts reconciles: updating it each time would itself be a write in each reconcile.
    words = before.get("message", "") if before.get("status") == "True" else loop
    said = (*observations.set, _said(graph.looping, "True", LOOPING, words))
    return msgspec.structs.replace(observations, set=said)


def condition_trees(
    observations: Iterable[Observation], present: Mapping[str, Tree], *, generation: int, now: datetime
) -> list[Tree]:
    """The conditions as JSON; ``present`` holds those that the object has, by type."""
    trees: list[Tree] = []
    for each in observations:
        tree: Tree = {"type": each.type, "status": each.status, "reason": each.reason}
        tree["message"] = cut(each.message)
        before = present.get(each.type)
        since = before.get("lastTransitionTime") if before and before.get("status") == each.status else None
        tree["lastTransitionTime"] = since or format_time(now.replace(microsecond=0))
        if generation:
            tree["observedGeneration"] = generation
        trees.append(tree)
    return trees


def cut(message: str) -> str:
    """A message truncated to the length that a condition may have."""
    return message if len(message) <= _MESSAGE_MAX else f"{message[:_MESSAGE_MAX]}..."


def _said(condition: str, status: Status, reason: str, message: str) -> Observation:
    """A condition whose message is valid UTF-8: lone surrogates, as in file names, are escaped."""
    if not message.isascii():
        message = message.encode("utf-8", "backslashreplace").decode()
    return Observation(condition, status, reason, message)


def _of_visit(visit: Visit) -> Observation:
    condition = visit.node.condition
    match visit.transition:
        case Complete(message=message):
            return _said(condition, "True", "Complete", message)
        case Stopped(reason=reason, message=message):
            return _said(condition, "False", reason, message)


def _ready(graph: MachineGraph, visits: Sequence[Visit]) -> Observation:
    last = visits[-1].transition
    if isinstance(last, Stopped):
        return _said(graph.ready, "False", last.reason, last.message)
    message = last.message if len(graph.states) == 1 else "all states are complete"
    return _said(graph.ready, "True", "Ready", message)


def _not_reached(graph: MachineGraph, visits: Sequence[Visit], present: Collection[str]) -> Iterable[Observation]:
    stopped = visits[-1].node
    usual = graph.usual_way(stopped.name)
    for name in graph.reachable(stopped.name):
        condition = graph.node(name).condition
        # Report a state beside the usual path only if it ran before.
        if name in usual or condition in present:
            yield Observation(condition, "Unknown", "NotReached", f"waits for {stopped.condition}")
