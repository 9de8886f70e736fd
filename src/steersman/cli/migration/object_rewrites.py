"""Writes every object once, unchanged, so that the server stores it in the storage version.

Guarantees
- An object is patched with nothing: the server itself reads, converts and writes it, and no field of another writer is lost.
- A conflict is retried; an object that is gone is skipped. Any other refusal is reported, and then nothing is recorded
  beyond it.
- A webhook that is down refuses no object: the run waits for it, and ends if it stays down.
- After a kill, a new run begins at most a hundred objects before the last one: all keys are listed first and
  rewritten in their order, and the last one is recorded in the definition.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from steersman.aio import Backoff, Supervisor, randomness
from steersman.cli.migration.definition import StoredKind, record_progress
from steersman.cli.migration.webhook_outage import WebhookOutages, unreachable_webhook
from steersman.client import Client, MergePatch, RateLimit
from steersman.errors import (
    ApiError,
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    Expired,
    Forbidden,
    KindNotServed,
    NotFound,
    OutcomeUnknown,
    ServiceUnavailable,
    TooManyRequests,
)
from steersman.objects import Key

#: Patches in flight, and objects between two records of the progress.
_WORKERS: Final = 8
_CHUNK: Final = 100
_PAGE: Final = 500
_ATTEMPTS: Final = 8
#: Repeating an empty patch is harmless, whatever happened to the one before.
_RETRIED: Final = (Conflict, OutcomeUnknown, ConnectionFailed, DeadlineExceeded, ServiceUnavailable, TooManyRequests)

Report = Callable[[int, int], None]


@dataclass
class Rewritten:
    """What became of the objects."""

    rewritten: int = 0
    #: Deleted since they were listed.
    gone: int = 0
    #: Done by an earlier run.
    skipped: int = 0
    failures: dict[Key, str] = field(default_factory=dict[Key, str])
    #: Why the progress could not be recorded; empty if it was.
    unrecorded: str = ""


async def keys_of(client: Client, definition: StoredKind) -> list[Key]:
    """The keys of all objects, in the order in which they are rewritten.

    Whatever is created later is stored in the storage version.
    """
    keys: set[Key] = set()

    async def read() -> None:
        async for page in client.metadata.pages(definition.objects, page_size=_PAGE):
            keys.update(each.key for each in page.items)

    for attempt in range(_ATTEMPTS):
        try:
            await WebhookOutages().outlast(read)
            break
        except Expired:
            if attempt == _ATTEMPTS - 1:
                raise
    return sorted(keys, key=str)


def counted(keys: list[Key]) -> dict[str, int]:
    """How many objects each namespace has."""
    return dict(sorted(Counter(key.namespace for key in keys).items()))


class Rewriting:
    """One run over the objects of a definition."""

    def __init__(
        self, client: Client, definition: StoredKind, *, per_second: float, dry_run: bool = False, report: Report
    ) -> None:
        self._client = client
        self._definition = definition
        self._limit = RateLimit(per_second=per_second, burst=_WORKERS)
        self._dry_run = dry_run
        self._report = report
        self._total = 0
        self._outages = WebhookOutages()
        #: Why the run cannot go on.
        self._error: ApiError | None = None
        self.result = Rewritten()

    async def run(self, keys: list[Key]) -> Rewritten:
        """Rewrite all objects, or those that an interrupted run has left."""
        after = "" if self._dry_run else self._definition.done_up_to
        todo = [key for key in keys if str(key) > after]
        self.result.skipped, self._total = len(keys) - len(todo), len(keys)
        self._report(self.result.skipped, self._total)
        for start in range(0, len(todo), _CHUNK):
            chunk = todo[start : start + _CHUNK]
            await self._rewrite_all(chunk)
            if not self._dry_run and not self.result.failures and not self.result.unrecorded:
                await self._record(chunk[-1])
        return self.result

    async def _record(self, key: Key) -> None:
        try:
            await record_progress(self._client, self._definition, str(key))
        except Forbidden as error:
            self.result.unrecorded = str(error)

    async def _rewrite_all(self, keys: list[Key]) -> None:
        waiting = iter(keys)

        async def work() -> None:
            for key in waiting:
                await self._limit.acquire()
                if self._error is not None:
                    return
                try:
                    await self._rewrite(key)
                except ApiError as error:
                    self._error = error
                    return
                done = self.result
                self._report(done.skipped + done.rewritten + done.gone + len(done.failures), self._total)

        async with Supervisor() as tasks:
            for number in range(_WORKERS):
                tasks.start(work(), name=f"rewriting {number}")
        if self._error is not None:
            raise self._error

    async def _rewrite(self, key: Key) -> None:
        """Rewrite one object; raises if others would fail in the same way."""
        kind, nothing = self._definition.objects, MergePatch({})
        backoff = Backoff(initial=0.05, maximum=5.0, jitter=0.5)
        for attempt in range(_ATTEMPTS):
            try:
                await self._outages.outlast(lambda: self._client.patch(kind, key, nothing, dry_run=self._dry_run))
            except NotFound:
                self.result.gone += 1
            except KindNotServed:
                raise
            except _RETRIED as error:
                if attempt < _ATTEMPTS - 1:
                    await asyncio.sleep(backoff.next_delay(randomness()))
                    continue
                if not isinstance(error, Conflict):
                    raise
                self.result.failures[key] = str(error)
            except ApiError as error:
                if unreachable_webhook(error):
                    raise
                self.result.failures[key] = str(error)
            else:
                self.result.rewritten += 1
            return
