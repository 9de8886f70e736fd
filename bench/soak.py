"""A manager for a long time, under changes and random faults: memory flat, everything converged, nothing left behind.

The operator is a separate process (`bench.soak_operator`) behind a `FaultProxy`. This process creates, changes and
deletes Sites at a steady rate, bypassing the proxy, and injects random faults: connections reset, frozen, stalled or
refused, answers lost, kube-apiserver and etcd killed. The seed is printed; the same seed chooses the same faults.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import re
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from bench.report import Bar, Figure, Report
from bench.soak_operator import CONCURRENCY, FINALIZER, NAMESPACE, Sample, Site, SiteSpec
from steersman import Client, MergePatch, ObjectMeta
from steersman.client import RetryPolicy
from steersman.errors import ApiError, NotFound
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.testing import Engine, FaultProxy

#: Longer than any key's backoff after these faults, even on a busy machine.
SETTLE_SECONDS = 150.0
#: The allowed growth of memory in the second half: the allocator takes its memory in steps.
ALLOWED_BYTES = 4_000_000
#: The allowed growth if the second half begins before every kind of fault occurred: each sets its peak once.
ALLOWED_BYTES_WHEN_SHORT = 12_000_000
#: Runs below this many minutes count as short.
SHORT = 5.0
#: The additional allowed growth per change; one leaked key is more.
ALLOWED_BYTES_PER_CHANGE = 64
#: Each reconcile and each stream has a connection, and abandoned ones take a while to close.
SOCKETS_MAX = 3 * (CONCURRENCY + 4)

_COUNTED = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
_WRITE = re.compile(r'verb="(POST|PUT|PATCH|APPLY|DELETE)"')
_OURS = re.compile(r'resource="(sites|configmaps)"')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=20.0, help="duration of changes and faults")
    parser.add_argument("--rate", type=float, default=100.0, help="changes per second")
    parser.add_argument("--sites", type=int, default=500, help="Sites at the start, and about as many later")
    parser.add_argument("--faults", type=float, default=15.0, help="average seconds between faults")
    parser.add_argument("--seed", type=int, default=None, help="chooses the faults and the changes; default: random")


class Operator:
    """The operator's process, and its samples."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.samples: list[tuple[float, Sample]] = []
        self.heard = asyncio.Event()

    @property
    def now(self) -> Sample:
        """The last sample."""
        return self.samples[-1][1]

    async def listen(self) -> None:
        """Read its samples until it ends."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.samples.append((time.monotonic(), msgspec.json.decode(line, type=Sample)))
            self.heard.set()

    async def next(self) -> Sample:
        """A sample that was taken after this call: the last one may be a second old, and the one in flight too."""
        for _ in range(2):
            self.heard.clear()
            await self.heard.wait()
        return self.now

    async def until(self, condition: Callable[[Sample], bool], what: str) -> None:
        """Wait until a sample meets a condition."""
        async with asyncio.timeout(SETTLE_SECONDS):
            while not self.samples or not condition(self.now):
                self.heard.clear()
                if self.process.returncode is not None:
                    raise RuntimeError(f"the operator exited with status {self.process.returncode} before {what}")
                await self.heard.wait()


@asynccontextmanager
async def operating(kubeconfig: str, server: str) -> AsyncGenerator[Operator]:
    command = (sys.executable, "-m", "bench.soak_operator", kubeconfig, server)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    operator = Operator(process)
    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(operator.listen())
        try:
            yield operator
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                await asyncio.shield(listening)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


class Changes:
    """Creates, changes and deletes Sites at a rate; catches up after delays, at most at double speed."""

    def __init__(self, client: Client, *, rate: float, rng: random.Random) -> None:
        self._client = client
        self._rate = rate
        self._rng = rng
        self.names: list[str] = []
        self._created = 0
        self.made = 0
        self.failed = 0

    async def create(self) -> None:
        """Create a Site with a new name."""
        self._created += 1
        name = f"site-{self._created:06d}"
        metadata = ObjectMeta(name=name, namespace=NAMESPACE, finalizers=[FINALIZER])
        await self._client.create(Site(metadata=metadata, spec=SiteSpec(image="v0")))
        self.names.append(name)

    async def change(self) -> None:
        """Create (one in ten), delete (one in ten) or change a Site."""
        choice = self._rng.random()
        if choice < 0.1:
            await self.create()
        elif choice < 0.2 and self.names:
            position = self._rng.randrange(len(self.names))
            self.names[position], self.names[-1] = self.names[-1], self.names[position]
            await self._client.delete(Site, f"{NAMESPACE}/{self.names.pop()}")
        elif self.names:
            patch = MergePatch({"spec": {"image": f"v{self.made}"}})
            await self._client.patch(Site, f"{NAMESPACE}/{self._rng.choice(self.names)}", patch)

    async def one(self) -> None:
        """Try one change."""
        try:
            await self.change()
            self.made += 1
        except NotFound:
            pass  # deleted by a request whose response was lost
        except ApiError:
            self.failed += 1
            await asyncio.sleep(0.2)

    async def run(self, workers: int = 8) -> None:
        """Change forever."""
        due = time.monotonic()

        async def worker() -> None:
            nonlocal due
            while True:
                now = time.monotonic()
                due = max(due + 1 / self._rate, now - 1)
                if due > now:
                    await asyncio.sleep(due - now)
                await self.one()

        async with asyncio.TaskGroup() as tasks:
            for _ in range(workers):
                tasks.create_task(worker())


class Faults:
    """Injects a random fault from time to time, one at a time."""

    def __init__(self, engine: Engine, proxy: FaultProxy, *, every: float, rng: random.Random) -> None:
        self._engine = engine
        self._proxy = proxy
        self._every = every
        self._rng = rng
        self.done: Counter[str] = Counter()
        self._kinds = {
            "cut": (4, self._cut),
            "answers lost": (4, self._lose),
            "freeze": (2, self._freeze),
            "stall": (2, self._stall),
            "refuse": (2, self._refuse),
            "kube-apiserver killed": (1, self._kill_api_server),
            "etcd killed": (1, self._kill_etcd),
        }

    async def run(self) -> None:
        """Inject faults forever."""
        names = list(self._kinds)
        weights = [weight for weight, _ in self._kinds.values()]
        while True:
            await asyncio.sleep(min(self._rng.expovariate(1 / self._every), 4 * self._every))
            (name,) = self._rng.choices(names, weights)
            await self._kinds[name][1]()
            self.done[name] += 1

    async def _cut(self) -> None:
        self._proxy.cut()

    async def _lose(self) -> None:
        self._proxy.lose_answers()

    async def _freeze(self) -> None:
        self._proxy.freeze()

    async def _stall(self) -> None:
        self._proxy.stall()
        await asyncio.sleep(self._rng.uniform(0.5, 4.0))
        await self._proxy.heal()

    async def _refuse(self) -> None:
        self._proxy.refuse()
        self._proxy.cut()
        await asyncio.sleep(self._rng.uniform(0.5, 4.0))
        await self._proxy.heal()

    async def _kill_api_server(self) -> None:
        (server,) = self._engine.api_servers
        await server.kill()
        await server.start()

    async def _kill_etcd(self) -> None:
        (member,) = self._engine.etcd
        await member.kill()
        await member.start()


async def problems(client: Client) -> list[str]:
    """Sites on the server that have not converged."""
    sites = {each.metadata.name: each for each in await client.list(Site, namespace=NAMESPACE)}
    pages = {each.metadata.name: each for each in await client.list(ConfigMap, namespace=NAMESPACE)}
    wrong = sorted(str(name) for name in sites.keys() ^ pages.keys())
    for name, site in sites.items():
        page = pages.get(name)
        if site.metadata.deletion_timestamp is not None or page is None:
            wrong.append(f"{name}: not gone, or without its child")
        elif page.data != {"image": site.spec.image} or site.status is None or site.status.image != site.spec.image:
            wrong.append(f"{name}: not that of {site.spec.image}")
    return wrong


async def writes(engine: Engine) -> int:
    """How many writes of our kinds the API server has counted since its start."""
    text = await engine.api_servers[0].metrics()
    return sum(
        int(float(count)) for labels, count in _COUNTED.findall(text) if _WRITE.search(labels) and _OURS.search(labels)
    )


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes between all pairs of points: robust against outliers."""
    step = max(1, len(points) // 300)
    chosen = points[::step]
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for number, earlier in enumerate(chosen)
        for later in chosen[number + 1 :]
        if later[0] > earlier[0]
    ]
    return statistics.median(slopes) if slopes else float("nan")


