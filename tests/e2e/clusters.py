"""The clusters that the e2e suite runs on: an API server, kube-controller-manager, a `PodRunner` and a Node.

The engine runs with its default admission plugins; the embedded server with the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from controller_manager.servers import controller_manager
from e2e.node import ready_node
from e2e.outcomes import outcome_of
from e2e.webhook_pods import webhook_pods

from samples.raw_api import raw_api
from steersman import Client
from steersman.aio import Supervisor
from steersman.apiserver import ApiServer, serve
from steersman.client import load_kubeconfig
from steersman.testing import Engine, PodRunner
from steersman.testing.engine.certificates import write_signing_key

SERVERS = ("engine", "embedded")
#: How long a deleted Pod takes to end: some specs read it once more.
STOP_SECONDS = 0.5
#: How often readiness probes are repeated.
PROBE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster without kubelets."""

    server: str
    kubeconfig: Path


@asynccontextmanager
async def running_cluster(server: str, folder: Path) -> AsyncGenerator[Cluster]:
    """Run a cluster for one block: ``server`` is one of `SERVERS`; ``folder`` exists, and keeps its logs."""
    async with AsyncExitStack() as stack:
        start = _engine if server == "engine" else _embedded
        kubeconfig, authority, signing_key = await start(stack, folder)
        flags = _controller_flags(folder, kubeconfig, authority, signing_key)
        log = folder / "kube-controller-manager.log"
        await stack.enter_async_context(controller_manager(kubeconfig, log, flags))
        api = await stack.enter_async_context(raw_api(kubeconfig))
        client = await stack.enter_async_context(Client.connect(kubeconfig=kubeconfig, field_manager="pod-runner"))
        runner = await stack.enter_async_context(PodRunner(client, outcome=outcome_of, stop_delay=STOP_SECONDS))
        tasks = await stack.enter_async_context(Supervisor())
        tasks.start(_probes(runner), name="readiness probes")
        stack.callback(tasks.cancel)
        await stack.enter_async_context(webhook_pods(api, folder))
        await stack.enter_async_context(ready_node(api))
        yield Cluster(server, kubeconfig)


async def _probes(runner: PodRunner) -> None:
    """Let Pods become ready when the delay of their probes is over."""
    while True:
        await asyncio.sleep(PROBE_SECONDS)
        runner.look_again()


async def _engine(stack: AsyncExitStack, folder: Path) -> tuple[Path, Path, Path]:
    del folder
    flags = ("--disable-admission-plugins=", "--enable-aggregator-routing=true")
    engine = await stack.enter_async_context(Engine.start(flags={"kube-apiserver": flags}))
    keys = engine.ca_file.parent
    return engine.kubeconfig, keys / "authority.pem", keys / "service-account.key"


async def _embedded(stack: AsyncExitStack, folder: Path) -> tuple[Path, Path, Path]:
    place, key = folder / "server", folder / "service-account.key"
    server = ApiServer(authorizer="rbac", enable_admission_plugins=["ServiceAccount"])
    served = await stack.enter_async_context(serve(server, folder=place, grace=0.1))
    write_signing_key(key)
    return served.kubeconfig, place / "authority.pem", key


def _controller_flags(folder: Path, kubeconfig: Path, authority: Path, signing_key: Path) -> list[str]:
    root = folder / "root-ca.crt"
    root.write_bytes(load_kubeconfig(kubeconfig).tls.ca_data or b"")
    return [
        "--controllers=*,-persistentvolume-attach-detach-controller",
        # Some specs wait for the resync, which by default takes five minutes.
        "--resource-quota-sync-period=20s",
        f"--root-ca-file={root}",
        f"--service-account-private-key-file={signing_key}",
        # One file holds the certificate and its key.
        f"--cluster-signing-cert-file={authority}",
        f"--cluster-signing-key-file={authority}",
    ]
