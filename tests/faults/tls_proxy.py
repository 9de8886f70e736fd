"""A proxy that ends TLS before an API server, as a load balancer does: with a certificate of its own, which may change."""

import asyncio
import ssl
from contextlib import asynccontextmanager


class TlsProxy:
    """``async with TlsProxy(engine, certificate).serve() as proxy``; ``proxy.url`` is the address of the server."""

    def __init__(self, engine, certificate, *, host="127.0.0.1"):
        self._certificate = certificate
        self._host = host
        self._port = 0
        self._target = int(engine.url.rpartition(":")[2])
        self._onwards = ssl.create_default_context(cafile=str(engine.ca_file))
        self._onwards.set_alpn_protocols(["http/1.1"])
        self._server = None
        self._tasks = set()
        self._writers = set()
        #: Connections that have passed the handshake.
        self.accepted = 0
        #: The head of the first request of each connection.
        self.heads = []

    @property
    def url(self):
        return f"https://{f'[{self._host}]' if ':' in self._host else self._host}:{self._port}"

    @asynccontextmanager
    async def serve(self):
        await self._listen()
        try:
            yield self
        finally:
            self._server.close()
            self.cut()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def show(self, certificate):
        """Close every connection, and show another certificate to the next ones."""
        self._certificate = certificate
        self._server.close()
        self.cut()
        await self._listen()

    def cut(self):
        """Close every connection."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _listen(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._certificate)
        context.set_alpn_protocols(["http/1.1"])
        self._server = await asyncio.start_server(
            self._connected, self._host, self._port, ssl=context, reuse_address=True
        )
        self._port = self._server.sockets[0].getsockname()[1]

    def _connected(self, reader, writer):
        self.accepted += 1
        task = asyncio.get_running_loop().create_task(self._carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, reader, writer):
        self._writers.add(writer)
        ends = [writer]
        try:
            there, away = await asyncio.open_connection(
                "127.0.0.1", self._target, ssl=self._onwards, server_hostname="127.0.0.1"
            )
            self._writers.add(away)
            ends.append(away)
            pumps = [
                asyncio.get_running_loop().create_task(work)
                for work in (self._pump(reader, away, seen=self.heads), self._pump(there, writer, seen=None))
            ]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        except OSError:
            return
        finally:
            for end in ends:
                self._writers.discard(end)
                end.transport.abort()

    @staticmethod
    async def _pump(source, sink, *, seen):
        first = seen is not None
        while piece := await source.read(65536):
            if first:
                seen.append(piece.partition(b"\r\n\r\n")[0].decode("latin-1"))
                first = False
            sink.write(piece)
            await sink.drain()
