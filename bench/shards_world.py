"""A server, objects in many namespaces, and the replicas that share them, each a process that can be killed or suspended."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bench.apiserver_subjects import ROOT, cpu_clock, process
from bench.report import BenchmarkFailed
from bench.shards_audit import HOME, POLICY, PROGRAM, Record, assignments, wrong_writes
from bench.shards_replica import VALUE, Setup, Status
from steersman import Client, MergePatch, ObjectMeta
from steersman.errors import AlreadyExists
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret
from steersman.testing import Engine
from steersman.wire import HashRange, namespace_hash, read_shard_bound

#: How long anything may take on a busy machine.
PATIENCE = 600.0


class Cable:
    """A way to the server that can be cut: connections break, and new ones are refused."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self.is_cut = False

    @asynccontextmanager
    async def laid(self) -> AsyncGenerator[int]:
        """Accept connections for a block; returns the port."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            self.cut()
            server.close()

    def cut(self) -> None:
        """Cut all connections, until `mend`."""
        self.is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        """Let new connections through."""
        self.is_cut = False

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        there, away = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, away}
        try:
            await asyncio.gather(self._carry(reader, away), self._carry(there, writer))
        finally:
            for each in (writer, away):
                self._writers.discard(each)
                each.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(2**16):
                writer.write(piece)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()


class Replica:
    """A process; made by `World.start`."""

    def __init__(self, identity: str, process: Process, cable: Cable) -> None:
        self.identity = identity
        self.process = process
        self.cable = cable
        self._asking = asyncio.Lock()

    @property
    def runs(self) -> bool:
        """Whether the process has not ended."""
        return self.process.returncode is None

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        return time.clock_gettime(cpu_clock(self.process.pid))

    async def line(self) -> bytes:
        """The next line that it prints."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            found = await self.process.stdout.readline()
        if not found:
            raise BenchmarkFailed(f"replica {self.identity} ended by itself; see its output above")
        return found

    async def status(self) -> Status:
        """What it has and cost."""
        assert self.process.stdin is not None
        async with self._asking:
            self.process.stdin.write(b"?\n")
            while not (line := await self.line()).startswith(b"{"):
                pass  # of a start that was not waited for
            return msgspec.json.decode(line, type=Status)

    def suspend(self) -> None:
        """Suspend it between two turns of its loop."""
        self.process.send_signal(signal.SIGUSR1)

    def resume(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        await self.process.wait()

    async def leave(self) -> None:
        """Let it end as at a rollout."""
        self.process.terminate()
        async with asyncio.timeout(PATIENCE):
            while await self.line() != b"ended\n":
                pass
            await self.process.wait()


class World:
    """One server with its objects and replicas; made by `opened`."""

    def __init__(self, kubeconfig: Path, record: Record, client: Client, stack: AsyncExitStack, folder: Path) -> None:
        self.kubeconfig = kubeconfig
        self.client = client
        self.record = record
        self.replicas: dict[str, Replica] = {}
        self.namespaces: list[str] = []
        self.leaders: set[str] = set()
        self.server_cpu: Callable[[], float] = lambda: 0.0
        self._stack = stack
        self._folder = folder
        self._objects: list[str] = []
        self._times: dict[str, float] = {}

    async def fill(self, namespaces: Sequence[str], objects: int, *, size: int = 100) -> None:
        """Create so many ConfigMaps of a size in each namespace, without the annotation that is copied."""
        self.namespaces = [*namespaces]
        self._objects = [f"source-{number}" for number in range(objects)]

        async def create(namespace: str) -> None:
            with suppress(AlreadyExists):
                await self.client.create(Namespace(metadata=ObjectMeta(name=namespace)))
            for name in self._objects:
                metadata = ObjectMeta(namespace=namespace, name=name)
                await self.client.create(ConfigMap(metadata=metadata, data={"payload": "x" * size}))

        await _limited(create(each) for each in namespaces)

    async def change(self, value: str, *, annotation: str = VALUE, namespaces: Iterable[str] | None = None) -> None:
        """Change an annotation of every object."""

        async def change(namespace: str, name: str) -> None:
            patch = MergePatch({"metadata": {"annotations": {annotation: value}}})
            await self.client.patch(ConfigMap, (namespace, name), patch)

        chosen = self.namespaces if namespaces is None else namespaces
        await _limited(change(namespace, name) for namespace in chosen for name in self._objects)

    async def start(self, identity: str, *, elects: bool = False, skew: float = 0.0, rate: float = 1.0) -> Replica:
        """Start a replica."""
        cable = Cable(urlsplit(self.client.server).port or 0)
        port = await self._stack.enter_async_context(cable.laid())
        kubeconfig = self._folder / f"kubeconfig-{identity}"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(
            self.kubeconfig.read_text(encoding="utf-8").replace(self.client.server, f"https://127.0.0.1:{port}"),
            encoding="utf-8",
        )
        setup = Setup(kubeconfig=str(kubeconfig), identity=identity, elects=elects, skew=skew, rate=rate, **self._times)
        started = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.shards_replica", msgspec.json.encode(setup).decode()),
            stdin=PIPE,
            stdout=PIPE,
            cwd=ROOT,
            limit=2**24,
        )
        self._stack.push_async_callback(_end, started)
        replica = self.replicas[identity] = Replica(identity, started, cable)
        if elects:
            self.leaders.add(identity)
        await replica.line()
        return replica

    async def stop(self, identity: str) -> None:
        """Let a replica leave."""
        await self.replicas.pop(identity).leave()

    async def kill(self, identity: str) -> None:
        """Kill a replica."""
        await self.replicas.pop(identity).kill()

    async def statuses(self, *identities: str) -> dict[str, Status]:
        """The status of some replicas, or of all."""
        return {name: await self.replicas[name].status() for name in identities or tuple(self.replicas)}

    async def divided(self, *identities: str) -> dict[str, Status]:
        """Wait until these replicas, or all, work on all hashes, each on a part, with nothing on its way."""
        while True:
            found = await self.statuses(*identities)
            ranges = [each for status in found.values() for each in status.working]
            settled = not any(status.unsettled for status in found.values())
            if settled and all(status.working for status in found.values()) and sum(map(_width, ranges)) == 2**64:
                return found
            await asyncio.sleep(0.2)

    async def balanced(self, *identities: str, slack: float = 0.25) -> dict[str, Status]:
        """Wait until these replicas, or all, are divided, and none has much more than its part of the objects."""
        while True:
            found = await self.divided(*identities)
            shares = [status.objects for status in found.values()]
            if max(shares) <= (1 + slack) * sum(shares) / len(shares):
                return found
            await asyncio.sleep(0.5)

    async def converged(self, value: str) -> None:
        """Wait until every Secret has a value."""
        wanted = len(self.namespaces) * len(self._objects)
        while True:
            secrets = (await self.client.list(Secret)).items
            right = sum((each.data or {}).get("value", b"").decode() == value for each in secrets)
            if right == wanted:
                return
            await asyncio.sleep(0.2)

    async def copied(self) -> None:
        """Wait until every Secret has the value of its ConfigMap."""
        while True:
            sources = (await self.client.list(ConfigMap)).items
            secrets = {
                each.key: (each.data or {}).get("value", b"").decode()
                for each in (await self.client.list(Secret)).items
            }
            values = {each.key: (each.metadata.annotations or {}).get(VALUE) for each in sources}
            if all(value is None or secrets.get(key) == value for key, value in values.items()):
                return
            await asyncio.sleep(0.5)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        while not condition():  # noqa: ASYNC110 - a file and a process set no event
            await asyncio.sleep(0.05)

    def owner(self, namespace: str) -> str:
        """The term that has a namespace by the newest assignment."""
        _, newest = assignments(self.record.read())[-1]
        found = namespace_hash(namespace)
        return next(part.owner for part in newest.parts if part.range.contains(found))

    def wrong_writes(self) -> list[str]:
        """The writes of replicas that did not have the namespace."""
        return wrong_writes(self.record.read(), leaders=self.leaders)

    def unexpected(self, since: int) -> set[str]:
        """What was written, from this place of the record on, beside Leases and the assignment."""
        return {
            f"{each.user}: {each.resource} {each.namespace}/{each.name}"
            for each in self.record.read()[since:]
            if each.resource != "leases" and (each.namespace, each.name) != (HOME, f"{PROGRAM}-assignment")
        }


