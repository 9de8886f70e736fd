"""Guarantee 6, the last moment: between asking whether this process leads and the first byte nobody else runs."""

import asyncio
import socket
import threading
import time  # noqa: TID251 - two threads compare when something happened
from contextlib import contextmanager

import pytest

from steersman import aio
from steersman.errors import DeadlineExceeded, NotLeading
from steersman.manager.fence import Fence, FencedTransport
from steersman.transport import HttpTransport
from steersman.wire import Request

BODY = b"{}"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@contextmanager
def server():
    """A server in a thread of its own, which no blocked loop delays: its address, and when it heard something."""
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            connection, _ = listening.accept()
            with connection:
                while piece := connection.recv(65536):
                    heard.append((time.monotonic(), piece))
                    connection.sendall(ANSWER)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", heard


def block(seconds):
    time.sleep(seconds)  # what a reconciler should not do, and does


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_nobody_runs_between_the_check_and_the_first_byte(method):
    """A neighbour that blocks the loop just then, or a process that is stopped, must not let a checked write leave late."""
    checked = []
    with server() as (address, heard):
        async with HttpTransport(address) as transport:

            def check():
                checked.append(time.monotonic())
                asyncio.get_running_loop().call_soon(block, 0.5)

            body = BODY if method == "PUT" else None
            async with await transport.send(Request(method, "/api", body=body), before_send=check) as response:
                assert await response.read() == BODY
    assert len(checked) == 1
    assert heard[0][0] - checked[0] < 0.4


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_a_loop_that_was_blocked_past_the_deadline_sends_nothing(method):
    """The term ends while a neighbour blocks: the write has left before, or is refused."""
    with server() as (address, heard):
        async with HttpTransport(address) as transport:
            # a connection that is there already: nothing but the neighbour stands between
            async with await transport.send(Request("GET", "/api")) as response:
                await response.read()
            fence = Fence(aio.boottime() + 0.3, name="ship")
            body = BODY if method == "PUT" else None
            began = time.monotonic()
            # it runs in the first pause that the write makes, wherever that is
            asyncio.get_running_loop().call_soon(block, 0.5)
            refused: Exception | None = None
            try:
                write = Request(method, "/api/v1/namespaces/a/configmaps/b", body=body)
                async with await FencedTransport(transport, fence).send(write):
                    pass  # it left before, and was answered
            except (NotLeading, DeadlineExceeded) as error:
                refused = error
            late = [piece for moment, piece in heard if moment - began > 0.3]
            assert late == []
            assert (len(heard) == 1) == isinstance(refused, NotLeading)
            if isinstance(refused, NotLeading):
                assert fence.settled(15.0)