def say(text: str) -> None:
    print(f"bench soak: {text}", file=sys.stderr, flush=True)


async def soak(changes: Changes, faults: Faults, operator: Operator, minutes: float) -> tuple[float, float]:
    """Run changes and faults for a while; returns when they began and ended."""
    begun = time.monotonic()
    ends = begun + minutes * 60
    working = asyncio.gather(changes.run(), faults.run())
    try:
        while (now := time.monotonic()) < ends:
            await asyncio.wait([working], timeout=min(5.0, ends - now))
            if working.done():
                working.result()
            last = operator.now
            broken = ", ".join(f"{count} x {name}" for name, count in faults.done.most_common())
            say(
                f"{time.monotonic() - begun:5.0f} s: {changes.made} changes, {last.cached} cached, queue {last.queue},"
                f" {last.reconciles} reconciles, {last.memory / 1e6:.1f} MB; {broken or 'no faults yet'}"
            )
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    return begun, time.monotonic()


async def settle(client: Client, operator: Operator) -> tuple[float, list[str]]:
    """Wait until everything has converged; returns how long it took, and what is wrong if it never did."""
    begun = time.monotonic()
    while time.monotonic() - begun < SETTLE_SECONDS:
        found = await problems(client)
        if not found and (await operator.next()).idle:
            return time.monotonic() - begun, []
        say(f"settling: {len(found)} to go, queue {operator.now.queue}")
        await asyncio.sleep(1)
    return time.monotonic() - begun, await problems(client) or ["the operator is not idle"]


