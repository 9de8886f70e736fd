"""The one Node of the e2e suite: no kubelet has it, its status is kept Ready by patches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from samples.raw_api import STRATEGIC, RawApi
from steersman.aio import Supervisor, utc_now

#: The node that a `PodRunner` binds Pods to.
NAME = "pod-runner"
#: The node-lifecycle controller marks a Node as unreachable after 50 seconds without a heartbeat.
HEARTBEAT_SECONDS = 15.0
_CAPACITY = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "512Gi", "pods": "1000"}


@asynccontextmanager
async def ready_node(api: RawApi) -> AsyncGenerator[None]:
    """A Node that is Ready for the duration of the block."""
    labels = {"kubernetes.io/hostname": NAME, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    await api.made("POST", "/api/v1/nodes", {"metadata": {"name": NAME, "labels": labels}})
    await _heartbeat(api)
    async with Supervisor() as tasks:
        tasks.start(_heartbeats(api), name="heartbeats of the node")
        await _untainted(api)
        yield
        tasks.cancel()


async def _heartbeats(api: RawApi) -> None:
    while True:
        await asyncio.sleep(HEARTBEAT_SECONDS)
        await _heartbeat(api)


async def _heartbeat(api: RawApi) -> None:
    # Some specs replace the status of the node, or delete the node's condition: 404 and 409 are theirs.
    await api.send("PATCH", f"/api/v1/nodes/{NAME}/status", {"status": _status()}, content_type=STRATEGIC)


def _status() -> dict[str, Any]:
    time = utc_now().strftime("%Y-%m-%dT%H:%M:%SZ")
    problems = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
    conditions = [("Ready", "True", "KubeletReady"), *((name, "False", "KubeletHasNone") for name in problems)]
    return {
        "capacity": _CAPACITY,
        "allocatable": _CAPACITY,
        "addresses": [{"type": "InternalIP", "address": "192.168.0.1"}, {"type": "Hostname", "address": NAME}],
        "conditions": [
            {"type": name, "status": status, "reason": reason, "message": "", "lastHeartbeatTime": time}
            for name, status, reason in conditions
        ],
        "nodeInfo": {
            "architecture": "amd64",
            "operatingSystem": "linux",
            "kubeletVersion": "v1.37.1",
            "containerRuntimeVersion": "pod-runner://1",
            **dict.fromkeys(("bootID", "machineID", "systemUUID", "kernelVersion", "kubeProxyVersion"), "none"),
            "osImage": "none",
        },
    }


async def _untainted(api: RawApi) -> None:
    """Wait until the node-lifecycle controller has removed the taints of a new Node."""
    async with asyncio.timeout(60):
        while (await api.made("GET", f"/api/v1/nodes/{NAME}"))["spec"].get("taints"):  # noqa: ASYNC110 - the server is asked
            await asyncio.sleep(0.1)
