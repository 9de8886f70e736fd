"""The load of the API server's benchmark: a separate process, the same for both servers.

``python -m bench.apiserver_load KUBECONFIG`` reads commands from its input, one JSON line each, and answers each with a
line when it is done. Requests go over TLS with the client certificate of the kubeconfig, HTTP/1.1 and persistent
connections, with bare aiohttp, as many at a time as the command says. Responses are read completely and not decoded.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import aiohttp
import msgspec
import yaml

from bench.apiserver_objects import (
    NAMESPACE,
    config_map,
    config_map_name,
    deployment,
    deployment_name,
    new_pod,
    pod_name,
    pod_status,
)

CORE = "/api/v1/namespaces"
JSON = {"Content-Type": "application/json"}
MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
#: How many watches to open at a time: handshakes cost both sides and are not measured.
OPENING = 16
#: How long to wait for an event.
PATIENCE = 60.0

Operation = Literal[
    "namespace",
    "create",
    "create pod",
    "update",
    "status patch",
    "apply new",
    "apply same",
    "apply other",
    "get",
    "list",
    "replay",
    "watch",
    "write",
]


class Command(msgspec.Struct, kw_only=True):
    """What to do, with which objects, how often."""

    do: Operation
    namespace: str = NAMESPACE
    first: int = 0
    count: int = 1
    concurrency: int = 8
    #: Makes the written content differ from the stored one.
    revision: int = 0
    padding: int = 0
    #: The start version of a watch.
    version: str = ""


class Done(msgspec.Struct, kw_only=True):
    """The duration of a command from its first request to its last response, and the bytes of all responses."""

    seconds: float
    size: int = 0
    #: The resourceVersion of a list.
    version: str = ""
    #: Seconds from sending each write until the last watcher had its event.
    delays: list[float] = []


class Load:
    """Requests to one server."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._watchers = Watchers(session)

    async def do(self, command: Command) -> Done:
        """Run a command."""
        match command.do:
            case "watch":
                return await self._watchers.open(command.count, command.version)
            case "write":
                return await self._watchers.follow(command)
            case "replay":
                return await self._watchers.replay(command)
            case _:
                return await self._repeat(command)

    async def _repeat(self, command: Command) -> Done:
        request = getattr(self, f"_{command.do.replace(' ', '_')}")
        numbers = iter(range(command.first, command.first + command.count))
        size, last = 0, b""

        async def worker() -> None:
            nonlocal size, last
            for number in numbers:
                last = await request(command, number)
                size += len(last)

        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(min(command.concurrency, command.count)):
                group.create_task(worker())
        seconds = time.perf_counter() - started
        version = msgspec.json.decode(last)["metadata"]["resourceVersion"] if command.do == "list" else ""
        return Done(seconds=seconds, size=size, version=version)

    async def _send(self, method: str, path: str, body: bytes | None = None, headers: Any = JSON) -> bytes:
        async with self._session.request(method, path, data=body, headers=headers) as response:
            answer = await response.read()
            if response.status >= 300:
                raise RuntimeError(f"{method} {path} returned {response.status}: {answer[:500]!r}")
            return answer

    def _namespace(self, command: Command, _: int) -> Awaitable[bytes]:
        return self._send("POST", CORE, msgspec.json.encode({"metadata": {"name": command.namespace}}))

    def _create(self, command: Command, number: int) -> Awaitable[bytes]:
        body = config_map(command.namespace, number, padding=command.padding)
        return self._send("POST", f"{CORE}/{command.namespace}/configmaps", body)

    def _create_pod(self, command: Command, number: int) -> Awaitable[bytes]:
        return self._send("POST", f"{CORE}/{command.namespace}/pods", new_pod(number))

    def _update(self, command: Command, number: int) -> Awaitable[bytes]:
        body = config_map(command.namespace, number, revision=command.revision)
        return self._send("PUT", f"{CORE}/{command.namespace}/configmaps/{config_map_name(number)}", body)

    def _status_patch(self, command: Command, number: int) -> Awaitable[bytes]:
        body = pod_status(number, command.revision)
        return self._send("PATCH", f"{CORE}/{command.namespace}/pods/{pod_name(number)}/status", body, MERGE)

    def _apply_new(self, command: Command, number: int) -> Awaitable[bytes]:
        path = f"/apis/apps/v1/namespaces/{command.namespace}/deployments/{deployment_name(number)}"
        body = deployment(command.namespace, number, revision=command.revision)
        return self._send("PATCH", f"{path}?fieldManager=bench&force=true", body, APPLY)

    #: The same request; its effect depends on the stored object.
    _apply_same = _apply_other = _apply_new

    def _get(self, command: Command, number: int) -> Awaitable[bytes]:
        return self._send("GET", f"{CORE}/{command.namespace}/configmaps/{config_map_name(number)}", headers=None)

    def _list(self, command: Command, _: int) -> Awaitable[bytes]:
        return self._send("GET", f"{CORE}/{command.namespace}/configmaps", headers=None)


