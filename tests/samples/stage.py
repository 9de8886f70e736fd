"""Where the examples are shown: their modules, the program they run in, and what it does."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from steersman import Client, LeaderElection, Manager
from steersman.aio import Supervisor
from steersman.cache import KindOptions
from steersman.transport import Response, Transport
from steersman.wire import HttpRequest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> Any:
    """An example as a module, the same one whenever it is asked for; ``NAME.PART`` is a part of one in several files."""
    if "." in name:
        if str(EXAMPLES.parent) not in sys.path:
            sys.path.append(str(EXAMPLES.parent))
        return importlib.import_module(f"examples.{name}")
    if f"example_{name}" in sys.modules:
        return sys.modules[f"example_{name}"]
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # annotations are resolved there
    spec.loader.exec_module(module)
    return module


class Writes:
    """A transport that remembers what was written through it."""

    def __init__(self, transport: Transport, told: list[str]) -> None:
        self._transport = transport
        self._told = told

    async def send(self, request: HttpRequest, **options: Any) -> Response:
        if request.method != "GET" and "/leases/" not in request.path and not request.path.endswith("/leases"):
            self._told.append(f"{request.method} {request.path}")
        return await self._transport.send(request, **options)

    async def close(self) -> None:
        """Leave it to the client that it belongs to."""


class Operator:
    """An example that runs."""

    def __init__(self, manager: Manager, writes: list[str]) -> None:
        self.manager = manager
        self.writes = writes

    @property
    def results(self) -> dict[str, int]:
        """How many reconciles ended how."""
        found: dict[str, int] = {}
        for each in self.manager.controllers:
            for label, count in each.statistics().results.items():
                found[label] = found.get(label, 0) + count
        return found

    @property
    def runs(self) -> int:
        return sum(self.results.values())

    async def settled(self, *, seconds: float = 0.4) -> int:
        """Wait until nothing was reconciled or written for a while; the number of reconciles so far."""
        async with asyncio.timeout(30):
            before = None
            while before != (before := (self.runs, len(self.writes))):  # noqa: ASYNC110
                await asyncio.sleep(seconds)
        return self.runs

    async def assert_quiet(self, *, seconds: float = 1.0) -> None:
        """Once everything is as it should be, nothing is reconciled and nothing is written."""
        try:
            await self.settled(seconds=seconds)
        except TimeoutError:
            raise AssertionError(f"never quiet for {seconds} s: {self.results}, {self.writes[-20:]}") from None


@asynccontextmanager
async def running(
    client: Client,
    example: Any,
    *,
    only: dict[Any, KindOptions] | None = None,
    leader: LeaderElection | None = None,
    grace: float = 30.0,
) -> AsyncIterator[Operator]:
    """Run an example for as long as the block lasts; none of its reconciles may fail."""
    writes: list[str] = []
    counted = client.with_transport(lambda transport: Writes(transport, writes))
    manager = Manager(counted, kinds=only, leader=leader, grace=grace)
    for blueprint in example.manager.blueprints:
        manager.add(blueprint)
    operator = Operator(manager, writes)
    async with Supervisor() as tasks:
        tasks.start(manager.run(), name=example.__name__)
        await until(lambda: bool(manager.controllers) and all(each.working for each in manager.controllers))
        yield operator
        errors = [record for each in manager.controllers for record in each.statistics().keys if record.last_error]
        manager.stop()
    assert errors == []


async def until(question: Callable[[], bool | Awaitable[bool]], *, seconds: float = 30.0) -> None:
    """Wait until the answer is yes."""
    async with asyncio.timeout(seconds):
        while True:
            answer = question()
            if answer if isinstance(answer, bool) else await answer:
                return
            await asyncio.sleep(0.02)


async def gone(client: Client, kind: Any, key: Any) -> None:
    """Wait until there is no such object."""

    async def ask() -> bool:
        return await client.find(kind, key) is None

    await until(ask)


async def seen(client: Client, kind: Any, key: Any, question: Callable[[Any], Any] = lambda _: True) -> Any:
    """Wait until an object is there and as it should be; the object."""
    found: Any = None

    async def ask() -> bool:
        nonlocal found
        found = await client.find(kind, key)
        return found is not None and bool(question(found))

    try:
        await until(ask)
    except TimeoutError:
        raise AssertionError(f"{kind.__name__} {key} did not become what was expected: {found}") from None
    return found
