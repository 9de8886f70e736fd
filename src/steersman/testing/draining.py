"""Until nothing is left to do: then a test can look at the world with plain asserts.

Guarantees
- When it returns, the control plane's controllers have nothing to do, every cache of the operators holds what the server
  holds, no reconcile runs, is ready or is tried again, and none is due within a second.
- What waits for a time of its own (`RequeueAfter`) is not work: a clock brings it.
- What never ends is reported with the keys that keep running, and why; a reconcile that crashed ends the wait at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any

from steersman.cache import Informer
from steersman.client import Client
from steersman.controller import Controller, KeyRecord
from steersman.manager.words import count, duration
from steersman.objects import Key
from steersman.objects.errors import ApiError
from steersman.testing.clock import time_flies
from steersman.testing.taking_part import Participant, participants

#: What is due so soon is work; what is due later waits for its time.
_SOON = 1.0
#: How soon to look again while something is under way, at first and after a while.
_LOOK, _LOOK_MAX = 0.002, 0.1
_KEYS = 4096
_SHOWN = 5


class NotDrained(AssertionError):
    """There is always something left to do."""


async def drained(client: Client, settled: Callable[[], Awaitable[None]], *, within: float) -> None:
    """Wait until neither the control plane nor anybody who takes part has work; `NotDrained` after ``within`` seconds."""
    __tracebackhide__ = True
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    before, pause = _runs(participants()), _LOOK
    left: list[str] = ["the control plane's own controllers are busy"]
    try:
        with time_flies(deadline):
            async with asyncio.timeout_at(deadline):
                looks = 0
                # twice in a row: what ran during the first look may have given the control plane something to do
                while looks < 2:
                    mark = _runs(participants())
                    await settled()
                    for participant in participants():
                        participant.check()
                    left = [line async for line in _left(client, participants())]
                    if not left and mark == _runs(participants()):
                        looks += 1
                        continue
                    looks, left = 0, left or ["something ran just now"]
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LOOK_MAX)
    except TimeoutError:
        raise NotDrained(_report(within, left, before, participants())) from None


def _runs(taking_part: Iterable[Participant]) -> Counter[tuple[str, Key]]:
    """How often each key was reconciled."""
    found: Counter[tuple[str, Key]] = Counter()
    for participant in taking_part:
        for name, record in participant.runs:
            found[name, record.request.key] += 1
    return found


async def _left(client: Client, taking_part: Iterable[Participant]) -> AsyncIterator[str]:
    for participant in taking_part:
        for controller in participant.controllers:
            for line in _work(controller):
                yield line
        if (events := getattr(participant, "events", None)) is not None and not events.idle:
            yield "events are being written"
        for informer in participant.informers:
            if line := await _behind(client, informer):
                yield line
        # what a cache took in while the others were looked at
        for controller in participant.controllers:
            for line in _work(controller):
                yield line


def _work(controller: Controller) -> Iterator[str]:
    statistics = controller.statistics(keys=_KEYS)
    queue = statistics.queue
    if not statistics.working:
        yield f"controller {controller.name} has not begun to work"
    if queue.ready or queue.running or statistics.active:
        yield f"controller {controller.name}: {count(queue.ready, 'key')} ready, {queue.running} running"
    if queue.failing or queue.requeued:
        yield f"controller {controller.name}: {count(queue.failing + queue.requeued, 'key')} to be tried again"
    soon = [record for record in statistics.keys if record.next_run is not None and record.next_run <= _SOON]
    if soon and not (queue.ready or queue.running):
        yield f"controller {controller.name}: {', '.join(str(record.request) for record in soon[:_SHOWN])} due soon"


async def _behind(client: Client, informer: Informer[Any]) -> str:
    """Why a cache does not hold what the server holds; nothing if it does."""
    if not informer.served:
        return ""
    if not informer.synced or any(informer.statistics().pending):
        return f"the cache of {informer.gvk.kind} is being read"
    options = informer.options
    there: dict[Key, str] = {}
    try:
        for namespace in options.namespaces or (None,):
            listed = await client.metadata.list(
                informer.kind, namespace=namespace, labels=options.labels, fields=options.fields, limit=0
            )
            there |= {each.key: each.metadata.resource_version or "" for each in listed}
    except ApiError as error:
        return f"the cache of {informer.gvk.kind} cannot be compared: {error}"
    held = {stored.key: stored.resource_version for stored in informer.store}
    return "" if held == there else f"the cache of {informer.gvk.kind} is behind the server"


def _report(
    within: float, left: list[str], before: Counter[tuple[str, Key]], taking_part: Iterable[Participant]
) -> str:
    """Who keeps running, and why."""
    taking_part = list(taking_part)
    lines = [f"after {duration(within)} there is still work to do:", *(f"    {line}" for line in dict.fromkeys(left))]
    again = _runs(taking_part) - before
    for (name, key), times in again.most_common(_SHOWN):
        last = next(
            (record for each in taking_part for who, record in reversed(list(each.runs_of(key))) if who == name), None
        )
        lines.append(f"controller {name} reconciled {key} {count(times, 'time')} meanwhile{_why(last)}")
    return "\n".join(lines)


def _why(record: KeyRecord | None) -> str:
    if record is None:
        return ""
    words = f", the last time because {record.causes}"
    if record.last_error and record.last_error_at == record.finished:
        return f"{words}; it failed: {record.last_error.splitlines()[-1]}"
    if record.result == "requeue":
        return f"{words}; it asked to run again"
    if record.result == "requeue_after":
        return f"{words}; it asked to run again in {duration(record.next_run or 0.0)}"
    if record.writes:
        return f"{words}; every run writes ({count(record.writes, 'write')}), and so wakes itself or another controller"
    return words
