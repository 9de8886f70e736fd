"""The Pods of the suite that serve webhooks: agnhost runs for each of them, and its port is reachable at the Pod's address.

Guarantees
- The program of a Pod ends with the Pod, and every program with the block.
- The machine's addresses are what they were after the block. Adding one needs root; without it, these Pods serve nothing.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from e2e.program import program

from samples.raw_api import RawApi
from steersman.aio import Supervisor
from steersman.testing.engine.ports import Ports
from steersman.testing.engine.processes import Processes, supervised

#: The labels that the suite gives these Pods.
_PODS = "/api/v1/pods?labelSelector=app%20in%20(sample-webhook,sample-crd-conversion-webhook)"
_POLL_SECONDS = 0.3


@asynccontextmanager
async def webhook_pods(api: RawApi, folder: Path) -> AsyncGenerator[None]:
    """Run the programs of the Pods that serve webhooks; ``folder`` keeps their logs."""
    scratch = Path(mkdtemp(prefix="steersman-webhooks-"))
    async with (
        supervised(folder=scratch, budget=5, log=folder / "webhooks.log") as processes,
        Supervisor() as tasks,
    ):
        pods = _WebhookPods(api, processes, await asyncio.to_thread(program), folder)
        tasks.start(pods.follow(), name="Pods with webhooks")
        yield
        tasks.cancel()


class _WebhookPods:
    def __init__(self, api: RawApi, processes: Processes, agnhost: Path, folder: Path) -> None:
        self._api = api
        self._processes = processes
        self._agnhost = agnhost
        self._folder = folder
        #: What ends with each Pod, by uid.
        self._running: dict[str, AsyncExitStack] = {}

    async def follow(self) -> None:
        """Start and end programs as their Pods come and go."""
        try:
            while True:
                answer = await self._api.send("GET", _PODS)
                if answer.code == 200:
                    await self._adapt(answer.body["items"])
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            for stack in self._running.values():
                await stack.aclose()

    async def _adapt(self, pods: list[dict[str, Any]]) -> None:
        found = {pod["metadata"]["uid"]: pod for pod in pods if pod.get("status", {}).get("podIP")}
        for uid in self._running.keys() - found.keys():
            await self._running.pop(uid).aclose()
        for uid in found.keys() - self._running.keys():
            async with AsyncExitStack() as stack:
                await self._start(stack, found[uid])
                self._running[uid] = stack.pop_all()

    async def _start(self, stack: AsyncExitStack, pod: dict[str, Any]) -> None:
        uid, address = pod["metadata"]["uid"], pod["status"]["podIP"]
        container = pod["spec"]["containers"][0]
        arguments = " ".join(container["args"])
        wanted = re.search(r"--port=(\d+)", arguments)
        with Ports() as ports:
            # agnhost does not share its port, so the reservation ends here.
            port = ports.reserve()
        for mount in container.get("volumeMounts", ()):
            place = await self._mounted(pod, mount["name"], self._folder / uid)
            if place is not None:
                arguments = arguments.replace(mount["mountPath"], str(place))
        arguments = re.sub(r"--port=\d+", f"--port={port}", arguments)
        command = [self._agnhost, *arguments.split()]
        await self._processes.start(uid, command, log=self._folder / f"webhook-{uid}.log", stage=0)
        stack.push_async_callback(self._processes.signal, uid, 9)
        if await _address("add", address):
            stack.push_async_callback(_address, "delete", address)
            server = await asyncio.start_server(_forwarding(port), address, int(wanted[1]) if wanted else 443)
            stack.callback(server.close)

    async def _mounted(self, pod: dict[str, Any], volume: str, folder: Path) -> Path | None:
        """Write the files of a Secret's volume; None for another volume."""
        source = next((each for each in pod["spec"]["volumes"] if each["name"] == volume), {})
        if "secret" not in source:
            return None
        name = source["secret"]["secretName"]
        secret = await self._api.made("GET", f"/api/v1/namespaces/{pod['metadata']['namespace']}/secrets/{name}")
        await asyncio.to_thread(_write, folder / volume, secret["data"])
        return folder / volume


def _write(folder: Path, data: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, content in data.items():
        (folder / name).write_bytes(base64.b64decode(content))


async def _address(action: str, address: str) -> bool:
    """Add an address to the loopback device, or delete it; whether that was possible."""
    try:
        process = await asyncio.create_subprocess_exec("ip", "address", action, f"{address}/32", "dev", "lo")
    except FileNotFoundError:
        return False
    return await process.wait() == 0


def _forwarding(port: int) -> Any:
    """A handler that connects each client to a local port."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            there, back = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_copy(reader, back), _copy(there, writer))
        writer.close()

    return forward


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
