"""Guarantee 6, the last moment: between asking whether this process leads and the first byte no other code runs."""

import asyncio
import socket
import threading
import time  # noqa: TID251 - blocks the loop
from contextlib import contextmanager

import pytest

from steersman import aio
from steersman.errors import DeadlineExceeded, NotLeading
from steersman.manager.fence import Fence, FencedTransport
from steersman.transport import HttpTransport
from steersman.wire import HttpRequest

BODY = b"{}"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@contextmanager
def server():
    """A server in a thread of its own, which no blocked loop delays: its address, and what it heard."""
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            connection, _ = listening.accept()
            with connection:
                while piece := connection.recv(65536):
                    heard.append(piece)
                    connection.sendall(ANSWER)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", heard


def block(heard, count, seconds):
    """What a reconciler should not do: whether the server heard so many pieces meanwhile."""
    end = time.monotonic() + seconds
    while len(heard) < count and time.monotonic() < end:
        time.sleep(0.01)
    return len(heard) >= count


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_no_other_code_runs_between_the_check_and_the_first_byte(method):
    """A neighbor that blocks the loop just then, or a process that is stopped, must not let a checked write leave late."""
    checked, left = [], []
    with server() as (address, heard):
        async with HttpTransport(address) as transport:

            def check():
                checked.append(len(heard))
                asyncio.get_running_loop().call_soon(lambda: left.append(block(heard, 1, 10.0)))

            body = BODY if method == "PUT" else None
            async with await transport.send(HttpRequest(method, "/api", body=body), before_send=check) as response:
                assert await response.read() == BODY
    assert checked == [0]
    assert left == [True], "the write left after the block"


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_a_loop_that_was_blocked_past_the_deadline_sends_nothing(method):
    """The term ends while a neighbor blocks: the write has left before, or is refused."""
    with server() as (address, heard):
        async with HttpTransport(address) as transport:
            # a connection that is there already: nothing but the neighbor stands between
            async with await transport.send(HttpRequest("GET", "/api")) as response:
                await response.read()
            fence = Fence(aio.boottime() + 0.3, name="ship")
            body = BODY if method == "PUT" else None
            left = []
            # it runs in the first pause that the write makes, wherever that is
            asyncio.get_running_loop().call_soon(lambda: left.append(block(heard, 2, 2.0)))
            refused: Exception | None = None
            try:
                write = HttpRequest(method, "/api/v1/namespaces/a/configmaps/b", body=body)
                async with await FencedTransport(transport, fence).send(write):
                    pass  # it left before, and was answered
            except (NotLeading, DeadlineExceeded) as error:
                refused = error
            assert len(heard) == 1 or left == [True], "the write left after the deadline"
            assert (len(heard) == 1) == isinstance(refused, NotLeading)
            if isinstance(refused, NotLeading):
                assert fence.settled(15.0)
