"""A second kube-apiserver on the engine's etcd, which can be cut off from it: then its watch cache lags behind."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from samples.ports import free_port
from steersman.testing import Engine, FaultProxy


class LaggingApiServer:
    """``async with LaggingApiServer(engine, folder).serve() as server``; then `stop_cache` and `heal`."""

    def __init__(self, engine: Engine, folder: Path, *, cached: Sequence[str]) -> None:
        self._engine = engine
        #: The paths of collections that it has cached before it lags.
        self._cached = cached
        self._folder = folder
        self._etcd = FaultProxy(engine.etcd[0].url)
        self.url = ""

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[LaggingApiServer]:
        """Serve during a block, from when it is ready."""
        async with self._etcd:
            port = free_port()
            self.url = f"https://127.0.0.1:{port}"
            with (self._folder / "lagging.log").open("ab") as log:
                process = await asyncio.create_subprocess_exec(*self._command(port), stdout=log, stderr=log)
            try:
                await self._until_ready(process)
                yield self
            finally:
                await self._etcd.heal()
                if process.returncode is None:
                    process.kill()
                await process.wait()

    def _command(self, port: int) -> list[str]:
        """The command line of the engine's own server, with another port and the proxy in place of etcd."""
        ours = {
            "--etcd-servers": self._etcd.url,
            "--secure-port": str(port),
            "--cert-dir": str(self._folder / "lagging-certificates"),
        }
        command = Path(f"/proc/{self._engine.api_servers[0].pid}/cmdline").read_bytes().split(b"\0")
        kept = [os.fsdecode(each) for each in command if each]
        return [f"{name}={ours[name]}" if (name := each.partition("=")[0]) in ours else each for each in kept]

    async def _until_ready(self, process: asyncio.subprocess.Process) -> None:
        context = ssl.create_default_context(cafile=str(self._engine.ca_file))
        headers = {"Authorization": f"Bearer {self._engine.admin_token}"}
        # Its memory is complete when it answers a read that accepts any state.
        paths = ("/readyz", *(f"{path}?resourceVersion=0" for path in self._cached))
        async with asyncio.timeout(120), aiohttp.ClientSession(headers=headers) as session:
            for path in paths:
                while process.returncode is None:
                    try:
                        async with session.get(self.url + path, ssl=context) as answer:
                            if answer.status == 200:
                                break
                    except aiohttp.ClientError:
                        pass
                    await asyncio.sleep(0.1)
        assert process.returncode is None, (self._folder / "lagging.log").read_text(encoding="utf-8")[-2000:]

    def stop_cache(self) -> None:
        """Let nothing arrive from etcd any more."""
        self._etcd.stall("answers")

    async def heal(self) -> None:
        """Let everything arrive."""
        await self._etcd.heal()
