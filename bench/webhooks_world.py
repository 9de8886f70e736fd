"""One engine with a kind in two versions, and two programs that serve the same webhooks for it.

Each program has a namespace, and the API server calls only its webhooks there. Conversion is a setting of the kind, so
the benchmark sets it to one program after the other. The API server keeps no watch cache: it would convert each object
once and then answer every list from memory.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.apiserver_subjects import cpu_clock
from bench.contenders.preparing import BENCH, PROGRAMS, go_program
from bench.contenders.steersman_shops import OldShop, Shop, manager, shop_checks, shop_defaults
from bench.controller_process import ControllerProcess, running
from bench.report import BenchmarkFailed
from bench.sites_world import contender_environment
from steersman import Client, ObjectMeta
from steersman.kinds.core_v1 import Namespace
from steersman.objects import Kind, Unstructured
from steersman.testing import Engine
from steersman.transport import CertificateIssuer
from steersman.webhooks import WebhookEndpoint, WebhookRegistration

OURS, GO = "steersman", "controller-runtime"
#: The namespace of the objects that are only converted.
MANY = "many"
_PAGE = 500
_PATIENCE = 60.0
_DEFINITION = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A program that serves webhooks; its namespace has its name."""

    name: str
    address: str
    process: ControllerProcess

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        return time.clock_gettime(cpu_clock(self.process.pid))


class ShopWorld:
    """The engine, the kind and both programs; made by `shop_world`."""

    def __init__(self, session: aiohttp.ClientSession, client: Client, authority: bytes, served: tuple[Served, ...]):
        self._session = session
        self._client = client
        self._authority = authority
        self.served = served

    async def call(self, *, defaults: bool) -> None:
        """Let the API server call the checks of all programs, and with ``defaults`` their defaults too."""
        hooks = [shop_defaults, shop_checks] if defaults else [shop_checks]
        for each in self.served:
            registration = WebhookRegistration(
                hooks, WebhookEndpoint(), name=each.name, address=each.address, ca_bundle=self._authority
            )
            for tree in registration.configurations():
                selector = {"matchLabels": {"kubernetes.io/metadata.name": each.name}}
                for webhook in tree["webhooks"]:
                    webhook["namespaceSelector"] = selector
                await self._client.apply(Unstructured(tree), force=True)
            await _until(lambda each=each: self._calls(each, defaults=defaults), f"the API server calls {each.name}")

    async def _calls(self, served: Served, *, defaults: bool) -> bool:
        status, _ = await self._post(served.name, shop("probe", replicas=99), dry_run=True)
        if status != 422:
            return False
        status, answer = await self._post(served.name, shop("probe"), dry_run=True)
        return status == 201 and ("image" in answer["spec"]) == defaults

    async def create(self, namespace: str, prefix: str, count: int, *, at_once: int = 1) -> list[float]:
        """Create shops; returns the seconds that each took."""
        seconds: list[float] = []
        numbers = iter(range(count))

        async def worker() -> None:
            for number in numbers:
                body = shop(f"{prefix}-{number:05d}", replicas=2 + number % 40)
                began = time.perf_counter()
                status, answer = await self._post(namespace, body)
                seconds.append(time.perf_counter() - began)
                if status != 201:
                    raise BenchmarkFailed(f"cannot create a shop in {namespace}: {answer}")

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(worker())
        return seconds

    async def convert_with(self, served: Served) -> None:
        """Let the API server convert by this program."""
        # Without a webhook the server changes only the version: the change of programs is visible.
        await self._set_conversion({"strategy": "None"})
        await _until(lambda: self._converts(wanted=False), "conversion is off")
        registration = WebhookRegistration(
            manager.webhooks.hooks,
            WebhookEndpoint(),
            name=served.name,
            address=served.address,
            ca_bundle=self._authority,
        )
        await self._set_conversion(registration.conversion())
        await _until(lambda: self._converts(wanted=True), f"the API server converts with {served.name}")

    async def _converts(self, *, wanted: bool) -> bool:
        status, answer = await self._get("v1alpha1", limit=1)
        return status == 200 and ("domain" in answer["items"][0].get("spec", {})) == wanted

    async def list_converted(self) -> tuple[float, int]:
        """List all objects in their old version, in pages; returns the seconds, and how many there are."""
        found, token = 0, ""
        began = time.perf_counter()
        while True:
            status, answer = await self._get("v1alpha1", limit=_PAGE, token=token)
            if status != 200:
                raise BenchmarkFailed(f"cannot list the converted shops: {answer}")
            if not all("domain" in each["spec"] for each in answer["items"]):
                raise BenchmarkFailed("a listed shop was not converted")
            found += len(answer["items"])
            token = answer["metadata"].get("continue", "")
            if not token:
                return time.perf_counter() - began, found

    async def _set_conversion(self, conversion: dict[str, Any]) -> None:
        definition = await self._client.get(_DEFINITION, "shops.bench.example.com")
        definition["spec"]["conversion"] = conversion
        await self._client.update(definition)

    async def _post(self, namespace: str, body: bytes, *, dry_run: bool = False) -> tuple[int, Any]:
        path = f"/apis/bench.example.com/v1/namespaces/{namespace}/shops{'?dryRun=All' if dry_run else ''}"
        async with self._session.post(path, data=body, headers={"Content-Type": "application/json"}) as response:
            return response.status, msgspec.json.decode(await response.read())

    async def _get(self, version: str, *, limit: int, token: str = "") -> tuple[int, Any]:
        query = {"limit": str(limit), **({"continue": token} if token else {})}
        path = f"/apis/bench.example.com/{version}/namespaces/{MANY}/shops"
        async with self._session.get(path, params=query) as response:
            return response.status, msgspec.json.decode(await response.read())


