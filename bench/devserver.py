"""The API server of the developer control plane beside tilt-apiserver: start, memory of objects, CPU per request.

tilt-apiserver is the Go library that Microsoft's Developer Control Plane uses. Both serve Executables from memory, over
TLS with a token, each in a process of its own. Ours has its garbage collector, and checks schemas and CEL rules; the Go
program has plain structs. They take turns; ratios are computed within a round, and the median of the rounds counts.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.apiserver_subjects import cpu_clock
from bench.contenders.preparing import go_program, say
from bench.devserver_load import PATH, Load, connected, unverified
from bench.memory import private
from bench.report import Bar, BenchmarkFailed, Column, Figure, Report
from bench.report_page import add_doc_argument, fill_page

OURS, TILT = "steersman", "tilt-apiserver"
ROOT = Path(__file__).parents[1]
TOKEN = "a-token-of-the-benchmark"
#: The limit of every bar, relative to tilt-apiserver.
LIMIT = 1.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_doc_argument(parser)
    parser.add_argument("--rounds", type=int, default=7, help="rounds; both servers take part in each")
    parser.add_argument("--requests", type=int, default=500, help="requests of each kind in a round")
    parser.add_argument("--watches", type=int, default=20, help="watches that get every event")
    parser.add_argument("--objects", type=int, default=10_000, help="objects for the memory of one")
    parser.add_argument("--starts", type=int, default=9, help="starts of each server")


@dataclass
class Measured:
    """One measure of both servers, with a value for each round."""

    name: str
    unit: str
    has_bar: bool = True
    rounds: dict[str, list[float]] = field(default_factory=lambda: {OURS: [], TILT: []})

    def bar(self) -> Bar:
        """The median of the ratios of the rounds."""
        pairs = zip(self.rounds[OURS], self.rounds[TILT], strict=True)
        ratio = statistics.median(ours / max(theirs, 1e-9) for ours, theirs in pairs)
        return Bar(name=f"{self.name} / {TILT}", value=ratio, bar=LIMIT)

    def column(self) -> Column:
        """All values, side by side."""
        return Column(name=self.name, unit=self.unit, rounds={name: tuple(each) for name, each in self.rounds.items()})


async def run(options: argparse.Namespace) -> Report:
    """Run the benchmark."""
    program = str(go_program(ROOT / "bench" / "tilt_apiserver", "server"))
    say("starts")
    starts, imports = await _starts(program, options.starts)
    say("memory")
    memory = await _memory(program, options.objects)
    say("requests")
    requests = await _requests(program, options)
    measures = [*starts, memory, *requests]
    report = Report(
        name="devserver",
        bars=tuple(each.bar() for each in measures if each.has_bar),
        columns=tuple(each.column() for each in measures),
        figures=(Figure(name="imports of our server", value=imports * 1000, unit="ms"),),
        notes=("The time of a start is without the imports of our server, which are a figure.",),
    )
    fill_page(options.doc, report)
    return report


# processes


class Server:
    """A server and what its process costs."""

    def __init__(self, name: str, process: Process, port: int, imports: float) -> None:
        self.name, self.process, self.port, self.imports = name, process, port, imports

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        return time.clock_gettime(cpu_clock(self.process.pid))

    async def memory(self) -> int:
        """Private bytes, after its garbage was freed."""
        for _ in range(2):
            self.process.send_signal(signal.SIGUSR1)
            await asyncio.sleep(1)
        return private(self.process.pid)


@asynccontextmanager
async def _server(name: str, program: str) -> AsyncGenerator[Server]:
    """Start a server; it may not listen yet."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = (
            (program, str(port), TOKEN)
            if name == TILT
            else (sys.executable, "-m", "bench.devserver_ours", str(port), TOKEN, f"{folder}/kubeconfig")
        )
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=None, cwd=ROOT)
        assert process.stdout is not None
        try:
            imports = float(await process.stdout.readline()) if name == OURS else 0.0
            yield Server(name, process, port, imports)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _first_answer(server: Server) -> tuple[float, float]:
    """When a server listened, and when it had answered its first request."""
    while True:
        if server.process.returncode is not None:
            raise BenchmarkFailed(f"{server.name} has ended; see its output above")
        with socket.socket() as peer:
            if peer.connect_ex(("127.0.0.1", server.port)) == 0:
                break
        await asyncio.sleep(0.001)
    listening = time.perf_counter()
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=unverified())
        lines = (f"GET {PATH} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}", "Connection: close")
        writer.write("\r\n".join((*lines, "", "")).encode())
        line = await reader.readline()
        writer.transport.abort()
        if b" 200 " in line:
            return listening, time.perf_counter()


