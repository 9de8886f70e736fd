"""A fresh engine with Sites, and an external view of it that is the same for every contender.

The view is a watch of the Sites, read with aiohttp and msgspec alone, and the counters of the API server: a write is
what the server counted as one, by any client and with or without effect.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import yaml

from bench.contenders.steersman_sites import Site, SiteSpec
from steersman import Client, ObjectMeta
from steersman.testing import Engine

NAMESPACE = "default"
SITES = f"/apis/bench.example.com/v1/namespaces/{NAMESPACE}/sites"
WRITES = {"APPLY", "CREATE", "DELETE", "DELETECOLLECTION", "PATCH", "POST", "PUT", "UPDATE"}
#: The resources that contenders could write; the API server writes leases and its own configuration itself.
RESOURCES = {"configmaps", "events", "sites"}
_COUNTER = re.compile(r"^apiserver_request_total\{(?P<labels>.*)\} (?P<value>\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class _Metadata(msgspec.Struct):
    name: str = ""
    generation: int = 0


class _Spec(msgspec.Struct):
    replicas: int = 0


class _Status(msgspec.Struct, rename="camel"):
    observed_generation: int = 0
    ready_replicas: int = 0


class _Object(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def is_converged(self) -> bool:
        observed = self.status.observed_generation == self.metadata.generation
        return observed and self.status.ready_replicas == self.spec.replicas


class _Frame(msgspec.Struct):
    type: str
    object: _Object


class World:
    """The Sites of one engine; made by `fresh_world`."""

    def __init__(self, session: aiohttp.ClientSession, count: int) -> None:
        self._session = session
        self._count = count
        self._converged: set[str] = set()
        self._all = asyncio.Event()
        self._finished = 0.0
        self._awaited: tuple[str, int, asyncio.Future[float]] | None = None

    async def watch(self, resource_version: str) -> None:
        """Follow the Sites until cancelled."""
        decode = msgspec.json.Decoder(_Frame).decode
        query = {"watch": "true", "resourceVersion": resource_version}
        pending = b""
        async with self._session.get(SITES, params=query) as response:
            response.raise_for_status()
            async for chunk in response.content.iter_any():
                now = time.perf_counter()
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    self._see(decode(line).object, now)
        raise RuntimeError("the API server ended the watch of the sites")

    def _see(self, site: _Object, now: float) -> None:
        name = site.metadata.name
        if not site.is_converged:
            self._converged.discard(name)
            return
        self._converged.add(name)
        if len(self._converged) == self._count and not self._all.is_set():
            self._finished = now
            self._all.set()
        if self._awaited is not None:
            wanted, replicas, seen = self._awaited
            if name == wanted and site.spec.replicas == replicas and not seen.done():
                seen.set_result(now)

    async def converged(self) -> float:
        """Wait until every status is right at the same time; returns when that was."""
        await self._all.wait()
        return self._finished

    @property
    def progress(self) -> int:
        """How many statuses are right."""
        return len(self._converged)

    async def change(self, number: int, replicas: int) -> float:
        """Change one site; returns the seconds from sending the change until the watch shows its status."""
        seen: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._awaited = (site_name(number), replicas, seen)
        body = msgspec.json.encode({"spec": {"replicas": replicas, "message": f"now {replicas}"}})
        headers = {"Content-Type": "application/merge-patch+json"}
        started = time.perf_counter()
        async with self._session.patch(f"{SITES}/{site_name(number)}", data=body, headers=headers) as response:
            await response.read()
            response.raise_for_status()
        async with asyncio.timeout(60):
            return await seen - started

    async def writes(self) -> Counter[str]:
        """The writes counted by the API server, by verb and resource."""
        async with self._session.get("/metrics") as response:
            response.raise_for_status()
            text = await response.text()
        found: Counter[str] = Counter()
        for counter in _COUNTER.finditer(text):
            labels = dict(_LABEL.findall(counter["labels"]))
            if labels["verb"] in WRITES and labels["resource"] in RESOURCES:
                what = "/".join(filter(None, (labels["resource"], labels["subresource"])))
                found[f"{labels['verb']} {what}"] += int(float(counter["value"]))
        return found


def site_name(number: int) -> str:
    return f"site-{number:05d}"


async def _fill(client: Client, count: int) -> str:
    """Create the sites; returns the version of a list with all of them."""
    await client.install(Site)
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            spec = SiteSpec(image="nginx:1.27", replicas=number % 5 + 1, message=f"hello from {number}")
            await client.create(Site(metadata=ObjectMeta(name=site_name(number), namespace=NAMESPACE), spec=spec))

    async with asyncio.TaskGroup() as group:
        for _ in range(16):
            group.create_task(worker())
    listed = await client.list(Site, namespace=NAMESPACE)
    assert len(listed.items) == count
    return listed.resource_version


def contender_environment(engine: Engine, folder: Path) -> dict[str, str]:
    """The environment of a contender: all use the same credentials, since the server's work depends on them."""
    kubeconfig = folder / "kubeconfig"
    document = yaml.safe_load(engine.kubeconfig.read_text(encoding="utf-8"))
    kubeconfig.write_text(yaml.safe_dump(document | {"current-context": "admin-token"}), encoding="utf-8")
    return {
        "KUBECONFIG": str(kubeconfig),
        "BENCH_SERVER": engine.url,
        "BENCH_TOKEN": engine.admin_token,
        "BENCH_CA": str(engine.ca_file),
    }


@asynccontextmanager
async def fresh_world(count: int, folder: Path) -> AsyncGenerator[tuple[World, dict[str, str]]]:
    """A new engine with this many unreconciled Sites, and the environment of a contender."""
    async with Engine.start() as engine:
        async with engine.client(field_manager="bench") as client:
            version = await _fill(client, count)
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=engine.ca_file))
        headers = {"Authorization": f"Bearer {engine.admin_token}"}
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(engine.url, connector=connector, headers=headers, timeout=timeout) as session:
            world = World(session, count)
            # In one group with the block: if the watch ends, the measurement fails instead of waiting forever.
            try:
                async with asyncio.TaskGroup() as group:
                    watch = group.create_task(world.watch(version))
                    yield world, contender_environment(engine, folder)
                    watch.cancel()
            except ExceptionGroup as failures:
                raise failures.exceptions[0] from None