def shop(name: str, *, replicas: int = 2) -> bytes:
    """A shop with ten items, as JSON."""
    items = [{"name": f"item-{number}", "price": 100 + number} for number in range(10)]
    return msgspec.json.encode(
        {
            "apiVersion": "bench.example.com/v1",
            "kind": "Shop",
            "metadata": {"name": name, "labels": {"app": "shop", "tier": "web"}},
            "spec": {"host": f"{name}.example.com", "replicas": replicas, "items": items},
        }
    )


def _commands() -> dict[str, Callable[[int, Path], list[str]]]:
    program = str(go_program(BENCH / "controller_runtime_webhooks", "shops"))
    return {
        OURS: lambda port, folder: [sys.executable, str(PROGRAMS / "steersman_shops.py"), str(port), str(folder)],
        GO: lambda port, folder: [program, "-port", str(port), "-certificates", str(folder)],
    }


@asynccontextmanager
async def shop_world(folder: Path) -> AsyncGenerator[ShopWorld]:
    """A new engine, with the kind and both programs."""
    commands = await asyncio.to_thread(_commands)
    authority = CertificateIssuer.create()
    pair = authority.server(("127.0.0.1",))
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(Engine.start(flags={"kube-apiserver": ["--watch-cache=false"]}))
        client = await stack.enter_async_context(engine.client(field_manager="bench"))
        await client.install(Shop, OldShop)
        for name in (OURS, GO, MANY):
            await client.create(Namespace(metadata=ObjectMeta(name=name)))
        environment = contender_environment(engine, folder)
        served: list[Served] = []
        for name, command in commands.items():
            port = _free_port()
            process = await stack.enter_async_context(
                running(name, command(port, folder), environment=environment, folder=folder)
            )
            await _until_open(process, port)
            served.append(Served(name=name, address=f"https://127.0.0.1:{port}", process=process))
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=engine.ca_file))
        headers = {"Authorization": f"Bearer {engine.admin_token}"}
        session = await stack.enter_async_context(
            aiohttp.ClientSession(engine.url, connector=connector, headers=headers)
        )
        yield ShopWorld(session, client, authority.certificate, tuple(served))


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


async def _until_open(process: ControllerProcess, port: int) -> None:
    async with asyncio.timeout(_PATIENCE):
        while True:
            process.check()
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            return


async def _until(condition: Callable[[], Any], what: str) -> None:
    try:
        async with asyncio.timeout(_PATIENCE):
            while not await condition():  # noqa: ASYNC110 - the API is polled
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise BenchmarkFailed(f"not within {_PATIENCE:g} s: {what}") from None
