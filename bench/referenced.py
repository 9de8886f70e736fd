"""A manager that caches only Secrets to which others refer: memory and start, with many other Secrets in the cluster.

Three managers reconcile the same ConfigMaps. One reads no Secret. One refers to a Secret for each. One caches all Secrets,
on a server that has no others than these. Servers and managers are processes of their own, and talk over TLS.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from bench.apiserver_subjects import process
from bench.referenced_manager import Stage
from bench.referenced_server import namespace_of
from bench.report import Bar, BenchmarkFailed, Column, Figure, Report
from steersman import Client, Key
from steersman.client import MergePatch
from steersman.kinds.core_v1 import Secret

#: Longer than any stage takes.
PATIENCE = 300.0
NONE, REFERENCED, WHOLE = "no Secrets", "referenced", "cache of these alone"
FORMS = {NONE: "none", REFERENCED: "referenced", WHOLE: "whole"}
MEMORY = "memory of referenced Secrets, above a manager without Secrets"
FIRST = "time to the first reconcile, referenced / cache of these alone"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--secrets", type=int, default=100_000, help="Secrets in the cluster")
    parser.add_argument("--owners", type=int, default=500, help="ConfigMaps that refer to one Secret each")
    parser.add_argument("--namespaces", type=int, default=100, help="namespaces that they are in")
    parser.add_argument("--rounds", type=int, default=5, help="starts of each manager")


@asynccontextmanager
async def serving(folder: Path, secrets: int, options: argparse.Namespace) -> AsyncGenerator[Path]:
    """A server with Secrets and their owners."""
    kubeconfig = folder / f"kubeconfig-{secrets}"
    numbers = (str(secrets), str(options.owners), str(options.namespaces))
    async with process("-m", "bench.referenced_server", str(kubeconfig), *numbers) as server:
        if await _line(server) != b"ready\n":
            raise BenchmarkFailed("the server exited before it served; see its output above")
        yield kubeconfig


async def _line(running: Process) -> bytes:
    assert running.stdout is not None
    async with asyncio.timeout(PATIENCE):
        return await running.stdout.readline()


async def start(kubeconfig: Path, form: str, options: argparse.Namespace, *, change: str = "") -> Stage:
    """Run a manager once; with ``change``, also wait until it has reconciled changed Secrets."""
    command = ("-m", "bench.referenced_manager", str(kubeconfig), str(options.owners), FORMS[form])
    async with process(*command) as manager:
        line = await _line(manager)
        if not line:
            raise BenchmarkFailed("the manager exited by itself; see its output above")
        if change:
            assert manager.stdin is not None
            manager.stdin.write(b"\n")
            async with Client.connect(kubeconfig=kubeconfig) as client:
                for number in range(0, options.owners, 10):
                    key = Key(namespace_of(number, options.namespaces), f"object-{number}")
                    await client.patch(Secret, key, MergePatch({"stringData": {"round": change}}))
            if await _line(manager) != b"changed\n":
                raise BenchmarkFailed("the manager did not reconcile all owners of changed Secrets")
        return msgspec.json.decode(line, type=Stage)


async def run(options: argparse.Namespace) -> Report:
    stages: dict[str, list[Stage]] = {form: [] for form in FORMS}
    with tempfile.TemporaryDirectory(prefix="steersman-bench-") as scratch:
        folder = Path(scratch)
        async with serving(folder, options.secrets, options) as many, serving(folder, options.owners, options) as few:
            for _ in range(options.rounds):
                stages[NONE].append(await start(many, NONE, options))
                stages[REFERENCED].append(await start(many, REFERENCED, options))
                stages[WHOLE].append(await start(few, WHOLE, options))
            await start(many, REFERENCED, options, change="2")
    return _report(stages, options)


def _report(stages: dict[str, list[Stage]], options: argparse.Namespace) -> Report:
    def column(name: str, unit: str, field: str, scale: float) -> Column:
        rounds = {form: tuple(getattr(stage, field) * scale for stage in each) for form, each in stages.items()}
        return Column(name=name, unit=unit, rounds=rounds)

    def median(form: str, field: str) -> float:
        return statistics.median(getattr(stage, field) for stage in stages[form])

    requests = stages[REFERENCED][-1].requests
    return Report(
        name="referenced",
        bars=(
            Bar(name=MEMORY, value=(median(REFERENCED, "memory") - median(NONE, "memory")) / 1e6, bar=5.0, unit="MB"),
            Bar(name=FIRST, value=median(REFERENCED, "first") / median(WHOLE, "first"), bar=1.0),
        ),
        columns=(
            column("memory", "MB", "memory", 1e-6),
            column("time to the first reconcile", "ms", "first", 1e3),
            column("CPU to the first reconcile", "ms", "first_cpu", 1e3),
            column("time until all are reconciled", "ms", "all", 1e3),
            column("CPU until all are reconciled", "ms", "all_cpu", 1e3),
        ),
        figures=tuple(
            Figure(name=f"requests of a start, referenced: {name}", value=count, unit="")
            for name, count in sorted(requests.items())
        ),
        notes=(
            f"{options.secrets:,} Secrets of 2 KB in {options.namespaces} namespaces; {options.owners} are referred to.",
            "Memory is private dirty memory at rest, after a collection; times are medians over all rounds.",
        ),
    )
