"""Waits until no work is left, so that a test can use plain asserts.

Guarantees
- When it returns, the control plane's controllers are idle, every cache of the operators matches the server, no
  reconcile runs, is ready or is being retried, and none is due within a second. No source has work of its own, such as a
  call of an `External` or a debounced event.
- A key that waits for its own time (`RequeueAfter`) does not count as work: advance the clock for it. One that is due within
  a second does, until it has run for no other reason and has written nothing.
- Endless work is reported with the keys that keep running, and why. A crashed reconcile ends the wait immediately.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any

from steersman.cache import Informer
from steersman.client import Client
from steersman.controller import Controller, KeyRecord
from steersman.debug import count, duration
from steersman.errors import ApiError
from steersman.objects import Key
from steersman.testing.clock import time_flies
from steersman.testing.participants import Participant, participants

#: A key due this soon counts as work; a later one does not.
_SOON = 1.0
#: How soon to check again while work remains: initially, and at most.
_LOOK, _LOOK_MAX = 0.002, 0.1
_KEYS = 4096
_SHOWN = 5


class NotDrained(AssertionError):
    """Some work never ended."""


async def drained(client: Client, settled: Callable[[], Awaitable[None]], *, within: float) -> None:
    """Wait until neither the control plane nor any participant has work; `NotDrained` after ``within`` seconds."""
    __tracebackhide__ = True
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    before, pause = _runs(participants()), _LOOK
    left: list[str] = ["the control plane's own controllers are busy"]
    try:
        with time_flies(deadline):
            async with asyncio.timeout_at(deadline):
                looks = 0
                # twice in a row: work that ran during the first check may have given the control plane more
                while looks < 2:
                    mark = _effective_runs(participants())
                    await settled()
                    for participant in participants():
                        participant.check()
                    left = [line async for line in _left(client, participants())]
                    if not left and mark == _effective_runs(participants()):
                        looks += 1
                        continue
                    looks, left = 0, left or ["something ran just now"]
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LOOK_MAX)
    except TimeoutError:
        raise NotDrained(_report(within, left, before, participants())) from None


def _runs(participation: Iterable[Participant]) -> Counter[tuple[str, Key]]:
    """How often each key was reconciled."""
    return Counter((name, record.request.key) for name, record in _records(participation))


def _effective_runs(participation: Iterable[Participant]) -> Counter[tuple[str, Key]]:
    """How often each key was reconciled, without idle polls: those of several keys may leave no gap."""
    return Counter((name, record.request.key) for name, record in _records(participation) if not _is_idle_poll(record))


def _records(participation: Iterable[Participant]) -> Iterator[tuple[str, KeyRecord]]:
    for participant in participation:
        yield from participant.runs


async def _left(client: Client, participation: Iterable[Participant]) -> AsyncIterator[str]:
    for participant in participation:
        for controller in participant.controllers:
            for line in _work(controller):
                yield line
        if (events := getattr(participant, "events", None)) is not None and not events.idle:
            yield "events are being written"
        for informer in participant.informers:
            if line := await _behind(client, informer):
                yield line
        # work that caches received while the others were checked
        for controller in participant.controllers:
            for line in _work(controller):
                yield line


def _work(controller: Controller) -> Iterator[str]:
    statistics = controller.statistics(keys=_KEYS)
    queue = statistics.queue
    if not statistics.working:
        yield f"controller {controller.name} has not started working"
    if queue.ready or queue.running or statistics.active:
        yield f"controller {controller.name}: {count(queue.ready, 'key')} ready, {queue.running} running"
    if queue.failing or queue.requeued:
        yield f"controller {controller.name}: {count(queue.failing + queue.requeued, 'key')} to be retried"
    if queue.throttled:
        yield f"controller {controller.name}: {count(queue.throttled, 'key')} throttled, because every run writes"
    for source in statistics.sources:
        if source.pending:
            yield f"controller {controller.name}: source {source.name} has {count(source.pending, 'event')} to come"
    soon = [record for record in statistics.keys if _is_soon(record)]
    if soon and not (queue.ready or queue.running):
        yield f"controller {controller.name}: {', '.join(str(record.request) for record in soon[:_SHOWN])} due soon"


def _is_soon(record: KeyRecord) -> bool:
    """Whether a key is due so soon that it counts as work. One that only polls, and finds nothing to do, would never end."""
    return record.next_run is not None and record.next_run <= _SOON and not _is_idle_poll(record)


def _is_idle_poll(record: KeyRecord) -> bool:
    """Whether a reconcile ran only because it had asked for that, and wrote nothing."""
    return not record.writes and all(cause.what == "requeue" for cause in record.causes)


async def _behind(client: Client, informer: Informer[Any]) -> str:
    """Why a cache differs from the server; empty if it does not."""
    if not informer.served:
        return ""
    if not informer.synced or any(informer.statistics().pending):
        return f"the cache of {informer.gvk.kind} is being read"
    options = informer.options
    there: dict[Key, str] = {}
    try:
        for namespace in options.namespaces or (None,):
            listed = await client.metadata.list(
                informer.kind, namespace=namespace, labels=options.labels, fields=options.fields, page_size=0
            )
            there |= {each.key: each.metadata.resource_version or "" for each in listed}
    except ApiError as error:
        return f"the cache of {informer.gvk.kind} cannot be compared: {error}"
    held = {stored.key: stored.resource_version for stored in informer.store}
    return "" if held == there else f"the cache of {informer.gvk.kind} is behind the server"


def _report(
    within: float, left: list[str], before: Counter[tuple[str, Key]], participation: Iterable[Participant]
) -> str:
    """List what keeps running, and why."""
    participation = list(participation)
    lines = [f"after {duration(within)} there is still work to do:", *(f"    {line}" for line in dict.fromkeys(left))]
    again = _runs(participation) - before
    for (name, key), times in again.most_common(_SHOWN):
        last = next(
            (record for each in participation for who, record in reversed(list(each.runs_of(key))) if who == name), None
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
        return f"{words}; it returned Requeue()"
    if record.result == "requeue_after":
        return f"{words}; it returned RequeueAfter"
    if record.writes:
        every = f"every run writes ({count(record.writes, 'write')}), and so wakes itself or another controller"
        return f"{words}; {record.loop or every}"
    return words
