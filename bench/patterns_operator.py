"""One form of the operator as a separate process that reports its cost.

``python -m bench.patterns_operator FORM KUBECONFIG OWNERS`` runs until its standard input ends. It prints a JSON line
when it has reconciled that many owners and rests. Each line of input asks for more, and gives another line:

- ``owners N``: reconcile until there are N owners, which the benchmark creates meanwhile.
- ``pass``: reconcile all owners once more.

The CPU in a line is what this process used since the line before it, without importing and connecting. Imported modules
are frozen out of garbage collection first, as ``steersman run`` does.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.patterns_counting import Counting
from steersman import Client, Manager
from steersman.aio import Supervisor
from steersman.controller import Cause, KeyRecord, Request

#: A process that used less CPU than this in this time is at rest.
QUIET_SECONDS, QUIET_CPU = 0.5, 0.01


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one stage."""

    cpu: float
    runs: int
    #: Requests by what they did: writes, reads, lists and watches.
    requests: dict[str, int]
    failures: int


class Runs:
    """The finished reconciles."""

    def __init__(self) -> None:
        self.owners: dict[Request, None] = {}
        self.count = 0
        self.failures = 0
        self._ended = asyncio.Event()

    def note(self, _: str, record: KeyRecord) -> None:
        """Record a finished reconcile."""
        self.owners[record.request] = None
        self.count += 1
        self.failures += bool(record.last_error)
        self._ended.set()

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until a condition holds after a reconcile."""
        while not reached():
            self._ended.clear()
            await self._ended.wait()


async def rested(manager: Manager) -> None:
    """Wait until the process is at rest: watch events of its own writes are work, too."""
    while True:
        before = time.process_time()
        await asyncio.sleep(QUIET_SECONDS)
        if time.process_time() - before < QUIET_CPU and not any(each.busy for each in manager.controllers):
            return


async def operate(form: str, kubeconfig: Path, owners: int) -> None:
    """Run, and report."""
    from bench.patterns_forms import FORMS  # noqa: PLC0415 - a form may import more than another

    manager, runs, counted = Manager(name="bench"), Runs(), Counter[str]()
    manager.add(FORMS[form]())
    manager.on_reconcile(runs.note)
    commands = await _input()
    async with Client.connect(kubeconfig=kubeconfig, field_manager="bench") as client:
        counting = client.with_transport(lambda inner: Counting(inner, counted))
        gc.collect()
        gc.freeze()
        async with Supervisor() as tasks:
            began = time.process_time()
            tasks.start(manager.run(counting, signals=False), name="operator")
            while True:
                await runs.until(lambda wanted=owners: len(runs.owners) >= wanted)
                await rested(manager)
                now = time.process_time()
                spent = Spent(cpu=now - began, runs=runs.count, requests=dict(counted), failures=runs.failures)
                print(msgspec.json.encode(spent).decode(), flush=True)
                runs.count = runs.failures = 0
                counted.clear()
                began = now
                match (await commands.readline()).split():
                    case [b"owners", number]:
                        owners = int(number)
                    case [b"pass"]:
                        for owner in runs.owners:
                            manager.controllers[0].add(owner, Cause(what="external", note="asked"))
                        await runs.until(lambda wanted=owners: runs.count >= wanted)
                    case _:
                        break
            manager.stop()


async def _input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


if __name__ == "__main__":
    form, kubeconfig, owners = sys.argv[1:]
    asyncio.run(operate(form, Path(kubeconfig), int(owners)))
