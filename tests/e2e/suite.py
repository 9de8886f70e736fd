"""Runs specs of the official Kubernetes e2e suite on a cluster, in several processes.

Guarantees
- Every spec gets a result. A spec that takes longer than its timeout is interrupted and recorded as such; the specs after
  it run in a new process.
- Specs marked ``[Serial]`` run alone, after the others.
- No process outlives the run.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

from e2e.clusters import Cluster
from e2e.program import program

from steersman.testing.engine.environment import Environment
from steersman.testing.engine.errors import last_lines
from steersman.testing.engine.processes import Processes, supervised

#: How long a process may take before its first spec begins, and to clean up after an interrupt.
START_SECONDS, CLEAN_UP_SECONDS = 300.0, 30.0
#: The most specs that one process runs: its start takes seconds, so a process for each spec would be costly.
BATCH = 20
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Result:
    """How a spec ended: ``passed``, ``failed``, ``skipped``, ``timeout``, or another of Ginkgo's states."""

    state: str
    seconds: float
    message: str = ""


class SuiteError(Exception):
    """The program of the suite did not run its specs."""


@dataclass(slots=True)
class _Batch:
    """The specs of one process that has not ended yet."""

    left: list[str]
    #: The spec that runs, and when it began.
    current: str = ""
    since: float = 0.0
    events: Path = field(default_factory=Path)
    #: How many bytes of the events were read.
    read: int = 0


class Suite:
    """A run of specs on one cluster; ``on_result`` is called with each spec and its result; ``folder`` keeps the logs."""

    def __init__(
        self, cluster: Cluster, folder: Path, *, timeout: float, on_result: Callable[[str, Result], None]
    ) -> None:
        self._cluster = cluster
        self._folder = folder
        self._timeout = timeout
        self._on_result = on_result
        #: The results until now.
        self.results: dict[str, Result] = {}
        self._count = 0
        self._program = Path()

    async def run(self, specs: Sequence[str], *, processes: int) -> dict[str, Result]:
        """Run specs and return the result of each."""
        self._program = await asyncio.to_thread(program)
        together = [spec for spec in specs if "[Serial]" not in spec]
        alone = [spec for spec in specs if "[Serial]" in spec]
        scratch = Path(mkdtemp(prefix="steersman-e2e-"))
        async with supervised(folder=scratch, budget=10, log=self._folder / "supervisor.log") as started:
            for queue, count in ((together, processes), (alone, 1)):
                size = min(BATCH, -(-len(queue) // count))
                async with asyncio.TaskGroup() as group:
                    for _ in range(count):
                        group.create_task(self._work(started, queue, size))
        return self.results

    async def _work(self, processes: Processes, queue: list[str], size: int) -> None:
        while queue:
            batch = _Batch(queue[:size])
            del queue[:size]
            while batch.left:
                await self._process(processes, batch)

    async def _process(self, processes: Processes, batch: _Batch) -> None:
        """Run the specs of a batch in a process, until all have ended or one takes too long."""
        self._count += 1
        name = f"{self._cluster.server}-{self._count}"
        log, names = self._folder / f"{name}.log", self._folder / f"{name}.specs"
        names.write_text("\n".join(batch.left) + "\n", encoding="utf-8")
        batch.events, batch.read, batch.current = self._folder / f"{name}.events", 0, ""
        batch.events.touch()
        batch.since = asyncio.get_running_loop().time()
        before = len(batch.left)
        await processes.start(name, self._command(names, batch.events), log=log, stage=0)
        async with asyncio.TaskGroup() as group:
            end = group.create_task(processes.wait(name))
            while not end.done():
                await asyncio.wait([end], timeout=_POLL_SECONDS)
                self._read(batch)
                if not end.done() and self._is_late(batch):
                    await self._interrupt(processes, name, end)
        self._read(batch)
        if batch.current:
            late = self._is_late(batch)
            self._record(batch, batch.current, Result("timeout" if late else "crashed", self._elapsed(batch)))
        elif end.result() == 0:
            for spec in list(batch.left):
                self._record(batch, spec, Result("missing", 0.0, "the suite has no spec of this name"))
        if len(batch.left) == before:
            raise SuiteError(f"the suite ended with {end.result()} and ran no spec: {last_lines(log)}")

    def _command(self, names: Path, events: Path) -> list[str]:
        kubectl = Environment.read().program("kubectl")
        flags = {
            "kubeconfig": self._cluster.kubeconfig,
            "provider": "skeleton",
            "kubectl-path": kubectl,
            "num-nodes": 1,
            "dump-logs-on-failure": "false",
            "e2e-output-dir": self._folder,
            "specs": names,
            "events": events,
            "ginkgo.no-color": "true",
            "ginkgo.timeout": "24h",
            "test.timeout": "24h",
        }
        # Servers of different runs may have the same address: kubectl must not find the cache of another one.
        environment = [f"HOME={self._folder}", f"KUBECACHEDIR={self._folder / 'kubectl-cache'}"]
        return [
            "/usr/bin/env",
            *environment,
            str(self._program),
            *(f"-{name}={value}" for name, value in flags.items()),
        ]

    def _read(self, batch: _Batch) -> None:
        with batch.events.open("rb") as file:
            file.seek(batch.read)
            lines, _, _ = file.read().rpartition(b"\n")
        if not lines:
            return
        batch.read += len(lines) + 1
        for line in lines.splitlines():
            event = json.loads(line)
            if event["event"] == "begin":
                batch.current, batch.since = event["spec"], asyncio.get_running_loop().time()
            elif event["spec"] in batch.left:
                late = event["state"] == "interrupted" and self._is_late(batch)
                result = Result(
                    "timeout" if late else event["state"], event.get("seconds", 0.0), event.get("message", "")
                )
                self._record(batch, event["spec"], result)

    def _record(self, batch: _Batch, spec: str, result: Result) -> None:
        batch.left.remove(spec)
        batch.current = ""
        self.results[spec] = result
        self._on_result(spec, result)

    def _elapsed(self, batch: _Batch) -> float:
        return asyncio.get_running_loop().time() - batch.since

    def _is_late(self, batch: _Batch) -> bool:
        return self._elapsed(batch) > (self._timeout if batch.current else START_SECONDS)

    @staticmethod
    async def _interrupt(processes: Processes, name: str, end: asyncio.Task[int]) -> None:
        """Let a process clean up after its spec; kill it if that takes too long."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            await processes.signal(name, number)
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(end), CLEAN_UP_SECONDS)
                return
