"""Measures proxies: see `bench.workloads`."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.contenders.preparing import CannotPrepare, go_program
from bench.report import BenchmarkFailed
from steersman.workloads.ports import LocalPorts
from steersman.workloads.processes import Launch, ProcessEvent, ZygoteRunner
from steersman.workloads.proxies import Forwarding, RelayProxy

#: Processes that start and end in each second.
_CHURN = 20
_RATE = 200
_RESTARTS = 5


@dataclass(kw_only=True)
class Measured:
    """Throughput in MB/s and latencies in nanoseconds, by the number of connections and the contender, for each round."""

    throughput: dict[tuple[int, str], list[float]] = field(default_factory=dict)
    latency: dict[tuple[int, str], list[list[int]]] = field(default_factory=dict)
    parallel: int = 0
    processes: float = 0.0
    restarts: int = _RESTARTS
    messages: int = 0
    lost: int = 0
    failed: int = 0


async def measure(*, rounds: int, seconds: int) -> Measured:
    try:
        program = str(go_program(Path(__file__).parent / "proxy_go", "proxy"))
    except CannotPrepare as error:
        raise BenchmarkFailed(str(error)) from error
    measured = Measured()
    with tempfile.TemporaryDirectory() as folder:
        ports = LocalPorts("bench", Path(folder) / "ports.json")
        ours = await ports.allocate("service")
        async with (
            _serving(program, "endpoint") as endpoint,
            _serving(program, "proxy", endpoint) as go,
            RelayProxy() as proxy,
            _churn(Path(folder), measured),
        ):
            await proxy.keep("web", Forwarding(("127.0.0.1",), ours, (_place(endpoint),)))
            targets = [("direct", endpoint), ("go", go), ("steersman", f"127.0.0.1:{ours}")]
            for number in range(rounds):
                turn = number % len(targets)
                for name, address in (*targets[turn:], *targets[:turn]):
                    await _round(program, name, address, seconds, measured)
            measured.parallel = int(await _output(program, "parallel", f"127.0.0.1:{ours}", "1000"))
            await _restarts(program, proxy, ports, measured)
    return measured


async def _round(program: str, name: str, address: str, seconds: int, measured: Measured) -> None:
    for connections in (1, 16):
        speed = float(await _output(program, "throughput", address, str(connections), str(seconds)))
        measured.throughput.setdefault((connections, name), []).append(speed / 1e6)
        text = await _output(program, "latency", address, str(connections), str(_RATE), str(seconds))
        measured.latency.setdefault((connections, name), []).append([int(each) for each in text.split()])


async def _restarts(program: str, proxy: RelayProxy, ports: LocalPorts, measured: Measured) -> None:
    """Kill the endpoint again and again while 16 clients use it."""
    service, behind = await ports.allocate("restarted"), await ports.allocate("endpoint")
    address = f"127.0.0.1:{behind}"
    await proxy.keep("restarted", Forwarding(("127.0.0.1",), service, (("127.0.0.1", behind),)))
    async with asyncio.TaskGroup() as tasks:
        load = tasks.create_task(_output(program, "restarts", f"127.0.0.1:{service}", "16", str(_RESTARTS + 2)))
        for _ in range(_RESTARTS):
            async with _serving(program, "endpoint", address):
                await asyncio.sleep(0.8)
            await asyncio.sleep(0.2)
        async with _serving(program, "endpoint", address):
            measured.messages, measured.lost, measured.failed = map(int, (await load).split())


@asynccontextmanager
async def _serving(program: str, *arguments: str) -> AsyncIterator[str]:
    """A server of the Go program; gives its address, and kills it in the end."""
    process = await asyncio.create_subprocess_exec(
        program, *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        address = (await process.stdout.readline()).decode().strip()
        if not address:
            raise BenchmarkFailed(f"{program} {' '.join(arguments)} did not start")
        yield address
    finally:
        process.kill()
        await process.wait()


async def _output(program: str, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        program, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, problem = await process.communicate()
    if process.returncode:
        raise BenchmarkFailed(f"{' '.join(arguments)}: {problem.decode().strip()}")
    return out.decode()


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


@asynccontextmanager
async def _churn(folder: Path, measured: Measured) -> AsyncIterator[None]:
    """Start short processes at a steady rate, as Executables that restart."""
    started = 0
    loop = asyncio.get_running_loop()
    began = loop.time()

    def ignore(_: ProcessEvent) -> None:
        pass

    async def start_many(runner: ZygoteRunner) -> None:
        nonlocal started
        launch = Launch(
            program="true",
            env={"PATH": os.environ["PATH"]},
            folder=str(folder),
            stdout=str(folder / "out"),
            stderr=str(folder / "err"),
        )
        while True:
            await runner.start(launch, ignore)
            started += 1
            await asyncio.sleep(max(began + started / _CHURN - loop.time(), 0))

    async with ZygoteRunner() as runner, asyncio.TaskGroup() as tasks:
        churn = tasks.create_task(start_many(runner))
        try:
            yield
        finally:
            measured.processes = started / (loop.time() - began)
            churn.cancel()
