"""The running control plane of an engine: its parts, and the requests that the fixtures make.

Guarantees: parts start in the order etcd, API servers, controller manager, each after the previous ones are ready.
Requests of the fixtures go to an API server that is serving, whatever a test did to the others.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from steersman.testing.engine.certificates import KeyPair
from steersman.testing.engine.errors import EngineError
from steersman.testing.engine.parts import EtcdMember, KubeApiServer, KubeControllerManager, Part, Surroundings

_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The administrator's credentials, and the CA of the API servers."""

    ca_file: Path
    admin: KeyPair
    token: str


class Cluster:
    """The running parts, and the requests that the fixtures make."""

    def __init__(self, credentials: Credentials, around: Surroundings) -> None:
        self.credentials = credentials
        self._around = around
        self.etcd: tuple[EtcdMember, ...] = ()
        self.api_servers: tuple[KubeApiServer, ...] = ()
        self.controller_manager: KubeControllerManager | None = None
        self._backups = 0

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig for the first API server."""
        return self.api_servers[0].kubeconfig

    @property
    def url(self) -> str:
        """The address of the first API server."""
        return self.api_servers[0].url

    @property
    def logs(self) -> Path:
        """The directory with one log per part."""
        return self._around.logs

    def parts(self) -> list[Part]:
        """Every part, in start order."""
        last = [] if self.controller_manager is None else [self.controller_manager]
        return [*self.etcd, *self.api_servers, *last]

    async def start(self) -> None:
        """Start every part and wait until all are ready."""
        await self._start_together(self.etcd)
        await self._start_together(self.api_servers)
        if self.controller_manager is not None:
            await self._start_together([self.controller_manager])

    async def _start_together(self, parts: Sequence[Part]) -> None:
        for part in parts:
            await part.launch()
        # One after the other: waiting for the slowest covers the others.
        for part in parts:
            await part.become_ready()

    async def wait_ready(self) -> None:
        """Wait until every running, unpaused API server is ready; returns at once if etcd has no quorum."""
        serving = sum(member.running and not member.paused for member in self.etcd)
        if serving * 2 <= len(self.etcd):
            return
        for server in self.api_servers:
            if server.running and not server.paused:
                await server.become_ready()

    async def keep_logs(self) -> Path:
        """Keep the logs when the directory is removed."""
        await self._around.processes.keep(self.logs)
        return self.logs

    async def compact(self, revision: int | None) -> int:
        """Compact etcd up to `revision`, or up to now, and return that revision."""
        if revision is None:
            answer = await self._ask_etcd("/v3/kv/range", {"key": "AA==", "limit": 1})
            revision = int(answer["header"]["revision"])
        await self._ask_etcd("/v3/kv/compaction", {"revision": revision, "physical": True})
        return revision

    async def back_up(self) -> Path:
        """Copy etcd's data, all members at one moment, and return the directory with the copy."""
        self._backups += 1
        folder = self._around.logs.parent / f"backup-{self._backups}"
        for member in self.etcd:
            await member.pause()
        try:
            # Written data is in the kernel: a copy of a stopped process is as good as one of a killed process.
            for member in self.etcd:
                await asyncio.to_thread(shutil.copytree, member.data, folder / member.name)
        finally:
            for member in self.etcd:
                await member.resume()
        return folder

    async def restore(self, backup: Path) -> None:
        """Restore a copy; the API servers are down meanwhile."""
        missing = [member.name for member in self.etcd if not (backup / member.name).is_dir()]
        if missing:
            raise EngineError(f"{backup} is not a copy of this engine's etcd: it lacks {', '.join(missing)}")
        for part in (*self.api_servers, *self.etcd):
            await part.kill()
        for member in self.etcd:
            await asyncio.to_thread(shutil.rmtree, member.data)
            await asyncio.to_thread(shutil.copytree, backup / member.name, member.data)
        await self._start_together(self.etcd)
        await self._start_together(self.api_servers)

    async def _ask_etcd(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        member = next((member for member in self.etcd if member.running and not member.paused), None)
        if member is None:
            raise EngineError(f"cannot send {path} to etcd: no member is running; start one first")
        async with self._around.http.post(member.url + path, json=body) as response:
            answer = await response.json(content_type=None)
        if response.status != 200:
            raise EngineError(f"etcd rejected {path} with {body}: {answer.get('message', answer)}")
        return answer

    async def create_namespace(self, name: str) -> None:
        """Create a namespace."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self._request("POST", "/api/v1/namespaces", body=body, also_fine=409)

    async def delete_namespace(self, name: str) -> None:
        """Delete a namespace; its content is deleted only if a controller manager runs."""
        await self._request("DELETE", f"/api/v1/namespaces/{name}", also_fine=404)

    async def delete_crds(self, group: str) -> None:
        """Delete every custom resource definition of an API group."""
        listing = await self._request("GET", _CRDS, accept=_METADATA_ONLY)
        for item in listing["items"]:
            name = item["metadata"]["name"]
            if name.endswith(f".{group}"):
                await self._request("DELETE", f"{_CRDS}/{name}", also_fine=404)

    async def _request(
        self, method: str, path: str, *, body: object = None, accept: str = "application/json", also_fine: int = 200
    ) -> dict[str, Any]:
        """Send a request to a serving API server as administrator; retries once if a restart cut the connection."""
        server = next((part for part in self.api_servers if part.running and not part.paused), self.api_servers[0])
        attempts = 2
        for attempt in range(1, attempts + 1):
            try:
                async with self._around.http.request(
                    method, server.url + path, json=body, headers={"Accept": accept}
                ) as response:
                    answer = await response.read()
                if response.status < 300 or response.status == also_fine:
                    return json.loads(answer)
                text = answer.decode(errors="replace")
                raise EngineError(f"{method} {server.url}{path} returned {response.status}: {text}")
            except (aiohttp.ClientError, TimeoutError) as error:
                if attempt == attempts:
                    raise EngineError(f"{method} {server.url}{path} failed: {error!r}; {server.log_hint()}") from error
        raise AssertionError("every attempt returns or raises")
