"""Connections of the proxy and of probes reach the processes of a service, at either loopback address, and no other program."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from contextlib import asynccontextmanager

import pytest
from workloads.test_proxies import LOCAL, ask, endpoint

from samples.eventually import eventually
from samples.ports import free_port
from steersman.aio import Supervisor
from steersman.workloads.probes import HttpCheck, RealProber, TcpCheck, Verdict
from steersman.workloads.processes import ZygoteRunner
from steersman.workloads.proxies import Forwarding, Listeners, RelayProxy
from steersman.workloads.proxies.relay.listeners import SocketQueries

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux says who listens")

#: A parent whose child listens, as with npm and Vite: the child has the socket, not the parent.
SERVER = """
import os, socket, sys
if os.fork():
    os.wait()
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listener = socket.socket(family)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((sys.argv[1], int(sys.argv[2])))
listener.listen()
print("listens", flush=True)
while True:
    peer, _ = listener.accept()
    peer.recv(1000)
    peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
    peer.close()
"""


@asynccontextmanager
async def service(address: str, port: int):
    """A process whose child answers at an address; gives the pid of the parent."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVER, address, str(port)), stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"listens\n"
        yield process.pid
    finally:
        os.killpg(process.pid, 9)
        await process.wait()


@pytest.fixture(params=["127.0.0.1", "::1"])
def places(request):
    """The loopback address of the service, and the other one."""
    return (request.param, *({"127.0.0.1", "::1"} - {request.param}))


async def test_a_connection_reaches_the_service_at_either_address_and_no_other_program(places):
    """Rule: with another program at the other address, the proxy still finds the service."""
    own, other = places
    published, behind = free_port(), free_port()
    async with (
        RelayProxy() as proxy,
        endpoint(name=b"another", address=other, port=behind),
        service(own, behind) as pid,
    ):
        await proxy.keep("web", Forwarding(LOCAL, published, (("127.0.0.1", behind),), (pid,)))
        for _ in range(3):
            assert (await ask(published)).startswith(b"HTTP/1.1 200")


async def test_a_program_that_takes_the_port_of_a_service_gets_no_connection():
    """Rule: a connection waits for the service; the status names the reason."""
    published, behind = free_port(), free_port()
    async with RelayProxy() as proxy:
        async with service("127.0.0.1", behind) as pid:
            await proxy.keep("web", Forwarding(LOCAL, published, (("127.0.0.1", behind),), (pid,)))
            assert await ask(published)
        async with endpoint(name=b"another", port=behind), Supervisor() as tasks:
            early = tasks.start(ask(published), name="early")
            refusal = f"another program listens at 127.0.0.1:{behind}, and not the service"
            await eventually(lambda: proxy.state("web").refusal == refusal)
            async with service("::1", behind) as later:
                await proxy.keep("web", Forwarding(LOCAL, published, (("127.0.0.1", behind),), (later,)))
                assert (await early).startswith(b"HTTP/1.1 200")


def test_the_kernel_and_its_files_name_the_same_listener():
    """Rule: without sock_diag, /proc/net has the answer."""
    asked, read = Listeners(), Listeners()
    queries = SocketQueries.open()
    assert queries is not None, "this kernel has sock_diag"
    queries.close()
    read.close()
    with socket.create_server(("127.0.0.1", 0)) as first, socket.socket(socket.AF_INET6) as second:
        second.bind(("::1", 0))
        second.listen()
        for listener, address in ((first, "127.0.0.1"), (second, "::1")):
            port = listener.getsockname()[1]
            for each in (asked, read):
                found = each.find((os.getpid(),), "127.0.0.1", port)
                assert found is not None
                assert (found.address, found.inode) == (address, os.fstat(listener.fileno()).st_ino)
                assert each.at(({"127.0.0.1", "::1"} - {address}).pop(), port) is None
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as both:
        for each in (asked, read):
            for address in ("127.0.0.1", "::1"):
                found = each.at(address, both.getsockname()[1])
                assert found is not None
                assert found.inode == os.fstat(both.fileno()).st_ino
    asked.close()


def test_a_late_answer_of_the_kernel_is_not_that_of_the_next_query():
    """Rule: a connection never goes to the socket that an earlier query asked for."""
    queries = SocketQueries.open()
    assert queries is not None
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        # The answer of this one stays unread.
        queries.send(*first.getsockname())
        found = queries.find(*second.getsockname())
        assert found is not None
        assert found.inode == os.fstat(second.fileno()).st_ino
    queries.close()


@pytest.fixture
async def prober():
    async with ZygoteRunner() as processes, RealProber(processes) as real:
        yield real


async def verdict(prober, check) -> Verdict:
    found = asyncio.get_running_loop().create_future()
    prober.start(check, 30.0, found.set_result)
    return await found


async def test_a_check_reaches_the_service_at_either_address_and_no_other_program(prober, places):
    """Rule: a server of another program at the port does not make a service healthy."""
    own, other = places
    port = free_port()
    async with endpoint(address=other, port=port):
        async with service(own, port) as pid:
            checks = TcpCheck("127.0.0.1", port, pid), HttpCheck(f"http://localhost:{port}/", (), pid)
            for check in checks:
                assert await verdict(prober, check) == Verdict(succeeded=True)
        for check in checks:
            failed = await verdict(prober, check)
            assert not failed.succeeded
            assert failed.reason.startswith(f"port {port} at {other} belongs to ")
            assert failed.reason.endswith(f"pid {os.getpid()}, and not to the service")
    assert (await verdict(prober, checks[0])).reason == f"nothing listens at port {port}"
