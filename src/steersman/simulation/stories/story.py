"""The story of a run that failed: what is wrong, what happened, and what the run without faults does in its place.

```
crash after the reply to create Secret shop/home, before the status of Site shop/home is written
-> Secret shop/home is left behind
```
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from steersman.objects.secret_values import Redaction
from steersman.simulation.runs.faults import CrashCommitted, CrashReplied
from steersman.simulation.runs.schedules import FaultSchedule, PlacedFault, Violation
from steersman.simulation.scenario import Scenario
from steersman.simulation.stories.actions import Action, actions_of
from steersman.simulation.stories.comparison import StoryLine, compared, shortened
from steersman.simulation.stories.recordings import Recording, recorded
from steersman.simulation.stories.words import Vocabulary, resource_of
from steersman.telemetry import visible

#: How many lines of a difference the text shows; the page shows all.
_DIFF_MAX = 8
_LEGEND = "! fault, + only with it, - only without it; seconds since the operator first started"


class Case(msgspec.Struct, frozen=True):
    """A schedule that failed, and how."""

    schedule: FaultSchedule
    violations: tuple[Violation, ...]


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a run that failed."""

    #: The faults.
    title: str
    #: What is wrong in the end.
    violations: tuple[str, ...]
    lines: tuple[StoryLine, ...] = ()

    @property
    def headline(self) -> str:
        """The faults and what is wrong, one to a line."""
        return "\n".join((self.title, *(f"-> {words}" for words in self.violations)))

    def __str__(self) -> str:
        if not self.lines:
            return self.headline
        return "\n".join((self.headline, "", *_text(self.lines), "", _LEGEND))


def stories_of(scenario: Scenario, cases: Sequence[Case], *, jobs: int = 2) -> list[Story]:
    """The stories of schedules that failed."""
    seeds = dict.fromkeys(case.schedule.seed for case in cases)
    schedules = [*(case.schedule for case in cases), *(FaultSchedule(seed=seed) for seed in seeds)]
    recordings = recorded(scenario, schedules, jobs=jobs)
    references = dict(zip(seeds, recordings[len(cases) :], strict=True))
    return [
        story_of(case, recording, references[case.schedule.seed])
        for case, recording in zip(cases, recordings, strict=False)
    ]


def story_of(case: Case, recording: Recording, reference: Recording) -> Story:
    """The story of one schedule, from its trace and that of the run without faults."""
    vocabulary = Vocabulary(recording, reference)
    faults = case.schedule.faults
    actions = actions_of(recording, vocabulary)
    lines = compared(actions, actions_of(reference, vocabulary)) if faults else _plain(actions)
    return Story(
        title=" and ".join(_fault_words(placed, vocabulary, reference) for placed in faults) or "no fault",
        violations=tuple(
            vocabulary.with_kinds(_redacted(violation.words, (recording, reference))) for violation in case.violations
        ),
        lines=tuple(shortened(lines)),
    )


def _plain(actions: Sequence[Action]) -> list[StoryLine]:
    return [StoryLine(action=action) for action in actions]


def _fault_words(placed: PlacedFault, vocabulary: Vocabulary, reference: Recording) -> str:
    words = vocabulary.fault(placed.fault, placed.place)
    if placed.place.actor != "operator":
        words = f"{placed.place.actor}: {words}"
    if isinstance(placed.fault, CrashCommitted | CrashReplied):
        return words + _not_reached(placed, vocabulary, reference)
    return words


def _not_reached(placed: PlacedFault, vocabulary: Vocabulary, reference: Recording) -> str:
    """The next write of the same reconcile, which the crash prevents."""
    own = (entry for entry in reference if entry.actor == placed.place.actor)
    for entry in own:
        if entry.sort == "request" and entry.place == placed.place:
            break
    for entry in own:
        if entry.sort == "reconcile":
            return ""
        if entry.sort == "request" and entry.place is not None and entry.place.is_write:
            if entry.place.resource.endswith("/status"):
                return f", before {vocabulary.request(entry.place).removeprefix('write ')} is written"
            return f", before it {vocabulary.acts(entry.place)}"
    return ""


def _redacted(words: str, recordings: Sequence[Recording]) -> str:
    """The words of an oracle without the secret values of the kinds that they name."""
    entries = (entry for recording in recordings for entry in recording if entry.key)
    values = {entry.after or entry.before: entry.key for entry in entries if f"{resource_of(entry.key)} " in words}
    for value, key in values.items():
        words = Redaction(value, secret=key.startswith("core/secrets/"))(words)
    return words


# text


def omission(line: StoryLine) -> str:
    """What was left out, in words."""
    actions = "1 action" if line.omitted == 1 else f"{line.omitted} actions"
    return f"{actions} as without the fault" if line.both else f"{actions} more"


def _text(lines: Sequence[StoryLine]) -> Iterator[str]:
    width = max((len(line.action.actor) for line in lines if line.action is not None), default=0)
    indent = " " * (14 + width)
    for line in lines:
        action = line.action
        if action is None:
            yield f"{indent}... {omission(line)}"
            continue
        if line.parts:
            yield f"{indent}-- the runs part here --"
        outcome = f" -> {action.outcome}" if action.outcome else ""
        yield f"{line.mark or ' '} {action.time:9.3f}  {visible(action.actor):<{width}} {visible(action.words)}{outcome}"
        if action.change == "change":
            yield from (f"{indent}  {visible(each)}" for each in action.diff[:_DIFF_MAX])
            if len(action.diff) > _DIFF_MAX:
                yield f"{indent}  ... {len(action.diff) - _DIFF_MAX} more lines"
