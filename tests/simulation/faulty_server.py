"""The engine behind a proxy that reads requests and applies the faults of a schedule at their places.

What the simulated network does to messages, it does to bytes: it holds them, drops them, and resets connections. The
operator is a process, and a crash is kill -9. The proxy ends no TLS of its own: clients talk HTTP to it, without credentials,
and it adds the administrator's.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from simulation.deletion_gate import DeletionGate
from simulation.lagging_server import LaggingApiServer

from steersman import Client, MergePatch
from steersman.kinds.core_v1 import ConfigMap
from steersman.simulation.runs.faults import (
    ChildDeleted,
    ChildEdited,
    ClockSkew,
    Coalesced,
    CrashBefore,
    CrashCommitted,
    CrashReplied,
    CutDeletion,
    DroppedWatch,
    Fault,
    InterferingWrite,
    LaggingServer,
    LostReply,
    LostRequest,
    Outage,
    Partition,
    ServerError,
    ServerTimeout,
    SlowServer,
    StaleCache,
    Throttled,
)
from steersman.simulation.runs.meddler import edits
from steersman.simulation.runs.places import Place, PlaceCounter
from steersman.simulation.runs.refusals import refusal
from steersman.simulation.runs.schedules import FaultSchedule
from steersman.testing import Engine
from steersman.transport import ServerResponse
from steersman.wire import HttpRequest

TESTS = Path(__file__).parents[1]
PROGRAM = Path(__file__).with_name("operator_forks.py")
_RESET = struct.pack("ii", 1, 0)


class Forks:
    """Starts and kills operators: see operator_forks.py."""

    def __init__(self, log: Path) -> None:
        path = os.pathsep.join((str(TESTS), str(TESTS.parent)))
        with log.open("ab") as stderr:
            self._program = subprocess.Popen(
                [sys.executable, str(PROGRAM)],
                env=os.environ | {"PYTHONPATH": path},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self._answer()

    def start(self, **arguments: object) -> int:
        """Start an operator; returns the id of its process."""
        return self._ask(start=arguments)

    def kill(self, pid: int) -> None:
        """Kill -9; returns when there is no such process any more."""
        self._ask(kill=pid)

    def close(self) -> None:
        """End the program and all operators."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.close()
        self._program.wait()
        self._program.stdout.close()

    def _ask(self, **command: object) -> int:
        assert self._program.stdin is not None
        self._program.stdin.write(json.dumps(command).encode() + b"\n")
        self._program.stdin.flush()
        return int(self._answer())

    def _answer(self) -> bytes:
        assert self._program.stdout is not None
        line = self._program.stdout.readline()
        assert line, "the program of the operators ended"
        return line


