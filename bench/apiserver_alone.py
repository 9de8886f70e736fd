"""The embedded server in a process, for the API server's benchmark: time to first response, memory of objects.

Both are measured in fresh interpreters that read modules as byte code, as an installed package does.
``python -m bench.apiserver_alone start`` prints the milliseconds from making a server to its first response, after
importing its package; the server imports the rules of its kinds within that time. ``memory N`` prints bytes of memory and
of the wire for N objects.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
from pathlib import Path

from bench.apiserver_objects import MANY, config_map, config_map_name
from bench.memory import private
from bench.report import BenchmarkFailed
from steersman.apiserver import ApiServer
from steersman.transport.in_process_transport import InProcessTransport
from steersman.wire import HttpRequest

ROOT = Path(__file__).parents[1]
JSON = (("Content-Type", "application/json"),)


async def first_answer() -> float:
    """Seconds from making a server to its first response."""
    began = time.perf_counter()
    async with ApiServer() as server, InProcessTransport(server.handler) as transport:
        async with await transport.send(HttpRequest("GET", "/api/v1/namespaces/default")) as response:
            answer = await response.read()
            seconds = time.perf_counter() - began
        assert response.status == 200, answer
    return seconds


async def memory(count: int) -> tuple[int, int]:
    """Bytes of memory for this many objects, and their bytes on the wire.

    Without history: the server keeps one change of each kind, and the store drops all others before measuring. The
    objects are added to a server that has had objects before, since interpreters and allocators grow once.
    """
    async with ApiServer(history=1) as server:
        await _call(server, "POST", "/api/v1/namespaces", b'{"metadata":{"name":"%b"}}' % MANY.encode())
        path = f"/api/v1/namespaces/{MANY}/configmaps"
        for number in range(100):
            await _call(server, "POST", path, config_map(MANY, number))
        before = await _settled(server)
        for number in range(100, count + 100):
            await _call(server, "POST", path, config_map(MANY, number))
        after = await _settled(server)
        size = 0
        for number in range(100, count + 100):
            size += len(await _call(server, "GET", f"{path}/{config_map_name(number)}"))
    return after - before, size


async def _call(server: ApiServer, method: str, path: str, body: bytes | None = None) -> bytes:
    reply = await server.handle(HttpRequest(method, path, (), JSON if body else (), body))
    assert isinstance(reply.body, bytes)
    assert reply.status < 300, reply.body
    return reply.body


async def _settled(server: ApiServer) -> int:
    """The private memory of this process, after dropping history and garbage."""
    revision = await server.storage.revision()
    await server.feed.wait_for(revision, 10)
    await server.storage.compact(revision)
    gc.collect()
    return private()


def in_fresh_process(*arguments: str) -> list[float]:
    """The numbers that this program prints in a fresh process."""
    command = [sys.executable, "-m", "bench.apiserver_alone", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise BenchmarkFailed(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
    return [float(word) for word in done.stdout.split()]


if __name__ == "__main__":
    if sys.argv[1] == "start":
        print(asyncio.run(first_answer()) * 1000)
    else:
        print(*asyncio.run(memory(int(sys.argv[2]))))
