"""What a run found, in words: the differences of a scenario, and the totals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.comparing import Difference, differences
from conformance.known_differences import Known
from conformance.player import Play
from conformance.scenario import Call, Close, Ends, Frames, FramesUntil, OpenWatch, Scenario, Step, Until

_VALUE_MAX = 600
_PLACES_MAX = 12


@dataclass(frozen=True, slots=True)
class Outcome:
    """Both plays of a scenario, and where they differ: by step, what no known difference explains."""

    scenario: Scenario
    reference: Play
    subject: Play
    unexplained: dict[int, list[Difference]]
    explained: int
    used: frozenset[Known]

    @property
    def differences(self) -> list[Difference]:
        """The unexplained differences of all steps."""
        return [each for found in self.unexplained.values() for each in found]

    @property
    def count(self) -> int:
        """How many unexplained differences."""
        return len(self.differences)


@dataclass(slots=True)
class Totals:
    """The sums of a run."""

    scenarios: int = 0
    requests: int = 0
    frames: int = 0
    differences: int = 0
    explained: int = 0
    random_steps: int = 0
    seed: int | None = None
    used: set[Known] = field(default_factory=set)

    def add(self, outcome: Outcome) -> None:
        """Count one outcome."""
        self.scenarios += 1
        # what one server was asked; the other one was asked the same
        self.requests += outcome.reference.requests
        self.frames += outcome.reference.frames
        self.differences += outcome.count
        self.explained += outcome.explained
        self.used |= outcome.used

    def line(self, reference: str, subject: str) -> str:
        """The totals as one line."""
        known = f" ({self.explained} known ones explained)" if self.explained else ""
        chance = f", {self.random_steps} of these steps at random from seed {self.seed}" if self.random_steps else ""
        return (
            f"{subject} against {reference}: {self.scenarios} scenarios, {self.requests} requests, "
            f"{self.frames} watch frames{chance}: {self.differences} differences{known}"
        )


def compare(scenario: Scenario, reference: Play, subject: Play, known: Sequence[Known] = ()) -> Outcome:
    """Compare two plays step by step."""
    unexplained: dict[int, list[Difference]] = {}
    explained = 0
    used: set[Known] = set()
    for index, (left, right) in enumerate(zip(reference.answers, subject.answers, strict=True)):
        for difference in answer_differences(left, right):
            reasons = [entry for entry in known if entry.explains(scenario.name, difference)]
            used.update(reasons)
            if reasons:
                explained += 1
            else:
                unexplained.setdefault(index, []).append(difference)
    return Outcome(scenario, reference, subject, unexplained, explained, frozenset(used))


def answer_differences(left: Any, right: Any) -> list[Difference]:
    """Where two answers differ; when only one of them is a refusal, that alone is reported."""
    if isinstance(left, dict) and isinstance(right, dict) and left.get("status") != right.get("status"):
        return [Difference(".status", _summary(left), _summary(right))]
    return differences(left, right)


def _summary(answer: dict[str, Any]) -> str:
    if "status" not in answer:
        return json.dumps(answer, ensure_ascii=False)
    body = answer.get("body")
    told = body.get("message") if isinstance(body, dict) and body.get("kind") == "Status" else None
    return f"{answer['status']} {told or json.dumps(body, ensure_ascii=False)}"


def describe_step(step: Step) -> str:
    """A step as a person would write it down."""
    match step:
        case Call():
            return _describe_call(step)
        case OpenWatch():
            return f"watch {step.watch}: {_describe_call(step.call)}"
        case Until():
            return f"until {step.status}: {_describe_call(step.call)}"
        case Close():
            return f"close watch {step.watch}"
        case _:
            return _describe_frames(step)


def _describe_frames(step: Frames | FramesUntil | Ends) -> str:
    if isinstance(step, Frames):
        return f"{step.count} frames of watch {step.watch}"
    if isinstance(step, FramesUntil):
        return f"frames of watch {step.watch} until {step.name or 'a bookmark'} has {step.annotation}={step.value}"
    return f"watch {step.watch} up to its end"


def _describe_call(step: Call) -> str:
    query = "&".join(f"{name}={value}" for name, value in step.query)
    lines = [f"{step.method} {step.path}{'?' + query if query else ''}"]
    lines += [f"{name}: {value}" for name, value in step.headers]
    if step.body is not None:
        lines.append(_value(step.body if isinstance(step.body, bytes | str) else json.dumps(step.body, default=repr)))
    return "\n      ".join(lines)


def describe_steps(scenario: Scenario) -> str:
    """All steps of a scenario, for who wants to ask the same."""
    told = [f"  step {index}: {describe_step(step)}" for index, step in enumerate(scenario.steps)]
    return "\n".join([f"scenario {scenario.name}:", *told])


def describe(outcome: Outcome, reference: str, subject: str) -> str:
    """Every difference of a scenario, with the request that showed it."""
    scenario = outcome.scenario
    lines = [f"scenario {scenario.name}: {outcome.count} differences"]
    width = max(len(reference), len(subject))
    for index, found in outcome.unexplained.items():
        last = index >= len(scenario.steps)
        what = "after the last step" if last else f"step {index}: {describe_step(scenario.steps[index])}"
        lines.append(f"  {what}")
        for difference in found[:_PLACES_MAX]:
            lines.append(f"    at {difference.path}")
            lines.append(f"      {reference:>{width}}: {_value(difference.reference)}")
            lines.append(f"      {subject:>{width}}: {_value(difference.subject)}")
        if len(found) > _PLACES_MAX:
            lines.append(f"    and {len(found) - _PLACES_MAX} more")
    return "\n".join(lines)


def _value(value: Any) -> str:
    if isinstance(value, bytes):
        text = repr(value)
    elif isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE_MAX else f"{text[:_VALUE_MAX]}... ({len(text)} characters)"