class OperatorProcess:
    """The operator: one process after the other."""

    def __init__(self, forks: Forks, **arguments: object) -> None:
        self._forks = forks
        self._arguments = arguments
        self._pid: int | None = None
        self.starts = 0

    def start(self) -> None:
        """Start it."""
        self._pid = self._forks.start(**self._arguments)
        self.starts += 1

    def kill(self) -> None:
        """Kill -9."""
        pid, self._pid = self._pid, None
        if pid is not None:
            self._forks.kill(pid)

    @property
    def runs(self) -> bool:
        """Whether it runs."""
        return self._pid is not None

    async def stop(self) -> None:
        """Stop it where it is: what arrives now stays unread."""
        assert self._pid is not None
        os.kill(self._pid, signal.SIGSTOP)
        while not self._is_stopped():  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.001)

    def _is_stopped(self) -> bool:
        fields = Path(f"/proc/{self._pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return fields[0] == "T"

    def skew(self) -> None:
        """Move its wall clock."""
        assert self._pid is not None
        os.kill(self._pid, signal.SIGUSR1)


class _Span:
    """A while: it begins, and it ends."""

    def __init__(self) -> None:
        self._over = asyncio.Event()
        self._over.set()

    @property
    def lasts(self) -> bool:
        return not self._over.is_set()

    def begin(self) -> None:
        self._over.clear()

    def end(self) -> None:
        self._over.set()

    async def wait(self) -> None:
        """Wait for its end."""
        await self._over.wait()


class _Link:
    """A connection of the operator, and ours to the engine."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client = client
        self.server = server
        #: The answers that it reads now, and whether they are those of the server that lags.
        self.source: asyncio.StreamReader | None = None
        self.lags = False
        #: The last request.
        self.place: Place | None = None
        #: What to do when its answer arrives.
        self.fault: Fault | None = None
        self.body = b""
        #: Whether the engine has answered it, and whether the operator still waits for that.
        self.answered = True
        self.abandoned = False
        self.closed = False

    @property
    def is_watch(self) -> bool:
        return self.place is not None and self.place.verb == "watch"

    def reset(self) -> None:
        """Reset the operator's connection, and end ours."""
        if not self.closed:
            self.closed = True
            held: socket.socket | None = self.client.get_extra_info("socket")
            if held is not None and held.fileno() >= 0:
                held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.client.transport.abort()
            self.server.transport.abort()


class FaultyServer:
    """``async with FaultyServer(engine, schedule, meddler).serve() as server``; then set ``server.operator``."""

    def __init__(
        self,
        engine: Engine,
        schedule: FaultSchedule,
        meddler: Client,
        forget: Callable[[], Awaitable[None]],
    ) -> None:
        self._url = engine.url
        self._tls = ssl.create_default_context(cafile=str(engine.ca_file))
        self._token = engine.admin_token
        self._schedule = schedule
        self._meddler = meddler
        self._forget = forget
        self._places = PlaceCounter()
        self._links: dict[_Link, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._port = 0
        #: Set while nothing passes, while watches deliver nothing, while they are refused, while an answer waits.
        self._cut, self._held, self._refused, self._slow = (_Span() for _ in range(4))
        #: Set while requests go to the server that lags, and while all requests are refused.
        self._lag, self._away = _Span(), _Span()
        self.operator: OperatorProcess | None = None
        self.gate: DeletionGate | None = None
        self.lagging: LaggingApiServer | None = None
        #: Every request, and the faults that happened.
        self.requests: list[Place] = []
        self.fired: list[Fault] = []

    @property
    def url(self) -> str:
        """The address for the operator."""
        return f"http://127.0.0.1:{self._port}"

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[FaultyServer]:
        """Serve during a block."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            if self.operator is not None:
                self.operator.kill()
            server.close()
            for link in tuple(self._links):
                link.reset()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._start(self._carry(reader, writer))

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answers, server = await self._connect(self._url)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(writer, server)
        self._links[link] = None
        self._read(link, answers)
        try:
            while not link.closed:
                head = await reader.readuntil(b"\r\n\r\n")
                request = _parsed(head)
                body = await reader.readexactly(int(request.header("Content-Length") or 0))
                request = HttpRequest(request.method, request.path, request.query, request.headers, body)
                await self._request(link, head, request)
        except (OSError, asyncio.IncompleteReadError):
            # The operator has closed its connection. A request that it has sent is carried out all the same.
            link.abandoned = True
            if link.is_watch or link.answered:
                link.reset()
        finally:
            self._links.pop(link, None)

    async def _connect(self, url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        target = urlsplit(url)
        return await asyncio.open_connection(target.hostname, target.port, ssl=self._tls)

    def _read(self, link: _Link, answers: asyncio.StreamReader) -> None:
        link.source = answers
        self._start(self._answers(link, answers))

    async def _move(self, link: _Link, *, lags: bool) -> None:
        """Send what follows to the server that lags, or to the other one."""
        assert self.lagging is not None
        before = link.server
        answers, link.server = await self._connect(self.lagging.url if lags else self._url)
        link.lags = lags
        self._read(link, answers)
        before.transport.abort()

    async def heal(self) -> None:
        """End a fault that lasts, and deliver what it held."""
        if self.lagging is not None:
            await self.lagging.heal()
        if self._refused.lasts:
            await self._forget()
        if self.operator is not None and not self.operator.runs:
            self.operator.start()
        spans = (self._cut, self._held, self._refused, self._slow, self._lag, self._away)
        for span in spans:
            span.end()

    # requests

    async def _request(self, link: _Link, head: bytes, request: HttpRequest) -> None:
        place = link.place = self._places.place_of("operator", request)
        self.requests.append(place)
        fault = self._schedule.decide(place)
        if fault is not None:
            self.fired.append(fault)
        match fault:
            case CrashBefore():
                self._crash()
                return
            case LostRequest():
                link.reset()
                return
            case Throttled() | ServerError():
                link.client.write(_printed(refusal(fault)))
                return
            case (
                CrashCommitted()
                | CrashReplied()
                | LostReply()
                | ServerTimeout()
                | SlowServer()
                | ChildDeleted()
                | ChildEdited()
            ):
                link.fault, link.body = fault, request.body or b""
            case CutDeletion():
                assert self.gate is not None
                self.gate.arm(partial(self._cut_off, link))
            case _:
                await self._disturb(fault)
        if self._refused.lasts and link.is_watch:
            link.reset()
            return
        if self._away.lasts:
            link.client.write(_printed(refusal(Outage())))
            return
        lags = self._lag.lasts and (link.is_watch or place.any_version)
        if lags != link.lags:
            await self._move(link, lags=lags)
        await self._cut.wait()
        line, _, rest = head.partition(b"\r\n")
        link.answered = False
        link.server.write(line + f"\r\nAuthorization: Bearer {self._token}\r\n".encode() + rest + (request.body or b""))

    async def _disturb(self, fault: Fault | None) -> None:
        match fault:
            case InterferingWrite():
                patch = MergePatch({"metadata": {"annotations": {"touched": "yes"}}})
                await self._meddler.patch(ConfigMap, self.requests[-1].key, patch)
            case StaleCache():
                self._held.begin()
            case Partition():
                self._cut.begin()
            case DroppedWatch():
                self._reset_watches()
            case LaggingServer():
                self._lag.begin()
                self._reset_watches()
            case Outage():
                self._away.begin()
                self._reset_watches()
            case Coalesced():
                self._refused.begin()
                self._reset_watches()
            case ClockSkew():
                assert self.operator is not None
                self.operator.skew()
            case _:
                pass

    def _reset_watches(self) -> None:
        for link in tuple(self._links):
            if link.is_watch:
                link.reset()

    def _crash(self) -> None:
        assert self.operator is not None
        self.operator.kill()
        self.operator.start()

    # answers

    async def _answers(self, link: _Link, answers: asyncio.StreamReader) -> None:
        try:
            while piece := await answers.read(1 << 16):
                fault, link.fault = link.fault, None
                link.answered = True
                if not await self._arrived(link, fault, piece):
                    return
                if isinstance(fault, ServerTimeout):
                    piece = _printed(refusal(fault))
                if link.is_watch:
                    await self._held.wait()
                await self._cut.wait()
                if link.abandoned:
                    return
                link.client.write(piece)
                await self._meddle(link, fault)
        except OSError:
            pass
        finally:
            if link.source is answers:
                link.reset()

    async def _meddle(self, link: _Link, fault: Fault | None) -> None:
        """Do what another client does to the object of a request that has been answered."""
        assert link.place is not None
        if isinstance(fault, ChildDeleted):
            await self._meddler.delete(ConfigMap, link.place.key)
        elif isinstance(fault, ChildEdited):
            await self._meddler.patch(ConfigMap, link.place.key, MergePatch(next(edits(link.body), {})))

    def _cut_off(self, link: _Link) -> None:
        """Kill the operator in the middle of its request; another one starts with `heal`."""
        assert self.operator is not None
        self.operator.kill()
        link.reset()

    async def _arrived(self, link: _Link, fault: Fault | None, piece: bytes) -> bool:
        """The engine has answered, so the request is carried out. Returns whether the operator gets the answer."""
        assert self.operator is not None
        match fault:
            case CrashCommitted():
                self._crash()
            case CrashReplied():
                await self.operator.stop()
                link.client.write(piece)
                await link.client.drain()
                self._crash()
            case LostReply():
                link.reset()
            case SlowServer():
                self._slow.begin()
                await self._slow.wait()
                return True
            case _:
                return True
        return False


def _printed(answer: ServerResponse) -> bytes:
    """An answer as a server sends it."""
    assert isinstance(answer.body, bytes)
    headers = (*answer.headers, ("Content-Length", str(len(answer.body))))
    lines = (f"HTTP/1.1 {answer.status} -", *(f"{name}: {value}" for name, value in headers), "", "")
    return "\r\n".join(lines).encode() + answer.body


def _parsed(head: bytes) -> HttpRequest:
    line, *fields = head.decode().rstrip().split("\r\n")
    method, target, _ = line.split(" ", 2)
    path, _, query = target.partition("?")
    headers = tuple((name, value.strip()) for name, _, value in (field.partition(":") for field in fields))
    return HttpRequest(method, path, query=tuple(parse_qsl(query, keep_blank_values=True)), headers=headers)