@dataclass(kw_only=True)
class Course:
    """The course of a run, from the operator's start to its end."""

    seed: int
    changes: Changes
    faults: Faults
    operator: Operator
    #: When changes and faults began and ended.
    begun: float = 0.0
    ended: float = 0.0
    start: Sample | None = None
    healing: float = float("nan")
    wrong: list[str] = field(default_factory=list[str])
    quiet_seconds: float = 0.0
    quiet_reconciles: float = float("nan")
    quiet_writes: float = float("nan")
    last: Sample | None = None


async def watch_quiet(engine: Engine, course: Course) -> None:
    """Count what happens while nothing should."""
    say(f"nothing may happen for {course.quiet_seconds:.0f} s")
    before, written = await course.operator.next(), await writes(engine)
    await asyncio.sleep(course.quiet_seconds)
    course.last = await course.operator.next()
    course.quiet_reconciles = course.last.reconciles - before.reconciles
    course.quiet_writes = await writes(engine) - written


async def repair(engine: Engine, proxy: FaultProxy) -> None:
    """End the fault in progress, whichever it is."""
    await proxy.heal()
    for part in (*engine.etcd, *engine.api_servers):
        if not part.running:
            await part.start()
    await engine.wait_ready()


async def run(options: argparse.Namespace) -> Report:
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    say(f"seed {seed}")
    async with (
        Engine.start() as engine,
        FaultProxy(engine.url) as proxy,
        engine.client(field_manager="user", timeout=5.0, retry=RetryPolicy(attempts=20, maximum_delay=1.0)) as client,
        engine.client(field_manager="user", timeout=5.0, retry=RetryPolicy(attempts=1)) as impatient,
    ):
        await client.install(Site)
        await client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        changes = Changes(impatient, rate=options.rate, rng=random.Random(seed))
        say(f"creating {options.sites} Sites")
        for _ in range(options.sites):
            await changes.create()
        faults = Faults(engine, proxy, every=options.faults, rng=random.Random(seed + 1))
        async with operating(str(engine.kubeconfig), proxy.url) as operator:
            course = Course(seed=seed, changes=changes, faults=faults, operator=operator)
            await operator.until(lambda now: now.idle, "it had nothing to do")
            course.start = operator.now
            course.begun, course.ended = await soak(changes, faults, operator, options.minutes)
            say("no more changes, no more faults")
            await repair(engine, proxy)
            course.healing, course.wrong = await settle(client, operator)
            course.quiet_seconds = 30.0 if options.minutes >= SHORT else 5.0
            await watch_quiet(engine, course)
    for line in course.wrong[:10]:
        say(f"wrong: {line}")
    return report(course)


