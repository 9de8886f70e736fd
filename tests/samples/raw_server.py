"""A server that says anything, byte by byte; and proof that a client leaves nothing of a talk with it behind."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec


@dataclass
class Seen:
    """A request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Talk:
    """The server's side of one connection; connections are numbered from 1."""

    server: RawServer
    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def request(self) -> Seen:
        """Read one whole request."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        seen = Seen(method, target, headers, body)
        self.server.requests.append(seen)
        return seen

    async def say(self, *pieces: bytes) -> None:
        """Send bytes, each piece on its own."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def listen(self) -> None:
        """Say nothing until the client hangs up, then note that it did."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass
        self.server.hung_up.set()

    def reset(self) -> None:
        """Break the connection without a word: the client gets a reset instead of an end."""
        held = self.writer.get_extra_info("socket")
        held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Script = Callable[[Talk], Awaitable[None]]


@dataclass
class RawServer:
    """A listener on loopback whose every connection follows a script."""

    script: Script
    address: str = ""
    port: int = 0
    connections: int = 0
    requests: list[Seen] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    talks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.talks.add(task)
        self.connections += 1
        try:
            await self.script(Talk(self, self.connections, reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # the client is gone, or the test is over: no one is left to talk to
            pass
        finally:
            writer.close()
            self.talks.discard(task)


@asynccontextmanager
async def serving(script: Script, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    """Serve a script on a free port."""
    server = RawServer(script)
    listener = await asyncio.start_server(server, "127.0.0.1", 0, ssl=tls, limit=1 << 24)
    server.port = listener.sockets[0].getsockname()[1]
    server.address = f"{'https' if tls else 'http'}://127.0.0.1:{server.port}"
    try:
        yield server
    finally:
        listener.close()
        while server.talks:
            for task in list(server.talks):
                task.cancel()
            await asyncio.sleep(0)
        await listener.wait_closed()


def head(status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    """The head of an answer."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def answer(body: object, *headers: str, status: str = "200 OK") -> bytes:
    """A whole answer; anything but bytes is sent as JSON."""
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return head(status, *headers, length=len(content)) + content


def failure(code: int, reason: str, message: str, **details: object) -> dict[str, object]:
    """A Status of failure."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    }


def config_map(name: str = "a", **fields: object) -> dict[str, object]:
    """A ConfigMap as a server sends it."""
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}", "resourceVersion": "7"}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"key": "value"}} | fields


def list_of(*items: object, **metadata: object) -> dict[str, object]:
    """A list of ConfigMaps as a server sends it."""
    return {
        "kind": "ConfigMapList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "9"} | metadata,
        "items": items,
    }


def cut(*pieces: bytes) -> Script:
    """Answer every request with these bytes, and hang up."""

    async def script(talk: Talk) -> None:
        await talk.request()
        await talk.say(*pieces)

    return script


def always(*answers: bytes) -> Script:
    """Answer the first request with the first answer, and so on; the last one stays. Connections are kept."""

    async def script(talk: Talk) -> None:
        while True:
            await talk.request()
            await talk.say(answers[min(len(talk.server.requests), len(answers)) - 1])

    return script


def open_files(ports: set[int]) -> set[str]:
    """The open files of this process; of its TCP sockets only those that lead to one of ``ports``.

    Other sockets belong to others: an engine that tests share talks to its own server when it likes.
    """
    ours, foreign = _sockets(ports)
    found: set[str] = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:
            # the descriptor that lists the folder is gone by now
            continue
        inode = target.removeprefix("socket:[").removesuffix("]")
        if inode in ours or inode not in foreign:
            found.add(f"{entry.name} {target}")
    return found


def _sockets(ports: set[int]) -> tuple[set[str], set[str]]:
    """The inodes of TCP sockets, those on our ports and the others."""
    ours: set[str] = set()
    foreign: set[str] = set()
    for table in ("tcp", "tcp6"):
        file = Path("/proc/self/net") / table
        for line in file.read_text(encoding="ascii").splitlines()[1:] if file.exists() else ():
            fields = line.split()
            used = {int(address.rpartition(":")[2], 16) for address in fields[1:3]}
            (ours if used & ports else foreign).add(fields[9])
    return ours, foreign
