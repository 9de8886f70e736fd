"""The cost of many owners with children in the operator's process, for each form.

The API is the embedded server as a separate process, with objects in memory and without controllers, one for each form
and fresh in every round. Only the CPU of the operator's process counts, by its own clock.

What makes the figures steady:
- The forms take turns within a round: one batch of new owners, one pass or one start of each, then the next. Load that
  comes and goes meets all forms.
- The median batch, the cheapest pass and the cheapest start of a round count. Other load adds to the CPU of a process,
  because it shares caches and cores, and never subtracts.
- The processes read modules as byte code, whatever PYTHONDONTWRITEBYTECODE says: a form that imports a module late would
  otherwise pay for compiling it.
- The operator freezes its imported modules out of garbage collection, as ``steersman run`` does.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
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
    #: In how many batches the owners are created; the median batch counts.
    batches: int = 10
    #: How often all converged owners are reconciled again; the cheapest pass counts.
    passes: int = 5
    #: How often the operator is restarted on converged objects; the cheapest start counts.
    restarts: int = 7

    @property
    def all_children(self) -> int:
        """The children of all owners."""
        return self.owners * self.children


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One form in one round; the CPU is in seconds."""

    #: All owners, at the CPU of the median batch.
    create: Spent
    again: Spent
    restart: Spent


async def measure(forms: Sequence[str], sizes: Sizes) -> dict[str, Cost]:
    """Create, reconcile again, and restart, with the forms in turns."""
    create, again, restarts = ({form: list[Spent]() for form in forms} for _ in range(3))
    with tempfile.TemporaryDirectory(prefix="steersman-bench-") as scratch:
        async with AsyncExitStack() as servers:
            stands = {form: await servers.enter_async_context(_served(form, Path(scratch))) for form in forms}
            async with AsyncExitStack() as operators:
                running = {form: await operators.enter_async_context(stands[form].operator(0)) for form in forms}
                for form, process in running.items():
                    await _answer(process, form)  # the start without any owner
                for batch, form in _turns(sizes.batches, forms):
                    first, last = (sizes.owners * number // sizes.batches for number in (batch, batch + 1))
                    await _fill(stands[form].kubeconfig, range(first, last), sizes.children)
                    create[form].append(await _ask(running[form], form, f"owners {last}"))
                for _, form in _turns(sizes.passes, forms):
                    again[form].append(await _ask(running[form], form, "pass"))
            for _, form in _turns(sizes.restarts, forms):
                async with stands[form].operator(sizes.owners) as process:
                    restarts[form].append(await _answer(process, form))
    return {
        form: Cost(create=_whole(create[form]), again=_cheapest(again[form]), restart=_cheapest(restarts[form]))
        for form in forms
    }


def _turns(times: int, forms: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Every form as often as asked, each time beginning with another one."""
    for turn in range(times):
        begins = turn % len(forms)
        yield from ((turn, form) for form in (*forms[begins:], *forms[:begins]))


@dataclass(frozen=True)
class _Stand:
    """A server for one form of the operator."""

    form: str
    kubeconfig: Path
    scratch: Path

    def operator(self, owners: int) -> AbstractAsyncContextManager[Process]:
        """Start the operator; it reports when it has reconciled so many owners."""
        module = ("-m", "bench.patterns_operator")
        return _process(*module, self.form, str(self.kubeconfig), str(owners), scratch=self.scratch)


@asynccontextmanager
async def _served(form: str, scratch: Path) -> AsyncGenerator[_Stand]:
    kubeconfig, said = scratch / f"{form}.kubeconfig", scratch / f"{form}.log"
    serve = ("-m", "steersman", "serve", "--controllers", "none", "--kubeconfig", str(kubeconfig))
    async with _process(*serve, scratch=scratch, complaints=said) as server:
        assert server.stdout is not None
        if not await server.stdout.readline():
            raise BenchmarkFailed(f"steersman serve exited before it served; its output: {said.read_text('utf-8')}")
        async with Client.connect(kubeconfig=kubeconfig, field_manager="people") as client:
            await client.install(Site)
        yield _Stand(form, kubeconfig, scratch)


def _whole(batches: list[Spent]) -> Spent:
    """All batches at the CPU of the median one."""
    cpu = statistics.median(each.cpu for each in batches) * len(batches)
    return Spent(cpu=cpu, runs=sum(each.runs for each in batches), requests=_requests(batches), failures=0)


def _cheapest(several: list[Spent]) -> Spent:
    """The CPU of the cheapest one, and the requests of all of them."""
    return msgspec.structs.replace(min(several, key=lambda each: each.cpu), requests=_requests(several))


def _requests(several: list[Spent]) -> dict[str, int]:
    return dict(sum((Counter(each.requests) for each in several), Counter[str]()))


async def _fill(kubeconfig: Path, numbers: range, children: int) -> None:
    async with Client.connect(kubeconfig=kubeconfig, field_manager="people", namespace="default") as client:
        left = iter(numbers)

        async def worker() -> None:
            for number in left:
                spec = SiteSpec(title=f"site {number}", children=children)
                await client.create(Site(metadata=ObjectMeta(name=f"site-{number:05d}"), spec=spec))

        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(worker())


async def _ask(process: Process, form: str, command: str) -> Spent:
    assert process.stdin is not None
    process.stdin.write(f"{command}\n".encode())
    return await _answer(process, form)


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
async def _process(*arguments: str, scratch: Path, complaints: Path | None = None) -> AsyncGenerator[Process]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(scratch / "bytecode")
    with complaints.open("wb") if complaints else nullcontext() as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, stdin=PIPE, stdout=PIPE, stderr=log, cwd=ROOT, env=environment
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
