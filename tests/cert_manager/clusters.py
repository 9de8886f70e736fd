"""The two clusters that cert-manager is installed on: the engine and the embedded control plane.

Both have the same few controllers of kube-controller-manager, and a `WorkloadRunner` for Deployments and Jobs.
The engine reaches the webhook at an EndpointSlice of its Service, and the embedded server through `webhook_resolver`.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cert_manager.program_pods import ProgramPods

from samples.raw_api import APPLY, RawApi, raw_api
from steersman import Client
from steersman.controlplane import ControlPlane
from steersman.testing import Engine

NAMESPACE = "cert-manager"
SERVICE = "cert-manager-webhook"
_CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that runs the programs of cert-manager's Pods."""

    name: str
    kubeconfig: Path
    api: RawApi
    pods: ProgramPods
    folder: Path


@asynccontextmanager
async def engine_cluster(program: Path, folder: Path) -> AsyncGenerator[Cluster]:
    """Run the engine for one block."""
    flags = {
        "kube-apiserver": ("--disable-admission-plugins=", "--enable-aggregator-routing=true"),
        "kube-controller-manager": (f"--controllers={','.join(_CONTROLLERS)}",),
    }
    async with Engine.start(controller_manager=True, flags=flags) as engine, raw_api(engine.kubeconfig) as api:

        async def publish(port: int) -> None:
            path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices/{SERVICE}"
            target = f"{path}?fieldManager=programs&force=true"
            await api.made("PATCH", target, _slice(port), content_type=APPLY)

        async with _running("engine", engine.kubeconfig, api, program, folder, publish) as cluster:
            yield cluster


@asynccontextmanager
async def embedded_cluster(program: Path, folder: Path) -> AsyncGenerator[Cluster]:
    """Run the embedded control plane for one block."""
    ports: list[int] = []

    async def resolve(namespace: str, name: str, port: int) -> tuple[str, int]:
        assert (namespace, name, port) == (NAMESPACE, SERVICE, 443)
        if not ports:
            raise LookupError(f'no endpoints available for service "{name}"')
        return "127.0.0.1", ports[-1]

    async def publish(port: int) -> None:
        ports.append(port)

    async with ControlPlane(
        controllers=_CONTROLLERS,
        port=0,
        kubeconfig=folder / "kubeconfig",
        authorizer="rbac",
        enable_admission_plugins=["ServiceAccount"],
        webhook_resolver=resolve,
    ) as plane:
        assert plane.kubeconfig is not None
        async with (
            raw_api(plane.kubeconfig) as api,
            _running("embedded", plane.kubeconfig, api, program, folder, publish) as cluster,
        ):
            yield cluster


@asynccontextmanager
async def _running(
    name: str,
    kubeconfig: Path,
    api: RawApi,
    program: Path,
    folder: Path,
    publish: Callable[[int], Awaitable[None]],
) -> AsyncGenerator[Cluster]:
    pods = ProgramPods(api, kubeconfig, NAMESPACE, program=program, folder=folder, publish=publish)
    async with Client.connect(kubeconfig=kubeconfig, field_manager="pod-runner") as client, pods.running(client):
        yield Cluster(name, kubeconfig, api, pods, folder)


def _slice(port: int) -> dict[str, Any]:
    """The endpoints of the webhook's Service: Kubernetes accepts no loopback address here."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": SERVICE, "labels": {"kubernetes.io/service-name": SERVICE}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [_own_address()], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }


def _own_address() -> str:
    """An address of this machine that other machines would use."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Connecting a datagram socket sends nothing; it only chooses a route.
        probe.connect(("192.0.2.1", 9))
        return probe.getsockname()[0]
