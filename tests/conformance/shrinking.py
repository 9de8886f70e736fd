"""From a sequence that shows a difference, to the fewest of its steps that still show one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from conformance.scenario import Call, FramesUntil, OpenWatch, Scenario, Step

T = TypeVar("T")


def without(steps: Sequence[Step], start: int, size: int) -> tuple[Step, ...]:
    """The steps without some of them, and without frames that can no longer come: of watches or up to marks left out."""
    kept = [*steps[:start], *steps[start + size :]]
    opened = {step.watch for step in kept if isinstance(step, OpenWatch)}
    calls = [step for step in kept if isinstance(step, Call)]
    marked = {(call.path, value) for call in calls if (value := _mark(call))}
    made = {(call.path, str(call.body)) for call in calls if call.method == "POST"}

    def can_come(step: FramesUntil) -> bool:
        if step.watch not in opened or not step.by:
            return step.watch in opened
        collection, _, name = step.by.rpartition("/")
        is_made = any(path == collection and f"'name': '{name}'" in body for path, body in made)
        return is_made and (step.by, step.value) in marked

    return tuple(step for step in kept if not isinstance(step, FramesUntil) or can_come(step))


def _mark(call: Call) -> str:
    """The mark that a request sets, if it sets one."""
    if call.method != "PATCH" or not isinstance(call.body, dict):
        return ""
    metadata = call.body.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations.get("mark", "") if isinstance(annotations, dict) else ""


async def fewest(
    parts: Sequence[T],
    differs: Callable[[tuple[T, ...]], Awaitable[bool]],
    *,
    leave_out: Callable[[Sequence[T], int, int], tuple[T, ...]] | None = None,
    seconds: float = 60,
) -> tuple[T, ...]:
    """Leave out parts as long as the rest still differs, and time is left: halves first, then ever smaller pieces."""
    loop = asyncio.get_running_loop()
    due = loop.time() + seconds
    size = max(1, len(parts) // 2)
    left = tuple(parts)
    while loop.time() < due:
        start, found = 0, False
        while start < len(left) and loop.time() < due:
            fewer = leave_out(left, start, size) if leave_out else (*left[:start], *left[start + size :])
            if fewer and await differs(fewer):
                left, found = fewer, True
            else:
                start += size
        if size == 1 and not found:
            break
        size = max(1, size // 2)
    return left


async def shrink(
    scenario: Scenario, differs: Callable[[Scenario], Awaitable[bool]], *, seconds: float = 60
) -> Scenario:
    """The fewest steps of a scenario that still differ, as far as time allows."""
    name = f"{scenario.name}, shrunk"

    async def still(steps: tuple[Step, ...]) -> bool:
        return await differs(Scenario(name, steps))

    return Scenario(name, await fewest(scenario.steps, still, leave_out=without, seconds=seconds))
