"""A TLS connection that aiohttp closed twice can still be looked at and ended."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from steersman.transport import HttpListener, ServerResponse, ServerTls
from steersman.transport.connection_ends import abort, unsent_bytes
from steersman.wire import HttpRequest


async def hello(request: HttpRequest) -> ServerResponse:
    return ServerResponse(status=200, body=b"hello")


@pytest.mark.parametrize("closings", [0, 1, 2])
async def test_a_connection_that_was_closed_so_often_is_aborted(new_authority, tmp_path, closings):
    authority = new_authority()
    certificate, key = authority.issue("server", "127.0.0.1").write(tmp_path, "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority.pem.decode())
    tls = ServerTls(certificate_file=certificate, key_file=key)
    async with HttpListener(hello, tls=tls) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=context)
        for _ in range(closings):
            writer.close()
        assert unsent_bytes(writer.transport) == 0
        abort(writer.transport)
        async with asyncio.timeout(60):
            assert await reader.read() == b""
