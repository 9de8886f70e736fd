"""The requests of `bench.devserver`: Executables as a session has them, over TLS with a token, HTTP/1.1."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

GROUP = "usvc-dev.developer.microsoft.com/v1"
PATH = f"/apis/{GROUP}/executables"
JSON = {"Content-Type": "application/json"}
MERGE = {"Content-Type": "application/merge-patch+json"}
#: Requests at a time.
CONCURRENCY = 4
PATIENCE = 60.0


def executable(number: int) -> dict[str, Any]:
    """An Executable of about 1.3 KB: arguments, twelve variables, a probe."""
    probe = {
        "name": "http",
        "type": "HTTP",
        "httpProbe": {"url": f"http://127.0.0.1:{10_000 + number}/healthz"},
        "schedule": {"interval": "5s", "timeout": "2s"},
    }
    return {
        "apiVersion": GROUP,
        "kind": "Executable",
        "metadata": {
            "name": f"api-{number}",
            "labels": {"app": "shop", "tier": "backend"},
            "annotations": {"service-producer": f'[{{"serviceName":"api-{number}"}}]'},
        },
        "spec": {
            "executablePath": "/usr/bin/dotnet",
            "workingDirectory": f"/srv/shop/src/api-{number}",
            "args": ["run", "--no-build", "--project", f"src/api-{number}/api.csproj"],
            "env": _variables(number),
            "ambientEnvironment": {"behavior": "Inherit"},
            "healthProbes": [probe],
        },
    }


def status(number: int, revision: int) -> dict[str, Any]:
    """What a controller writes about a process that runs: about 2 KB."""
    moment = f"2026-01-01T00:{revision // 60 % 60:02}:{revision % 60:02}"
    conditions = [
        {
            "type": kind,
            "status": "True",
            "observedGeneration": 1,
            "lastTransitionTime": f"{moment}Z",
            "reason": "Running",
            "message": "",
        }
        for kind in ("Started", "Healthy", "Ready")
    ]
    result = {"outcome": "Success", "timestamp": f"{moment}.000000Z", "probeName": "http", "reason": f"run {revision}"}
    return {
        "executionID": f"6f1c-{number}",
        "pid": 10_000 + revision,
        "state": "Running",
        "startupTimestamp": "2026-01-01T00:00:00.000000Z",
        "stdOutFile": f"/tmp/session/logs/api-{number}.out",
        "stdErrFile": f"/tmp/session/logs/api-{number}.err",
        "effectiveEnv": _variables(number),
        "effectiveArgs": ["run", "--no-build", "--project", f"src/api-{number}/api.csproj"],
        "healthStatus": "Healthy",
        "healthProbeResults": [result],
        "conditions": conditions,
    }


def _variables(number: int) -> list[dict[str, str]]:
    return [{"name": f"SHOP_SETTING_{each}", "value": f"value {each} of program {number}"} for each in range(12)]


class _Metadata(msgspec.Struct):
    resourceVersion: str  # noqa: N815 - the name on the wire


class _Answer(msgspec.Struct):
    metadata: _Metadata


class Load:
    """Requests to one server."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._revision = 0
        #: The latest resourceVersion of each Executable, which an update of tilt-apiserver needs.
        self._versions: dict[int, str] = {}
        self._expected = 0
        self._seen = asyncio.Event()
        self._watches: list[asyncio.Task[None]] = []

    async def create(self, numbers: range) -> None:
        """Create Executables."""
        await _each(numbers, lambda number: self._write(number, "POST", PATH, executable(number)))

    async def update_status(self, numbers: range) -> None:
        """Replace the status of Executables."""
        self._revision += 1
        await _each(numbers, self._update)

    async def _update(self, number: int) -> None:
        document = executable(number) | {"status": status(number, self._revision)}
        document["metadata"]["resourceVersion"] = self._versions[number]
        await self._write(number, "PUT", f"{PATH}/api-{number}/status", document)

    async def patch_status(self, numbers: range) -> None:
        """Patch the status of Executables: a merge patch of what changes when a probe has run."""
        self._revision += 1
        await _each(numbers, self._patch)

    async def _patch(self, number: int) -> None:
        whole = status(number, self._revision)
        part = {"status": {name: whole[name] for name in ("pid", "healthProbeResults", "conditions")}}
        await self._write(number, "PATCH", f"{PATH}/api-{number}/status", part, MERGE)

    async def open_watches(self, count: int) -> None:
        """Watch all Executables, beginning with the next change."""
        listed = msgspec.json.decode(await self._send("GET", PATH))
        version = listed["metadata"]["resourceVersion"]
        for _ in range(count):
            url = f"{PATH}?watch=true&resourceVersion={version}&timeoutSeconds=3600"
            response = await self._session.get(url)
            response.raise_for_status()
            self._watches.append(asyncio.create_task(self._read(response)))
        # tilt-apiserver sends the objects that exist, whatever the version.
        before = None
        while before != self._expected:
            before = self._expected
            await asyncio.sleep(0.5)

    async def _read(self, response: aiohttp.ClientResponse) -> None:
        try:
            while chunk := await response.content.readany():
                # A frame ends with a newline, and JSON has no other.
                self._expected -= chunk.count(b"\n")
                if self._expected <= 0:
                    self._seen.set()
        finally:
            # A watch that is open and not read would stop every write of tilt-apiserver.
            response.close()

    async def updates_until_seen(self, numbers: range) -> None:
        """Replace the status of Executables, and wait until every watch has all events."""
        self._seen.clear()
        self._expected = len(self._watches) * len(numbers)
        await self.update_status(numbers)
        async with asyncio.timeout(PATIENCE):
            await self._seen.wait()

    async def close_watches(self) -> None:
        """End all watches."""
        for each in self._watches:
            each.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        self._watches.clear()
        # Until tilt-apiserver has noticed, its next write waits for them.
        await asyncio.sleep(1)

    async def _write(self, number: int, method: str, path: str, body: Any, headers: dict[str, str] = JSON) -> None:
        answer = msgspec.json.decode(await self._send(method, path, body, headers), type=_Answer)
        self._versions[number] = answer.metadata.resourceVersion

    async def _send(self, method: str, path: str, body: Any = None, headers: dict[str, str] = JSON) -> bytes:
        data = msgspec.json.encode(body) if body is not None else None
        async with self._session.request(method, path, data=data, headers=headers) as response:
            answer = await response.read()
            if response.status >= 300:
                raise RuntimeError(f"{method} {path} returned {response.status}: {answer[:500]!r}")
            return answer


async def _each(numbers: range, work: Callable[[int], Awaitable[object]]) -> None:
    left = iter(numbers)

    async def worker() -> None:
        for number in left:
            await work(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(CONCURRENCY, len(numbers))):
            group.create_task(worker())


def unverified() -> ssl.SSLContext:
    """TLS without a check of the certificate, which each server makes for itself."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@asynccontextmanager
async def connected(port: int, token: str) -> AsyncGenerator[Load]:
    """The load for a server on this machine."""
    async with aiohttp.ClientSession(
        f"https://127.0.0.1:{port}",
        connector=aiohttp.TCPConnector(ssl=unverified(), limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        headers={
            "Authorization": f"Bearer {token}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "bench",
        },
    ) as session:
        yield Load(session)
