"""The two servers of the API server's benchmark, each a process with its own load."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.apiserver_load import Command, Done
from bench.report import BenchmarkFailed
from steersman.testing import Engine

EMBEDDED, ENGINE, ETCD = "embedded", "kube-apiserver", "etcd"
ROOT = Path(__file__).parents[1]
#: Longer than any command takes.
PATIENCE = 600.0


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of a command for its server, and its result."""

    #: Seconds of CPU by program, beyond what the program uses at rest.
    cpu: dict[str, float]
    done: Done


class Subject:
    """A server and its load."""

    def __init__(self, name: str, load: Process, pids: dict[str, int]) -> None:
        self.name = name
        self._load = load
        self._pids = pids
        self._idle = dict.fromkeys(pids, 0.0)

    async def rest(self, seconds: float) -> dict[str, float]:
        """Measure what its programs use at rest, as shares of a core."""
        before, began = self._clocks(), time.perf_counter()
        await asyncio.sleep(seconds)
        passed = time.perf_counter() - began
        self._idle = {name: (now - before[name]) / passed for name, now in self._clocks().items()}
        return self._idle

    async def do(self, command: Command) -> Spent:
        """Let the load run a command."""
        assert self._load.stdin is not None
        assert self._load.stdout is not None
        before, began = self._clocks(), time.perf_counter()
        self._load.stdin.write(msgspec.json.encode(command) + b"\n")
        async with asyncio.timeout(PATIENCE):
            line = await self._load.stdout.readline()
        passed = time.perf_counter() - began
        if not line:
            raise BenchmarkFailed(f"the load of {self.name} exited during {command}; see its output above")
        after = self._clocks()
        cpu = {name: max(0.0, after[name] - before[name] - self._idle[name] * passed) for name in after}
        return Spent(cpu, msgspec.json.decode(line, type=Done))

    def _clocks(self) -> dict[str, float]:
        return {name: time.clock_gettime(cpu_clock(pid)) for name, pid in self._pids.items()}


def cpu_clock(pid: int) -> int:
    """The kernel's CPU clock of a process with all its threads: finer than the ticks in /proc/PID/stat."""
    return (~pid << 3) | 2


@asynccontextmanager
async def embedded(scratch: Path) -> AsyncGenerator[Subject]:
    """The embedded server as a user runs it: objects in memory, TLS, client certificates, RBAC."""
    kubeconfig = scratch / "embedded-kubeconfig"
    async with process("-m", "steersman", "serve", "--kubeconfig", str(kubeconfig)) as server:
        assert server.stdout is not None
        if not await server.stdout.readline():
            raise BenchmarkFailed("steersman serve exited before it served; see its output above")
        async with process("-m", "bench.apiserver_load", str(kubeconfig)) as load:
            yield Subject(EMBEDDED, load, {EMBEDDED: server.pid})


@asynccontextmanager
async def engine() -> AsyncGenerator[Subject]:
    """kube-apiserver and etcd as the tests start them."""
    async with Engine.start() as running:
        api_server, etcd = running.api_servers[0].pid, running.etcd[0].pid
        assert api_server is not None
        assert etcd is not None
        async with process("-m", "bench.apiserver_load", str(running.kubeconfig)) as load:
            yield Subject(ENGINE, load, {ENGINE: api_server, ETCD: etcd})


@asynccontextmanager
async def both() -> AsyncGenerator[tuple[Subject, Subject]]:
    """Both servers, running."""
    with tempfile.TemporaryDirectory(prefix="steersman-bench-") as scratch:
        async with embedded(Path(scratch)) as ours, engine() as theirs:
            yield ours, theirs


@asynccontextmanager
async def process(*arguments: str) -> AsyncGenerator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdin=PIPE, stdout=PIPE, stderr=None, cwd=ROOT, env=os.environ, limit=2**24
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(30):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
