"""The servers that charts are installed on, and helm as a command on one of them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from charts.programs import Major, helm

from samples.ports import own_address
from samples.raw_api import APPLY, RawApi, raw_api
from steersman.client import load_kubeconfig
from steersman.controlplane import ControlPlane
from steersman.testing import Engine
from steersman.testing.engine.environment import Environment


@dataclass(frozen=True, slots=True)
class Cluster:
    """A server, and a major version of helm that talks to it."""

    kubeconfig: Path
    api: RawApi
    major: Major
    folder: Path
    #: The port of each Service that the server calls, by namespace and name.
    services: dict[tuple[str, str], int]

    async def helm(self, *arguments: str | Path, code: int = 0) -> str:
        """Run helm, which has to end with a code; returns what it said."""
        return await self._run(await asyncio.to_thread(helm, self.major), *arguments, code=code)

    async def install_definitions(self, chart: Path) -> None:
        """Install the definitions of a chart, as its notes say."""
        shown = await self.helm("show", "crds", chart)
        kubectl = Environment.read().program("kubectl")
        await self._run(kubectl, "apply", "--server-side", "--force-conflicts", "-f", "-", given=shown)

    async def serve(self, namespace: str, name: str, port: int) -> None:
        """Let the server reach a port of this machine through a Service."""
        self.services[namespace, name] = port
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices/{name}?fieldManager=tests&force=true"
        await self.api.made("PATCH", path, _slice(name, port), content_type=APPLY)

    async def identity(self, namespace: str, account: str) -> Path:
        """A kubeconfig with a token of a service account."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        token = (await self.api.made("POST", path, {"spec": {}}))["status"]["token"]
        config = load_kubeconfig(self.kubeconfig)
        authority = base64.b64encode(config.tls.ca_data or b"").decode()
        server = {"server": config.server, "certificate-authority-data": authority}
        tree = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "server", "cluster": server}],
            "users": [{"name": account, "user": {"token": token}}],
            "contexts": [{"name": "pod", "context": {"cluster": "server", "user": account, "namespace": namespace}}],
            "current-context": "pod",
        }
        file = self.folder / f"{account}.kubeconfig"
        await asyncio.to_thread(file.write_text, json.dumps(tree))
        return file

    async def _run(self, program: Path, *arguments: str | Path, code: int = 0, given: str = "") -> str:
        own = {f"HELM_{place}_HOME": str(self.folder / "helm" / place) for place in ("CACHE", "CONFIG", "DATA")}
        process = await asyncio.create_subprocess_exec(
            *(str(program), *map(str, arguments), f"--kubeconfig={self.kubeconfig}"),
            env={**os.environ, **own},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(120):
            output, _ = await process.communicate(given.encode())
        assert process.returncode == code, output.decode()
        return output.decode()


@asynccontextmanager
async def engine_cluster(major: Major, folder: Path) -> AsyncGenerator[Cluster]:
    """Run the engine for one block."""
    # with aggregator routing, it calls the endpoints of a Service, for which no proxy runs here
    flags = {"kube-apiserver": ("--enable-aggregator-routing=true",)}
    async with Engine.start(flags=flags) as engine, raw_api(engine.kubeconfig) as api:
        yield Cluster(engine.kubeconfig, api, major, folder, {})


@asynccontextmanager
async def embedded_cluster(major: Major, folder: Path) -> AsyncGenerator[Cluster]:
    """Run the embedded control plane for one block."""
    services: dict[tuple[str, str], int] = {}

    async def resolve(namespace: str, name: str, port: int) -> tuple[str, int]:
        if (namespace, name) not in services:
            raise LookupError(f'no endpoints available for service "{name}", port {port}')
        return "127.0.0.1", services[namespace, name]

    kubeconfig = folder / "kubeconfig"
    async with (
        ControlPlane(port=0, kubeconfig=kubeconfig, authorizer="rbac", webhook_resolver=resolve),
        raw_api(kubeconfig) as api,
    ):
        yield Cluster(kubeconfig, api, major, folder, services)


def _slice(name: str, port: int) -> dict[str, object]:
    """The endpoints of a Service: Kubernetes accepts no loopback address here."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [own_address()], "conditions": {"ready": True}}],
        "ports": [{"name": "webhooks", "port": port, "protocol": "TCP"}],
    }