def free_port() -> int:
    """A port that no program listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


# measurements


async def _starts(program: str, count: int) -> tuple[list[Measured], float]:
    answer = Measured("from listening to the first answer", "ms")
    whole = Measured("from the start, without imports, to the first answer", "ms", has_bar=False)
    imports: list[float] = []
    for number in range(count + 1):
        for name in (OURS, TILT):
            began = time.perf_counter()
            async with _server(name, program) as server:
                if name == OURS:
                    began = time.perf_counter()
                listening, answered = await _first_answer(server)
            # The first start of all reads programs from the disk.
            if number:
                answer.rounds[name].append((answered - listening) * 1000)
                whole.rounds[name].append((answered - began) * 1000)
                imports += [server.imports] if name == OURS else []
    return [answer, whole], statistics.median(imports)


async def _memory(program: str, count: int) -> Measured:
    measured = Measured(f"memory per object, {count:,} objects", "KB")
    for name in (OURS, TILT):
        async with _server(name, program) as server:
            await _first_answer(server)
            async with connected(server.port, TOKEN) as load:
                await load.create(range(200))
                before = await server.memory()
                await load.create(range(200, 200 + count))
                measured.rounds[name].append((await server.memory() - before) / count / 1000)
    return measured


async def _requests(program: str, options: argparse.Namespace) -> list[Measured]:
    create, update, patch, event = (
        Measured("CPU of a create", "us"),
        Measured("CPU of a status update", "us"),
        Measured("CPU of a status patch", "us", has_bar=False),
        Measured("CPU of a watch event", "us"),
    )
    async with _server(OURS, program) as ours, _server(TILT, program) as tilt:
        for server in (ours, tilt):
            await _first_answer(server)
        async with connected(ours.port, TOKEN) as our_load, connected(tilt.port, TOKEN) as tilt_load:
            pairs: list[tuple[Server, Load]] = [(ours, our_load), (tilt, tilt_load)]
            for number in range(options.rounds + 1):
                numbers = range(number * options.requests, (number + 1) * options.requests)
                for server, load in pairs if number % 2 else pairs[::-1]:
                    await _round(server, load, numbers, options.watches, (create, update, patch, event))
    # The first round warms up.
    for each in (create, update, patch, event):
        for values in each.rounds.values():
            del values[0]
    return [create, update, patch, event]


async def _round(
    server: Server, load: Load, numbers: range, watches: int, measures: tuple[Measured, Measured, Measured, Measured]
) -> None:
    create, update, patch, event = measures
    count = len(numbers)

    async def spent(work: Callable[[range], Awaitable[None]]) -> float:
        before = server.cpu()
        await work(numbers)
        return (server.cpu() - before) * 1e6

    create.rounds[server.name].append(await spent(load.create) / count)
    plain = await spent(load.update_status)
    update.rounds[server.name].append(plain / count)
    patch.rounds[server.name].append(await spent(load.patch_status) / count)
    await load.open_watches(watches)
    watched = await spent(load.updates_until_seen)
    await load.close_watches()
    event.rounds[server.name].append(max(watched - plain, 0.0) / count / watches)
