"""Compares the actions of two runs: which only one of them has, and where they part. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

import msgspec

from steersman.simulation.stories.actions import Action

#: ``!`` a fault, ``+`` only in the run with faults, ``-`` only in the run without; empty: in both.
Mark: TypeAlias = Literal["!", "+", "-", ""]

#: How many actions of each run are compared.
_ACTIONS_MAX = 2_000
#: How many actions that both runs have are shown before and after a difference, and how many lines a story has at most.
_CONTEXT, _LINES_MAX = 3, 60
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
#: The random end of a generated name.
_SUFFIX = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b")


class StoryLine(msgspec.Struct, frozen=True, kw_only=True):
    """An action of a story, or how many were left out."""

    mark: Mark = ""
    action: Action | None = None
    omitted: int = 0
    #: Whether what was left out happens in both runs.
    both: bool = True
    #: Whether the runs part here.
    parts: bool = False


def compared(actions: Sequence[Action], reference: Sequence[Action]) -> list[StoryLine]:
    """The actions of a run, with those that only the reference has."""
    marked = list(_marked(actions[:_ACTIONS_MAX], reference[:_ACTIONS_MAX]))
    fault = next((number for number, (mark, _) in enumerate(marked) if mark == "!"), 0)
    differences = (
        number for number, (mark, action) in enumerate(marked) if mark in {"+", "-"} and action.sort not in _OWN
    )
    parting = next((number for number in differences if number > fault), -1)
    return [
        StoryLine(mark=mark, action=action, parts=number == parting) for number, (mark, action) in enumerate(marked)
    ]


#: What follows from a fault in any case.
_OWN = frozenset({"crash", "start"})


def _marked(actions: Sequence[Action], reference: Sequence[Action]) -> Iterator[tuple[Mark, Action]]:
    same = _common_beginning(actions, reference)
    for action in actions[:same]:
        yield "!" if action.sort == "fault" else "", action
    reference = reference[same - sum(action.sort == "fault" for action in actions[:same]) :]
    actions = actions[same:]
    here, there = list(map(_identity, actions)), list(map(_identity, reference))
    more, fewer = Counter(here) - Counter(there), Counter(there) - Counter(here)
    for tag, begin, end, first, last in SequenceMatcher(a=there, b=here, autojunk=False).get_opcodes():
        if tag != "equal":
            for number in range(begin, end):
                # An action that happens in both, but in another order, is no difference.
                if fewer[there[number]]:
                    fewer[there[number]] -= 1
                    yield "-", reference[number]
        for number in range(first, last):
            mark: Mark = ""
            if actions[number].sort == "fault":
                mark = "!"
            elif tag != "equal" and more[here[number]] and not _is_struck(actions, number):
                more[here[number]] -= 1
                mark = "+"
            yield mark, actions[number]


def _common_beginning(actions: Sequence[Action], reference: Sequence[Action]) -> int:
    """How many actions are the same as in the reference, faults included: until a fault, all are."""
    faults = 0
    for number, action in enumerate(actions):
        if action.sort == "fault":
            faults += 1
        elif number - faults >= len(reference) or _identity(action) != _identity(reference[number - faults]):
            return number
    return len(actions)


def _is_struck(actions: Sequence[Action], number: int) -> bool:
    """Whether a fault strikes this very request: it is shown for that, even if it changes nothing."""
    following = actions[number + 1] if number + 1 < len(actions) else None
    if following is None or following.sort != "fault":
        return False
    return (following.actor, following.time) == (actions[number].actor, actions[number].time)


def _identity(action: Action) -> tuple[str, ...]:
    """What makes two actions the same: not their time, nor what differs by chance."""
    # A deletion is the same, whatever the object held.
    texts = (action.actor, action.words, action.outcome, *(action.diff if action.change != "delete" else ()))
    return tuple(_SUFFIX.sub("-*", _TIME.sub("TIME", text)) for text in texts)


def shortened(lines: Sequence[StoryLine]) -> list[StoryLine]:
    """The lines near a difference, and all that users do; the others are counted."""
    marks = [number for number, line in enumerate(lines) if line.mark]
    near = {each for mark in marks for each in range(mark - _CONTEXT, mark + _CONTEXT + 1)}
    users = {number for number, line in enumerate(lines) if line.action is not None and line.action.actor == "user"}
    wanted = sorted(each for each in near | users if 0 <= each < len(lines))
    if not marks:
        wanted = list(range(max(0, len(lines) - _LINES_MAX), len(lines)))
    wanted = wanted[:_LINES_MAX]
    shown: list[StoryLine] = []
    last = -1
    for number in wanted:
        if number - last == 2:
            # A line that says that one was left out is as long.
            shown.append(lines[number - 1])
        elif number - last > 2:
            shown.append(StoryLine(omitted=number - last - 1))
        shown.append(lines[number])
        last = number
    left = lines[last + 1 :]
    if len(left) == 1:
        shown += left
    elif left:
        shown.append(StoryLine(omitted=len(left), both=not any(line.mark for line in left)))
    return shown