def _width(text: str) -> int:
    start, _, end = text.partition("-")
    return HashRange(read_shard_bound("start", start), read_shard_bound("end", end)).width


async def _limited(works: Iterable[object], *, at_once: int = 16) -> None:
    """Run many coroutines, some at once."""
    waiting = iter(works)

    async def worker() -> None:
        for work in waiting:
            await work  # type: ignore[misc]

    await asyncio.gather(*(worker() for _ in range(at_once)))


async def _end(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
    # What it still had to say is read, so that its pipe can close.
    await process.communicate()


@asynccontextmanager
async def opened(
    server: str, *, gate: bool, lease: float = 15.0, renew: float = 10.0, retry: float = 2.0
) -> AsyncGenerator[World]:
    """A world on the ``engine`` or the ``embedded`` server, with the feature gate on or off; the times are those of `Shards`."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="steersman-shards-")))
        start = _engine if server == "engine" else _embedded
        kubeconfig, record, cpu = await start(stack, folder, gate=gate)
        client = await stack.enter_async_context(Client.connect(kubeconfig=kubeconfig, field_manager="user"))
        with suppress(AlreadyExists):
            await client.create(Namespace(metadata=ObjectMeta(name=HOME)))
        replicas = await stack.enter_async_context(AsyncExitStack())
        world = World(kubeconfig, Record(record), client, replicas, folder)
        world._times = {"lease": lease, "renew": renew, "retry": retry}  # noqa: SLF001
        world.server_cpu = cpu
        yield world


async def _engine(stack: AsyncExitStack, folder: Path, *, gate: bool) -> tuple[Path, Path, Callable[[], float]]:
    policy, log = folder / "policy.yaml", folder / "audit.log"
    policy.write_text(POLICY, encoding="utf-8")
    log.touch()
    flags = [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]
    flags += ["--feature-gates=ShardedListAndWatch=true"] if gate else []
    engine = await stack.enter_async_context(Engine.start(flags={"kube-apiserver": flags}))
    return engine.kubeconfig, log, lambda: float("nan")


async def _embedded(stack: AsyncExitStack, folder: Path, *, gate: bool) -> tuple[Path, Path, Callable[[], float]]:
    started = await stack.enter_async_context(
        process("-m", "bench.shards_server", str(folder), *(["gate"] if gate else []))
    )
    assert started.stdout is not None
    if not await started.stdout.readline():
        raise BenchmarkFailed("the embedded server ended before it served; see its output above")
    clock = cpu_clock(started.pid)
    return folder / "kubeconfig", folder / "record", lambda: time.clock_gettime(clock)
