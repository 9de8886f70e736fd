"""A suite of 100 operator tests on the embedded control plane and on the engine, its start, and what a test imports.

pytest runs the suite (bench/testing_suite) with one server for the session and a namespace per test. Each test starts
an operator, creates an object and waits until it converges, deletes it, and waits until the garbage collector has removed
its children. The engine runs kube-apiserver, etcd and kube-controller-manager with the controllers of the embedded
control plane. The compared time is from the beginning of the second test to the end of the last: the first one includes
starting the server and installing the definition. `testing_imports` says which modules count as imported.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.report import Bar, BenchmarkFailed, Column, Figure, Report
from bench.testing_imports import measured_imports
from steersman.kinds.core_v1 import Namespace
from steersman.testing.embedded_host import EmbeddedHost
from steersman.testing.plane import Plane

SUITE = Path(__file__).parent / "testing_suite"
SERVERS = {
    "embedded": ("--steersman-server=embedded", "--steersman-scope=session"),
    "engine": ("--steersman-server=engine",),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tests", type=int, default=100, help="tests of the suite")
    parser.add_argument("--rounds", type=int, default=1, help="alternating rounds of the suite on both servers")
    parser.add_argument("--imports", type=int, default=10, help="interpreters that import what the first test imports")
    parser.add_argument("--starts", type=int, default=20, help="control planes to start, one after the other")


@dataclass(frozen=True)
class Run:
    """One run of the suite, in seconds."""

    #: All tests except the first, which also waits for the server.
    tests: float
    each: float
    first: float
    whole: float


def run_suite(server: str, folder: Path, *, tests: int, file: str = "test_sites.py") -> Run:
    """Run this many tests of a file of the suite, and read the times they recorded."""
    phases = folder / f"{server}.jsonl"
    phases.unlink(missing_ok=True)
    settings = ("asyncio_mode=auto", "asyncio_default_fixture_loop_scope=function")
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={SUITE}", str(SUITE / file)]
        + [part for setting in settings for part in ("-o", setting)]
        + list(SERVERS[server]),
        env=os.environ | {"BENCH_PHASES": str(phases), "BENCH_TESTS": str(tests)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    whole = time.perf_counter() - began
    if done.returncode:
        raise BenchmarkFailed(f"the suite failed on the {server} server:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
    parts_of: dict[str, list[tuple[float, float]]] = {}
    for line in phases.read_text(encoding="utf-8").splitlines():
        name, _, start, stop = json.loads(line)
        parts_of.setdefault(name, []).append((start, stop))
    first, *others = parts_of.values()
    # The last test's teardown also ends the server.
    begins, ends = others[0][0][0], others[-1][1][1]
    lengths = [sum(stop - start for start, stop in parts) for parts in others[:-1]]
    return Run(
        tests=ends - begins,
        each=statistics.median(lengths),
        first=first[-1][1] - first[0][0],
        whole=whole,
    )


async def seconds_until_ready() -> float:
    """How long a test's control plane takes until its first response, with all its controllers working."""
    began = time.perf_counter()
    host = EmbeddedHost({}, in_thread=False)
    plane = Plane(host, namespace="bench")
    await plane.client.get(Namespace, "bench")
    await plane.settled()
    taken = time.perf_counter() - began
    # A fixture ends both outside of the loop; here one must be gone before the next begins.
    await plane._transport.close()  # noqa: SLF001
    assert host._context is not None  # noqa: SLF001
    await host._context.stop()  # noqa: SLF001
    return taken


async def run(options: argparse.Namespace) -> Report:
    imports = measured_imports(options.imports)
    ready = [await seconds_until_ready() for _ in range(options.starts)]
    runs: dict[str, list[Run]] = {server: [] for server in SERVERS}
    with tempfile.TemporaryDirectory(prefix="bench-testing-") as folder:
        for _ in range(options.rounds):
            for server, into in runs.items():
                into.append(run_suite(server, Path(folder), tests=options.tests))
    spent = {server: statistics.median(run.tests for run in each) for server, each in runs.items()}

    def column(name: str, unit: str, part: str, scale: float = 1.0) -> Column:
        rounds = {server: tuple(getattr(run, part) * scale for run in each) for server, each in runs.items()}
        return Column(name=name, unit=unit, rounds=rounds)

    return Report(
        name="testing",
        bars=(
            Bar(name="suite: engine / embedded", value=spent["engine"] / spent["embedded"], bar=6.0, at_least=True),
            Bar(name="control plane ready, median", value=statistics.median(ready) * 1e3, bar=100.0, unit="ms"),
            Bar(name="imports of the first test, CPU", value=imports.seconds * 1e3, bar=330.0, unit="ms"),
            Bar(name="modules that it imports", value=imports.modules, bar=720, unit=""),
        ),
        figures=(
            Figure(name="modules that it imports, Steersman's own", value=imports.own, unit=""),
            Figure(name="control plane ready, slowest", value=max(ready) * 1e3, unit="ms"),
            Figure(name="load average at the end", value=os.getloadavg()[0], unit=""),
        ),
        columns=(
            column(f"{options.tests - 1} tests", "s", "tests"),
            column("one test, median", "ms", "each", 1e3),
            column("first test, with the server's start", "s", "first"),
            column("whole run of pytest", "s", "whole"),
        ),
        notes=("pytest runs the tests one after the other; each starts the operator in its own namespace",),
    )