def report(course: Course) -> Report:
    operator, changes, faults = course.operator, course.changes, course.faults
    start, last, left = course.start, course.last, operator.now
    assert start is not None
    assert last is not None
    middle = (course.begun + course.ended) / 2
    half = [(when, each) for when, each in operator.samples if middle <= when <= course.ended]
    seconds = course.ended - middle
    rate = changes.made / (course.ended - course.begun)
    grown = slope([(when, float(each.memory)) for when, each in half]) * seconds
    short = course.ended - course.begun < SHORT * 60
    base = ALLOWED_BYTES_WHEN_SHORT if short else ALLOWED_BYTES
    allowed = base + ALLOWED_BYTES_PER_CHANGE * rate * seconds
    lowest = min((each.memory for _, each in half), default=0)
    return Report(
        name="soak",
        bars=(
            Bar(name="memory grown in the second half", value=grown / 1e6, bar=allowed / 1e6, unit="MB"),
            Bar(name="Sites that are not as they should be", value=len(course.wrong), bar=0, unit=""),
            Bar(name="keys in the queue at the end", value=last.queue, bar=0, unit=""),
            Bar(name="reconciles while nothing happens", value=course.quiet_reconciles, bar=0, unit=""),
            Bar(name="writes while nothing happens", value=course.quiet_writes, bar=0, unit=""),
            Bar(name="tasks beyond those at the start", value=last.tasks - start.tasks, bar=0, unit=""),
            Bar(name="sockets at the end", value=last.sockets, bar=SOCKETS_MAX, unit=""),
            Bar(name="tasks left after the manager", value=left.tasks - 1 if left.ended else math.nan, bar=0, unit=""),
        ),
        figures=(
            Figure(name="length", value=(course.ended - course.begun) / 60, unit="min"),
            Figure(name="changes", value=changes.made, unit=""),
            Figure(name="changes a second", value=rate, unit=""),
            Figure(name="changes that failed", value=changes.failed, unit=""),
            Figure(name="reconciles", value=last.reconciles, unit=""),
            Figure(name="reconciles that failed", value=last.errors, unit=""),
            Figure(name="collections read from the start", value=last.lists, unit=""),
            *(Figure(name=f"faults: {name}", value=count, unit="") for name, count in faults.done.most_common()),
            Figure(name="healed after the last fault", value=course.healing, unit="s"),
            Figure(name="memory at the start", value=start.memory / 1e6, unit="MB"),
            Figure(name="memory in the second half, least", value=lowest / 1e6, unit="MB"),
            Figure(name="memory at the end", value=last.memory / 1e6, unit="MB"),
            Figure(name="resident at the end", value=last.resident / 1e6, unit="MB"),
        ),
        notes=(
            f"Seed {course.seed}; nothing happened for {course.quiet_seconds:.0f} s at the end.",
            "Memory is private dirty memory of the operator's process, one sample per second.",
            "Its growth is the median slope of all pairs of samples in the second half, times the length of that half.",
            f"Its bar is {base / 1e6:g} MB for the allocator's steps and, in a short run, for first-time peaks,",
            f"and {ALLOWED_BYTES_PER_CHANGE} bytes per change: leaking one key would cost more than that.",
        ),
    )