class Watchers:
    """Watches on the ConfigMaps of a namespace, each with its own connection."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting = 0
        self._all_have_it = asyncio.Event()

    async def open(self, count: int, version: str) -> Done:
        """Open this many, and read them from then on."""
        started = time.perf_counter()
        turns = asyncio.Semaphore(OPENING)

        async def one() -> None:
            async with turns:
                response = await self._session.get(_watch_path(NAMESPACE, version))
                response.raise_for_status()
            self._tasks.append(asyncio.create_task(self._read(response)))

        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(one())
        return Done(seconds=time.perf_counter() - started)

    async def _read(self, response: aiohttp.ClientResponse) -> None:
        while chunk := await response.content.readany():
            # A frame ends with a newline, and JSON contains no other.
            self._waiting -= chunk.count(b"\n")
            if not self._waiting:
                self._all_have_it.set()

    async def follow(self, command: Command) -> Done:
        """Write repeatedly, each time after all watchers have seen the previous write."""
        path = f"{CORE}/{NAMESPACE}/configmaps/{config_map_name(command.first)}"
        delays: list[float] = []
        began = time.perf_counter()
        for number in range(command.count):
            body = config_map(NAMESPACE, command.first, revision=command.revision + number)
            self._waiting = len(self._tasks)
            self._all_have_it.clear()
            started = time.perf_counter()
            async with self._session.put(path, data=body, headers=JSON) as response:
                response.raise_for_status()
                async with asyncio.timeout(PATIENCE):
                    await self._all_have_it.wait()
                delays.append(time.perf_counter() - started)
                await response.read()
        return Done(seconds=time.perf_counter() - began, delays=delays)

    async def replay(self, command: Command) -> Done:
        """Read stored events: a watch from an old version replays them without waiting."""
        started = time.perf_counter()
        seen = size = 0
        async with self._session.get(_watch_path(command.namespace, command.version)) as response:
            response.raise_for_status()
            async with asyncio.timeout(PATIENCE):
                while seen < command.count:
                    chunk = await response.content.readany()
                    seen += chunk.count(b"\n")
                    size += len(chunk)
        return Done(seconds=time.perf_counter() - started, size=size)


def _watch_path(namespace: str, version: str) -> str:
    return f"{CORE}/{namespace}/configmaps?watch=true&resourceVersion={version}&timeoutSeconds=3600"


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncGenerator[Load]:
    """The load for the server of a kubeconfig."""
    url, context = _read(kubeconfig)
    async with aiohttp.ClientSession(
        url,
        connector=aiohttp.TCPConnector(ssl=context, limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        # Compression makes no sense on a loopback interface.
        headers={"Accept": "application/json", "Accept-Encoding": "identity"},
    ) as session:
        yield Load(session)


def _read(kubeconfig: Path) -> tuple[str, ssl.SSLContext]:
    config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=_data(cluster, "certificate-authority").decode())
    with tempfile.TemporaryDirectory() as folder:
        for name in ("client-certificate", "client-key"):
            Path(folder, name).write_bytes(_data(user, name))
        context.load_cert_chain(Path(folder, "client-certificate"), Path(folder, "client-key"))
    return cluster["server"], context


def _data(holder: dict[str, str], name: str) -> bytes:
    if (embedded := holder.get(f"{name}-data")) is not None:
        return base64.b64decode(embedded)
    return Path(holder[name]).read_bytes()


async def serve_commands(kubeconfig: Path, read_line: Callable[[], bytes]) -> None:
    decode = msgspec.json.Decoder(Command).decode
    async with connected(kubeconfig) as load:
        while line := await asyncio.to_thread(read_line):
            done = await load.do(decode(line))
            sys.stdout.buffer.write(msgspec.json.encode(done) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(serve_commands(Path(sys.argv[1]), sys.stdin.buffer.readline))
