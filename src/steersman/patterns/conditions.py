"""The conditions that a pass leads to. Pure.

Guarantees
- Each state that was run has its condition; Ready is their conjunction, with reason and message of the first that is not
  True.
- A state that the pass did not come to is Unknown, and says for which condition it waits; one that a complete pass left
  aside has no condition.
- The time of a condition moves with its status, and with nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

from steersman.objects import Object, format_time
from steersman.patterns.graph import SUSPENDED, MachineGraph, StateNode
from steersman.patterns.judging import Complete, Stopped, Verdict

Status: TypeAlias = Literal["True", "False", "Unknown"]
Tree: TypeAlias = dict[str, Any]

#: Longer messages are cut: they are for people.
_MESSAGE_MAX = 2000

#: The label that makes every machine leave an object alone, whatever its value, but for "false".
SUSPEND_LABEL = "steersman.dev/suspend"


def suspension_of(obj: Object) -> str | None:
    """The value of the label that suspends an object; None if it is not suspended."""
    value = (obj.metadata.labels or {}).get(SUSPEND_LABEL)
    return None if value == "false" else value


class Observation(msgspec.Struct, frozen=True):
    """One condition without its time."""

    type: str
    status: Status
    reason: str
    message: str = ""


class Visit(msgspec.Struct, frozen=True):
    """A state that was run, and what came of it."""

    node: StateNode
    verdict: Verdict


class Observations(msgspec.Struct, frozen=True):
    """What a pass says about an object: conditions to set, and conditions that say nothing any more."""

    set: tuple[Observation, ...]
    removed: frozenset[str] = frozenset()
    #: All that the generation asks for was looked at.
    observed: bool = True

    def get(self, condition: str) -> Observation | None:
        """What is said about one condition."""
        return next((each for each in self.set if each.type == condition), None)


def is_complete(visits: Sequence[Visit]) -> bool:
    """Whether a pass came to its end."""
    last = visits[-1].verdict if visits else None
    return isinstance(last, Complete) and last.follows is None


def observe_pass(graph: MachineGraph, visits: Sequence[Visit], present: Collection[str]) -> Observations:
    """The conditions after a pass; ``present`` are those that the object has."""
    ready = _ready(graph, visits)
    if len(graph.states) == 1 and graph.first.condition == graph.ready:
        return Observations((ready,), frozenset({graph.suspended}))
    said = [_of_visit(visit) for visit in visits]
    last = visits[-1]
    if isinstance(last.verdict, Stopped):
        said.extend(_not_reached(graph, visits, present))
    named = {each.type for each in said}
    left = {node.condition for node in graph.states} - named
    return Observations((ready, *said), frozenset({graph.suspended, *left}))


def observe_deletion(graph: MachineGraph, reason: str, message: str) -> Observations:
    """The conditions while an object goes: those of the states stay as they are."""
    return Observations((_said(graph.ready, "False", reason, message),), frozenset({graph.suspended}))


def observe_suspension(graph: MachineGraph, value: str) -> Observations:
    """The conditions of an object that is left alone: all others stay as they are."""
    message = f"label {SUSPEND_LABEL}={value}: nothing is applied, pruned or finalized until it is taken away"
    return Observations((_said(graph.suspended, "True", SUSPENDED, message),), observed=False)


def condition_trees(
    observations: Iterable[Observation], present: Mapping[str, Tree], *, generation: int, now: datetime
) -> list[Tree]:
    """The conditions as they are written; ``present`` are those that the object has, by type."""
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
    """A message as it is written: one that nobody would read to its end is shortened."""
    return message if len(message) <= _MESSAGE_MAX else f"{message[:_MESSAGE_MAX]}..."


def _said(condition: str, status: Status, reason: str, message: str) -> Observation:
    """A condition in words that can be written: half of a surrogate pair, as in names of files, is spelt out."""
    if not message.isascii():
        message = message.encode("utf-8", "backslashreplace").decode()
    return Observation(condition, status, reason, message)


def _of_visit(visit: Visit) -> Observation:
    condition = visit.node.condition
    match visit.verdict:
        case Complete(message=message):
            return _said(condition, "True", "Complete", message)
        case Stopped(reason=reason, message=message):
            return _said(condition, "False", reason, message)


def _ready(graph: MachineGraph, visits: Sequence[Visit]) -> Observation:
    last = visits[-1].verdict
    if isinstance(last, Stopped):
        return _said(graph.ready, "False", last.reason, last.message)
    message = last.message if len(graph.states) == 1 else "all states are complete"
    return _said(graph.ready, "True", "Ready", message)


def _not_reached(graph: MachineGraph, visits: Sequence[Visit], present: Collection[str]) -> Iterable[Observation]:
    stopped = visits[-1].node
    usual = graph.usual_way(stopped.name)
    for name in graph.reachable(stopped.name):
        condition = graph.node(name).condition
        # A state aside of the usual way is spoken of only if it has been there.
        if name in usual or condition in present:
            yield Observation(condition, "Unknown", "NotReached", f"waits for {stopped.condition}")
