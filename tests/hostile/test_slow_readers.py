"""Clients that ask for much and read nothing, and clients that take every connection: bounded, and others are answered."""

from __future__ import annotations

import asyncio
import socket

import pytest
from hostile.loop_gauge import LoopGauge
from hostile.port import Talk, context_for

from samples.embedded import TABLE, Raw
from steersman.apiserver import ApiServer
from steersman.apiserver.chain import RequestLimits, single_user
from steersman.apiserver.serving import serve
from steersman.transport import HttpListener

MAPS = "/api/v1/namespaces/default/configmaps"
MIB = 1024 * 1024
#: How many clients, and how many MiB each asks for.
READERS, LISTED = 20, 10
ACCEPTED = {
    "JSON": "application/json",
    "YAML": "application/yaml",
    "protobuf": "application/vnd.kubernetes.protobuf",
    "table": TABLE,
    "old table": "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
    "table as YAML": TABLE.replace("json", "yaml", 1),
}


@pytest.fixture(scope="module")
async def listener():
    async with ApiServer(kinds=["v1"], chain=[RequestLimits(), single_user()]) as server:
        raw = Raw(server.handler)
        for number in range(LISTED):
            made = await raw.post(MAPS, {"metadata": {"name": f"m{number}"}, "data": {"a": "x" * MIB}})
            assert made.code == 201
        async with HttpListener(server.handler, grace=0.1) as listener:
            yield listener


@pytest.mark.parametrize("name", ACCEPTED)
async def test_readers_that_read_nothing_cost_a_constant_each(listener, name):
    """The list is encoded object by object as it is read: no client holds a copy of all of it."""
    loop = asyncio.get_running_loop()
    sent = f"GET {MAPS}?includeObject=Object HTTP/1.1\r\nHost: x\r\nAccept: {ACCEPTED[name]}\r\n\r\n".encode()
    clients = [socket.socket() for _ in range(READERS)]
    try:
        async with asyncio.timeout(120), LoopGauge() as gauge:
            for client in clients:
                client.setblocking(False)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                await loop.sock_connect(client, ("127.0.0.1", listener.port))
                await loop.sock_sendall(client, sent)
            for client in clients:
                read = b""
                while len(read) < 2000:  # more than the head
                    read += await loop.sock_recv(client, 2000)
                assert read.startswith(b"HTTP/1.1 200 ")
        # one object as it is stored, encoded, and in buffers; the trees of one or two are computed with
        assert gauge.memory < READERS * 3 * MIB + 30 * MIB
        assert gauge.blocked < 1
    finally:
        for client in clients:
            client.close()


async def test_an_administrator_is_answered_whatever_watches_there_are(tmp_path, monkeypatch):
    """A user may have half of the connections for watches; in the last ones only an administrator is answered."""
    connections = 40
    for module in ("listener", "acceptor"):
        monkeypatch.setattr(f"steersman.transport.{module}.affordable", lambda _: connections)
    watch = f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    get = b"GET /api/v1/namespaces/default HTTP/1.1\r\nHost: x\r\n\r\n"
    talks: list[Talk] = []

    async def status(user: str, sent: bytes) -> int:
        """The status of a request; the connection of a watch stays."""
        talk = await Talk.open(served.port, contexts[user])
        talk.writer.write(sent)
        code, headers, _ = await talk.answer(stream=True)
        if ("Transfer-Encoding", "stream") in headers:
            talks.append(talk)
        else:
            await talk.close()
        return code

    async with serve(ApiServer(kinds=["v1"]), folder=tmp_path) as served, asyncio.timeout(120):
        contexts = {user: context_for(tmp_path, user=user) for user in ("kim", "lee", "jane")}
        contexts["admin"] = context_for(tmp_path, user="admin", groups=("system:masters",))
        try:
            for user, opened in (("kim", 19), ("lee", 19)):
                assert [await status(user, watch) for _ in range(opened)] == [200] * opened
                assert await status(user, watch) == 429
            assert [await status(user, get) for user in ("kim", "lee", "jane")] == [429] * 3
            assert [await status("admin", get) for _ in range(5)] == [200] * 5
            assert await status("admin", watch) == 200
        finally:
            for talk in talks:
                await talk.close()
