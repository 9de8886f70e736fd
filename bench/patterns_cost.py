"""The cost of many owners with children in the operator's process, for each form.

The API is the embedded server as a separate process, with objects in memory and without controllers, fresh for every
form in every round. Only the CPU of the operator's process counts, by its own clock.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.patterns_forms import Site, SiteSpec
from bench.patterns_operator import Spent
from bench.report import BenchmarkFailed
from steersman import Client, ObjectMeta

ROOT = Path(__file__).parents[1]
#: Longer than any stage takes.
PATIENCE = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of a run."""

    owners: int
    children: int
    #: How often all converged owners are reconciled again.
    passes: int
    #: How often the operator is restarted on converged objects; the cheapest start counts.
    restarts: int = 5

    @property
    def all_children(self) -> int:
        """The children of all owners."""
        return self.owners * self.children


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One form in one round; the CPU is in seconds."""

    create: Spent
    #: All passes together.
    again: Spent
    restart: Spent


async def measure(form: str, sizes: Sizes) -> Cost:
    """Create, reconcile again, and restart."""
    with tempfile.TemporaryDirectory(prefix="steersman-bench-") as scratch:
        kubeconfig = Path(scratch) / "kubeconfig"
        serve = ("-m", "steersman", "serve", "--controllers", "none", "--kubeconfig", str(kubeconfig))
        said = Path(scratch) / "serve.log"
        async with _process(*serve, complaints=said) as server:
            assert server.stdout is not None
            if not await server.stdout.readline():
                raise BenchmarkFailed(f"steersman serve exited before it served; its output: {said.read_text('utf-8')}")
            await _fill(kubeconfig, sizes)
            operator = ("-m", "bench.patterns_operator", form, str(kubeconfig), str(sizes.owners))
            async with _process(*operator) as process:
                create = await _answer(process, form)
                assert process.stdin is not None
                process.stdin.write(f"{sizes.passes}\n".encode())
                again = await _answer(process, form)
            restarts: list[Spent] = []
            for _ in range(sizes.restarts):
                async with _process(*operator) as process:
                    restarts.append(await _answer(process, form))
    return Cost(create=create, again=again, restart=_cheapest(restarts))


def _cheapest(restarts: list[Spent]) -> Spent:
    """The CPU of the cheapest start, and the requests of all of them.

    A start is one second of CPU. Other load, a cold disk cache or modules without byte code add to it and never
    subtract, so the cheapest of several is the steadiest figure.
    """
    requests = sum((Counter(each.requests) for each in restarts), Counter[str]())
    return msgspec.structs.replace(min(restarts, key=lambda each: each.cpu), requests=dict(requests))


async def _fill(kubeconfig: Path, sizes: Sizes) -> None:
    async with Client.connect(kubeconfig=kubeconfig, field_manager="people", namespace="default") as client:
        await client.install(Site)
        numbers = iter(range(sizes.owners))

        async def worker() -> None:
            for number in numbers:
                spec = SiteSpec(title=f"site {number}", children=sizes.children)
                await client.create(Site(metadata=ObjectMeta(name=f"site-{number:05d}"), spec=spec))

        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(worker())


async def _answer(process: Process, form: str) -> Spent:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        line = await process.stdout.readline()
    if not line:
        raise BenchmarkFailed(f"the operator ({form}) exited by itself; see its output above")
    spent = msgspec.json.decode(line, type=Spent)
    if spent.failures:
        raise BenchmarkFailed(f"{spent.failures} of {spent.runs} reconciles of the operator ({form}) failed")
    return spent


@asynccontextmanager
async def _process(*arguments: str, complaints: Path | None = None) -> AsyncGenerator[Process]:
    with complaints.open("wb") if complaints else nullcontext() as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, stdin=PIPE, stdout=PIPE, stderr=log, cwd=ROOT, env=dict(os.environ)
        )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(30):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
