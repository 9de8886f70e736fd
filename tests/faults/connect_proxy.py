"""An HTTP proxy that opens tunnels by CONNECT, and refuses, drops or forgets them as a test says."""

import asyncio
import base64
from contextlib import asynccontextmanager


class ConnectProxy:
    """``async with ConnectProxy().serve() as proxy``: ``proxy.url`` is a `proxy-url`."""

    def __init__(self, *, idle=None, password=""):
        #: Tunnels over which nothing went for so many seconds are closed.
        self.idle = idle
        #: What every CONNECT is answered, in place of a tunnel: ``"502 Bad Gateway"``.
        self.refusal = ""
        self._password = password
        self._tasks = set()
        self._writers = set()
        self._port = 0
        #: What the proxy resolves by itself.
        self.names = {}
        #: The targets of the tunnels that were opened, and the answers to those that were not.
        self.opened = []
        self.refused = []
        self.closed_idle = 0

    @property
    def url(self):
        return f"http://{f'user:{self._password}@' if self._password else ''}127.0.0.1:{self._port}"

    @asynccontextmanager
    async def serve(self):
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.cut()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self):
        """Close every tunnel."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    def _connected(self, reader, writer):
        task = asyncio.get_running_loop().create_task(self._tunnel(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tunnel(self, reader, writer):
        self._writers.add(writer)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            if refusal := self._refusal(head):
                self.refused.append(refusal)
                writer.write(f"HTTP/1.1 {refusal}\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
                return
            target = head.split(" ", 2)[1]
            host, _, port = target.rpartition(":")
            self.opened.append(target)
            there, away = await asyncio.open_connection(self.names.get(host, host.strip("[]")), int(port))
            self._writers.add(away)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._carry((reader, away), (there, writer))
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.transport.abort()
            self._writers.discard(writer)

    def _refusal(self, head):
        expected = base64.b64encode(f"user:{self._password}".encode()).decode()
        if self._password and f"Proxy-Authorization: Basic {expected}" not in head:
            return "407 Proxy Authentication Required"
        return self.refusal

    async def _carry(self, *ways):
        loop = asyncio.get_running_loop()
        pieces = 0

        async def pump(source, sink):
            nonlocal pieces
            while piece := await source.read(65536):
                pieces += 1
                sink.write(piece)
                await sink.drain()

        async def idle():
            # in steps: a loop that stood still has not yet read what came meanwhile
            silence = 0.0
            while self.idle is None or silence < self.idle:
                before = pieces
                await asyncio.sleep(0.1)
                silence = silence + 0.1 if pieces == before else 0.0
            self.closed_idle += 1

        tasks = [loop.create_task(work) for work in (*(pump(*way) for way in ways), idle())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for _, sink in ways:
                sink.transport.abort()
                self._writers.discard(sink)
