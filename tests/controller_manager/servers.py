"""The engine and the embedded server, each with a kube-controller-manager of its own."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from controller_manager.outcomes import outcome_of

from samples.raw_api import RawApi, raw_api
from steersman import Client
from steersman.apiserver import ApiServer, serve
from steersman.controlplane import ControlPlane
from steersman.testing import Engine, PodRunner, WorkloadRunner
from steersman.testing.engine.certificates import CertificateAuthority, write_signing_key
from steersman.testing.engine.environment import Environment
from steersman.testing.engine.errors import last_lines
from steersman.testing.engine.flags import Secrets, controller_manager_flags, merged
from steersman.testing.engine.ports import Ports
from steersman.testing.engine.processes import supervised

#: Both controller managers get these.
FLAGS = ("--kube-api-qps=1000", "--kube-api-burst=1000")


@dataclass(frozen=True, slots=True)
class Server:
    """One server under a controller manager, with a node's worth of Pods running on it."""

    name: str
    kubeconfig: Path
    api: RawApi
    #: What the controller manager logs.
    log: Path


@asynccontextmanager
async def engine_server() -> AsyncGenerator[Server]:
    """The engine, and the controller manager that it runs by itself."""
    start = Engine.start(controller_manager=True, flags={"kube-controller-manager": FLAGS})
    async with start as engine, _populated(engine.kubeconfig) as api:
        yield Server("engine", engine.kubeconfig, api, engine.controller_manager.log_file)


@asynccontextmanager
async def embedded_server(folder: Path) -> AsyncGenerator[Server]:
    """The embedded server as ``steersman serve`` has it, and a controller manager beside it."""
    async with serve(ApiServer(authorizer="rbac"), folder=folder / "server", grace=0.1) as served:
        log = folder / "kube-controller-manager.log"
        async with controller_manager(served.kubeconfig, log), _populated(served.kubeconfig) as api:
            yield Server("embedded", served.kubeconfig, api, log)


@asynccontextmanager
async def runner_server(folder: Path) -> AsyncGenerator[Server]:
    """The embedded control plane, with a `WorkloadRunner` where the others have a kube-controller-manager."""
    plane = ControlPlane(authorizer="rbac", port=0, folder=folder / "control-plane")
    async with plane:
        assert plane.kubeconfig is not None
        async with (
            raw_api(plane.kubeconfig) as api,
            Client.connect(kubeconfig=plane.kubeconfig, field_manager="pod-runner") as client,
            WorkloadRunner(client, outcome=outcome_of),
        ):
            yield Server("embedded", plane.kubeconfig, api, folder / "no.log")


@asynccontextmanager
async def accounts_server(folder: Path) -> AsyncGenerator[Server]:
    """The embedded server with a controller manager whose controllers act as service accounts of their own."""
    async with serve(ApiServer(authorizer="rbac"), folder=folder / "server", grace=0.1) as served:
        log = folder / "kube-controller-manager.log"
        accounts = controller_manager(served.kubeconfig, log, ["--use-service-account-credentials=true"])
        async with accounts, _populated(served.kubeconfig) as api:
            yield Server("embedded", served.kubeconfig, api, log)


@asynccontextmanager
async def controller_manager(kubeconfig: Path, log: Path, more: Sequence[str] = ()) -> AsyncGenerator[None]:
    """The kube-controller-manager on the server of a kubeconfig, ready; ``more`` are further flags."""
    folder = Path(tempfile.mkdtemp(prefix="steersman-controller-manager-"))
    (folder / "pki").mkdir()
    authority = CertificateAuthority(folder / "pki")
    own = authority.server("kube-controller-manager")
    key = folder / "pki" / "service-account.key"
    write_signing_key(key)
    secrets = Secrets(authority.certificate_file, own.certificate_file, own.key_file, key, key)
    program = Environment.read().program("kube-controller-manager")
    async with AsyncExitStack() as exits:
        port = exits.enter_context(Ports()).reserve()
        flags = controller_manager_flags(port=port, kubeconfig=kubeconfig, secrets=secrets, cert_dir=folder / "pki")
        processes = await exits.enter_async_context(supervised(folder=folder, budget=10, log=folder / "supervisor.log"))
        await processes.start("kube-controller-manager", [program, *merged(flags, (*FLAGS, *more))], log=log, stage=0)
        await _ready(f"https://127.0.0.1:{port}/healthz", authority.certificate_file, log)
        yield


async def _ready(url: str, authority: Path, log: Path) -> None:
    context = ssl.create_default_context(cafile=str(authority))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as http:
        try:
            async with asyncio.timeout(30):
                while True:
                    try:
                        async with http.get(url) as response:
                            if response.status == 200:
                                return
                    except aiohttp.ClientError:
                        pass
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"the controller manager did not become ready: {last_lines(log)}") from None


@asynccontextmanager
async def _populated(kubeconfig: Path) -> AsyncGenerator[RawApi]:
    """Run the Pods of a server; the way to it."""
    async with (
        raw_api(kubeconfig) as api,
        Client.connect(kubeconfig=kubeconfig, field_manager="pod-runner") as client,
        PodRunner(client, outcome=outcome_of),
    ):
        # endpoints list only Pods on a node that exists
        await api.made("POST", "/api/v1/nodes", {"metadata": {"name": "pod-runner"}})
        yield api
