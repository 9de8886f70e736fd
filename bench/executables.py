"""200 Executables of one control plane: idle CPU, memory of each, and what 1,000 restarts leave behind.

Each program serves HTTP, is probed every second and prints ten lines a second. The CPU of the control plane is that of
this process, which has the server, the controllers and the probes, and of the zygote, the proxy and the other processes
that it keeps for a session. The shims are not in it: copying output is work of the programs, and a figure of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.apiserver_subjects import cpu_clock
from bench.contenders.preparing import go_program
from bench.report import Bar, BenchmarkFailed, Figure, Report
from bench.report_page import add_doc_argument, fill_page
from steersman import ObjectMeta
from steersman.workloads import DeveloperControlPlane
from steersman.workloads.kinds import (
    Executable,
    ExecutableReplicaSet,
    ExecutableReplicaSetSpec,
    ExecutableSpec,
    ExecutableTemplate,
    HealthProbe,
    HttpProbe,
    ProbeSchedule,
    ReplicaSetAdditions,
    RestartPolicy,
)

HERE = Path(__file__).parent
TICKS = os.sysconf("SC_CLK_TCK")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_doc_argument(parser)
    parser.add_argument("--executables", type=int, default=200, help="how many programs")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to measure while nothing changes")
    parser.add_argument("--restarts", type=int, default=1000, help="how many restarts")


async def run(options: argparse.Namespace) -> Report:
    """Run the benchmark."""
    program = str(go_program(HERE / "probed_program"))
    with TemporaryDirectory() as folder:
        async with DeveloperControlPlane(folder=Path(folder) / "session", ambient={}) as plane:
            await _warm_up(plane)
            idle, figures = await _many(plane, program, options.executables, options.seconds)
            leaks = await _restarts(plane, options.restarts)
    report = Report(name="executables", bars=(*idle, *leaks), figures=tuple(figures))
    fill_page(options.doc, report)
    return report


async def _warm_up(plane: DeveloperControlPlane) -> None:
    """Run one program, so that modules and connections are there before memory is measured."""
    await plane.client.create(_executable("warm-up", "/bin/true", ()))
    await _until(lambda: _all_in_state(plane, "Finished"), "the first program has ended")
    await plane.client.delete(Executable, "warm-up")


async def _many(
    plane: DeveloperControlPlane, program: str, count: int, seconds: float
) -> tuple[list[Bar], list[Figure]]:
    gc.collect()
    before = _private_dirty(os.getpid())
    started = time.perf_counter()
    for number, port in enumerate(_free_ports(count)):
        await plane.client.create(_executable(f"program-{number}", program, (str(port),), port))
    await _until(lambda: _all_healthy(plane, count), f"{count} programs are healthy", within=120)
    until_healthy = time.perf_counter() - started
    # The first report of every probe has been written when this has passed.
    await asyncio.sleep(5)
    pids = [each.status.pid for each in await plane.client.list(Executable) if each.status and each.status.pid]
    if len(pids) != count:
        raise BenchmarkFailed(f"{len(pids)} of {count} programs run")
    shims = [_parent(pid) for pid in pids]
    others = _other_processes(shims[0])
    cpu, shim_cpu, wall = _cpus(others), sum(map(_cpu, shims)), time.perf_counter()
    await asyncio.sleep(seconds)
    wall = time.perf_counter() - wall
    cpu, shim_cpu = _cpus(others) - cpu, sum(map(_cpu, shims)) - shim_cpu
    gc.collect()
    growth, shim_memory = _private_dirty(os.getpid()) - before, sum(map(_private_dirty, shims))
    for each in await plane.client.list(Executable):
        await plane.client.delete(each)
    await _until(lambda: _none_left(plane), "all programs are gone", within=120)
    bars = [
        Bar(name="control plane while idle, of a core", value=100 * cpu / wall, bar=3.0, unit="%"),
        Bar(name="memory per Executable", value=(growth + shim_memory) / count / 1e6, bar=1.0, unit="MB"),
    ]
    return bars, [
        Figure(name="Executables", value=count, unit=""),
        Figure(name="from the first create until all are healthy", value=until_healthy, unit="s"),
        Figure(name="private memory of a shim", value=shim_memory / count / 1e6, unit="MB"),
        Figure(name="growth of the control plane per Executable", value=growth / count / 1e6, unit="MB"),
        Figure(name="all shims while their programs print, of a core", value=100 * shim_cpu / wall, unit="%"),
    ]


async def _restarts(plane: DeveloperControlPlane, count: int) -> list[Bar]:
    """Restart a short program; what grows between a tenth of the restarts and all of them is a leak."""
    spec = ExecutableReplicaSetSpec(
        template=ExecutableTemplate(spec=ExecutableSpec(executable_path="/bin/true")),
        steersman=ReplicaSetAdditions(restart=RestartPolicy(policy="Always", delay="1ms", maximum_delay="1ms")),
    )
    await plane.client.create(ExecutableReplicaSet(metadata=ObjectMeta(name="restarts"), spec=spec))
    samples: list[tuple[int, int, int]] = []
    for goal in (count // 10, count):
        await _until(lambda goal=goal: _restarted(plane, goal), f"{goal} restarts", within=600)
        gc.collect()
        samples.append((_descriptors(), len(asyncio.all_tasks()), _private_dirty(os.getpid())))
    await plane.client.delete(ExecutableReplicaSet, "restarts")
    await _until(lambda: _none_left(plane), "the last program is gone")
    (descriptors, tasks, memory), (descriptors_after, tasks_after, memory_after) = samples
    return [
        # A run in flight has a few of its own.
        Bar(name=f"descriptors more after {count} restarts", value=descriptors_after - descriptors, bar=5, unit=""),
        Bar(name=f"tasks more after {count} restarts", value=tasks_after - tasks, bar=5, unit=""),
        Bar(name=f"memory more after {count} restarts", value=(memory_after - memory) / 1e6, bar=4.0, unit="MB"),
    ]


def _executable(name: str, program: str, args: tuple[str, ...], port: int = 0) -> Executable:
    probe = HealthProbe(
        name="http",
        type="HTTP",
        http_probe=HttpProbe(url=f"http://127.0.0.1:{port}/"),
        schedule=ProbeSchedule(interval="1s"),
    )
    spec = ExecutableSpec(executable_path=program, args=list(args), health_probes=[probe] if port else None)
    return Executable(metadata=ObjectMeta(name=name), spec=spec)


async def _all_in_state(plane: DeveloperControlPlane, state: str) -> bool:
    return all(each.status and each.status.state == state for each in await plane.client.list(Executable))


async def _all_healthy(plane: DeveloperControlPlane, count: int) -> bool:
    found = await plane.client.list(Executable)
    return sum(each.status is not None and each.status.health_status == "Healthy" for each in found) == count


async def _none_left(plane: DeveloperControlPlane) -> bool:
    return not list(await plane.client.list(Executable))


async def _restarted(plane: DeveloperControlPlane, count: int) -> bool:
    found = await plane.client.get(ExecutableReplicaSet, "restarts")
    return bool(found.status and found.status.steersman and found.status.steersman.restarts >= count)


async def _until(condition: Callable[[], Awaitable[bool]], what: str, *, within: float = 60.0) -> None:
    try:
        async with asyncio.timeout(within):
            while not await condition():  # noqa: ASYNC110 - the API is polled
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise BenchmarkFailed(f"not within {within:g} s: {what}") from None


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _private_dirty(pid: int) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Private_Dirty"))


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _other_processes(shim: int) -> list[int]:
    """The processes of the control plane beside this one: the zygote, the parent of shims, and its siblings."""
    zygote = _parent(shim)
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return sorted({zygote, *map(int, children)})


def _cpus(others: list[int]) -> float:
    """Seconds of CPU of the control plane: this process, and its others without the shims."""
    return time.process_time() + sum(time.clock_gettime(cpu_clock(pid)) for pid in others)


def _cpu(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
