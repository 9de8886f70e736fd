"""How many requests a change takes, counted at the operator's transport and by the API server, against the minimum.

The minimum: one write per child to create, change or delete, one per changed status, and for a finalizer one to set it
and one to remove it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any

from bench.patterns_counting import READ, Counting, writes
from bench.patterns_shapes import CHILD_KINDS, GROUP, SHAPES, Shape, ShapeSpec
from bench.report import BenchmarkFailed
from steersman import Client, Manager, MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.objects import is_true
from steersman.testing import Engine
from steersman.transport import Transport
from steersman.wire import HttpRequest

NAME = "boat"
CHILDREN = 3
#: Without requests for this long, nothing more is expected.
QUIET = 0.5
PATIENCE = 30.0
WRITES = {"APPLY", "CREATE", "DELETE", "DELETECOLLECTION", "PATCH", "POST", "PUT", "UPDATE"}
_COUNTER = re.compile(r"^apiserver_request_total\{(?P<labels>.*)\} (?P<value>\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The requests of one change."""

    shape: str
    change: str
    #: By verb and resource, at the transport.
    writes: Counter[str]
    #: The writes counted by the API server, without those of the benchmark itself.
    served: int
    minimum: int
    #: Reads of single objects from the server.
    reads: int
    #: Events for people.
    events: int

    @property
    def total(self) -> int:
        """All requests that write."""
        return self.writes.total()

    def document(self) -> dict[str, Any]:
        """Give it as JSON."""
        return asdict(self) | {"writes": dict(self.writes), "total": self.total}


class Bench:
    """One shape in its own namespace."""

    def __init__(self, engine: Engine, shape: Shape, client: Client, namespace: str, *, quiet: float) -> None:
        self._token = engine.admin_token
        self._quiet_seconds = quiet
        self.shape = shape
        self._own: Counter[str] = Counter()
        self.counted: Counter[str] = Counter()
        self._counting: list[Counting] = []

        def counting(inner: Transport) -> Transport:
            self._counting.append(Counting(inner, self._own))
            return self._counting[-1]

        self.people = client.with_transport(counting, field_manager="people")
        self._operator = client.with_transport(lambda inner: Counting(inner, self.counted), field_manager="shapes")
        self._namespace = namespace
        self.manager: Manager | None = None
        self.rows: list[Row] = []

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the operator for a block."""
        self.manager = self.shape.manager().copy(namespaces=[self._namespace])
        async with Supervisor() as tasks:
            tasks.start(self.manager.run(self._operator, signals=False), name="operator")
            try:
                yield
            finally:
                self.manager.stop()

    @asynccontextmanager
    async def counting(self, change: str, minimum: int, reached: Callable[[], Awaitable[bool]]) -> AsyncGenerator[None]:
        """Count what the operator does about a change in a block, until nothing is left to do."""
        self.counted.clear()
        self._own.clear()
        before = await self._served()
        yield
        deadline = time.monotonic() + PATIENCE
        while not await reached():
            await asyncio.sleep(0.05)
            if time.monotonic() > deadline:
                raise BenchmarkFailed(f"{self.shape.name}, {change}: not done after {PATIENCE:.0f} s")
        await self._quiet()
        row = Row(
            shape=self.shape.name,
            change=change,
            writes=writes(self.counted),
            served=await self._served() - before - writes(self._own).total(),
            minimum=minimum,
            reads=self.counted[READ],
            events=sum(times for what, times in self.counted.items() if what.endswith(" events")),
        )
        self.rows.append(row)

    async def _quiet(self) -> None:
        """Wait until the operator stops sending."""
        while True:
            before = self.counted.total()
            await asyncio.sleep(self._quiet_seconds)
            busy = any(each.busy for each in self.manager.controllers) if self.manager else True
            if before == self.counted.total() and not busy:
                return

    async def is_ready(self) -> bool:
        """Whether the object is Ready for its current generation."""
        found = await self.people.find(self.shape.kind, NAME)
        status = found.status if found else None
        ready = status is not None and is_true(status.conditions, "Ready")
        return ready and status is not None and found is not None and status.observed_generation == found.generation

    async def looked(self) -> bool:
        """Whether the running operator has reconciled the object."""
        running = self.manager.controllers if self.manager else ()
        return any(sum(each.statistics().results.values()) for each in running)

    async def is_gone(self) -> bool:
        """Whether the object is deleted."""
        return await self.people.find(self.shape.kind, NAME) is None

    async def change(self, **spec: object) -> None:
        """Change a field."""
        await self.people.patch(self.shape.kind, NAME, MergePatch({"spec": spec}))

    async def _served(self) -> int:
        """The writes counted by the API server, of all kinds in a shape."""
        request = HttpRequest("GET", "/metrics", headers=(("Authorization", f"Bearer {self._token}"),))
        async with await self._counting[0].send(request) as answer:
            text = (await answer.read()).decode()
        if answer.status != 200:
            raise BenchmarkFailed(f"the API server returned {answer.status} for its metrics")
        resources = {f"{kind.gvk().kind.lower()}s" for kind in CHILD_KINDS}
        total = 0
        for counter in _COUNTER.finditer(text):
            labels = dict(_LABEL.findall(counter["labels"]))
            if labels["verb"] in WRITES and (labels["group"] == GROUP or labels["resource"] in resources):
                total += int(float(counter["value"]))
        return total


async def count(engine: Engine, shapes: Sequence[Shape] = SHAPES, *, quiet: float = QUIET) -> list[Row]:
    """All changes of all shapes; a change is complete when nothing was sent for ``quiet`` seconds."""
    rows: list[Row] = []
    async with engine.client(field_manager="people") as admin:
        await admin.install(*(shape.kind for shape in shapes))
        for number, shape in enumerate(shapes):
            namespace = f"requests-{number}"
            await admin.create(Namespace(metadata=ObjectMeta(name=namespace)))
            async with engine.client(namespace=namespace) as client:
                bench = Bench(engine, shape, client, namespace, quiet=quiet)
                await _changes(bench)
                rows += bench.rows
    return rows


async def _changes(bench: Bench) -> None:
    kind, people = bench.shape.kind, bench.people
    page, extra = f"{NAME}-page", f"{NAME}-extra"
    finalizer = int(bench.shape.finalizer)

    async def page_says(title: str) -> bool:
        found = await people.find(ConfigMap, page)
        return found is not None and found.data == {"title": title}

    async def extra_is_gone() -> bool:
        return await people.find(ConfigMap, extra) is None and await bench.is_ready()

    async with bench.running():
        async with bench.counting("created", CHILDREN + 1 + finalizer, bench.is_ready):
            await people.create(kind(metadata=ObjectMeta(name=NAME), spec=ShapeSpec(title="one")))  # type: ignore[arg-type]
        async with bench.counting("a field of one child changed", 2, bench.is_ready):
            await bench.change(title="two")
        async with bench.counting("a child deleted by hand", 1, lambda: page_says("two")):
            await people.delete(ConfigMap, page)
        async with bench.counting("a child changed by hand", 1, lambda: page_says("two")):
            await people.patch(ConfigMap, page, MergePatch({"data": {"title": "drift"}}))
        async with bench.counting("a child more", 2, bench.is_ready):
            await bench.change(extra=True)
        async with bench.counting("a child less", 2, extra_is_gone):
            await bench.change(extra=False)
    async with AsyncExitStack() as stack:
        async with bench.counting("started again", 0, bench.looked):
            await stack.enter_async_context(bench.running())
        async with bench.counting("deleted", CHILDREN + 1 if finalizer else 0, bench.is_gone):
            await people.delete(kind, NAME)
