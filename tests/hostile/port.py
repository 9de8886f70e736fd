"""A client that sends any bytes over TLS, and reads answers without believing them."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path
from typing import Self

from steersman.apiserver.serving import Authority
from steersman.wire import HttpRequest

Answer = tuple[int, tuple[tuple[str, str], ...], bytes]


def context_for(folder: Path, *, user: str = "", groups: tuple[str, ...] = ()) -> ssl.SSLContext:
    """TLS to a server whose authority is in a folder; as a user of that authority, or without a certificate."""
    authority = Authority(folder)
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    if user:
        credentials = authority.client(user, groups=groups)
        file = folder / f"{user}.pem"
        file.write_bytes(credentials.certificate + credentials.key)
        context.load_cert_chain(file)
    return context


def printed(request: HttpRequest) -> bytes:
    """A request as bytes, exactly as it says."""
    lines = [f"{request.method} {request.target} HTTP/1.1"]
    if request.header("Host") is None:
        lines.append("Host: 127.0.0.1")
    lines += [f"{name}: {value}" for name, value in request.headers]
    body = request.body or b""
    if body or request.method in {"POST", "PUT", "PATCH"}:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


class Talk:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, port: int, context: ssl.SSLContext | None) -> Talk:
        name = "127.0.0.1" if context is not None else None
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name, limit=2**24))

    async def answer(self, method: str = "GET", *, stream: bool = False) -> Answer:
        """Read one answer; of a stream the first piece at most."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split(" ")[1])
        if status == 100:
            return await self.answer(method, stream=stream)
        headers = tuple((name, value.strip()) for name, _, value in (line.partition(":") for line in head[1:] if line))
        if head[0].startswith("HTTP/1.0"):
            headers = (*headers, ("Connection", "close"))
        fields = {name.lower(): value for name, value in headers}
        if method == "HEAD" or status in {204, 304}:
            return status, headers, b""
        if fields.get("transfer-encoding") == "chunked":
            if stream:
                return status, (("Transfer-Encoding", "stream"), *headers), b""
            return status, headers, await self._chunks()
        if "content-length" in fields:
            return status, headers, await self.reader.readexactly(int(fields["content-length"]))
        return status, headers, await self.reader.read()

    async def _chunks(self) -> bytes:
        whole = b""
        while size := int(await self.reader.readline(), 16):
            whole += await self.reader.readexactly(size)
            await self.reader.readline()
        await self.reader.readline()
        return whole

    async def close(self) -> None:
        self.writer.transport.abort()
        with contextlib.suppress(OSError, ssl.SSLError):
            await self.writer.wait_closed()


class Port:
    """Sends requests one after the other, over one connection for as long as that is good."""

    def __init__(self, port: int, context: ssl.SSLContext | None) -> None:
        self._port = port
        self._context = context
        self._talk: Talk | None = None

    @classmethod
    def as_admin(cls, port: int, folder: Path) -> Port:
        return cls(port, context_for(folder, user="admin", groups=("system:masters",)))

    async def __aenter__(self) -> Self:
        await self.ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ready(self) -> None:
        """Have a connection that answers."""
        status, _, _ = await self.send(HttpRequest("GET", "/healthz"))
        assert status == 200

    async def close(self) -> None:
        talk, self._talk = self._talk, None
        if talk is not None:
            await talk.close()

    async def send(self, request: HttpRequest) -> Answer:
        """Send a request; on a new connection if the old one was closed."""
        again = self._talk is not None
        if self._talk is None:
            self._talk = await Talk.open(self._port, self._context)
        talk = self._talk
        is_watch = any(name in {"watch", "sendInitialEvents"} for name, _ in request.query) or "/watch/" in request.path
        try:
            async with asyncio.timeout(60):
                talk.writer.write(printed(request))
                with contextlib.suppress(ConnectionError):
                    # who refuses a request need not read it
                    await talk.writer.drain()
                answer = await talk.answer(request.method, stream=is_watch)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            await self.close()
            if again and not getattr(error, "partial", b""):
                return await self.send(request)
            raise
        closes = any(name.lower() == "connection" and value.lower() == "close" for name, value in answer[1])
        if closes or any(value == "stream" for _, value in answer[1]):
            await self.close()
        return answer
