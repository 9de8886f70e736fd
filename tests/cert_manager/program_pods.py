"""The Pods of cert-manager, each as a process of this machine.

Guarantees
- A program gets the arguments of its container, the permissions of its Pod's service account, and the Pod's name as its
  host name, as from a kubelet.
- A Pod is ready when its program is; the Pod of a Job ends as its program does.
- A program ends with its Pod, and every program with the block.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import aiohttp

from samples.ports import free_port
from samples.raw_api import RawApi
from steersman import Client
from steersman.aio import Supervisor
from steersman.client import load_kubeconfig
from steersman.kinds.core_v1 import Pod
from steersman.testing import PodFailed, PodOutcome, PodRunning, PodSucceeded, PodWaiting, WorkloadRunner
from steersman.testing.engine.processes import Processes, supervised

_COMPONENT = "app.kubernetes.io/component"
_POLL_SECONDS = 0.1
_START_SECONDS = 60.0
_TERM = 15
#: Runs a program with a host name of its own. Leaders are elected by it: a new program must not take an old one's Lease.
_NAMED = ("unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"')


@dataclass(frozen=True, slots=True)
class _Command:
    """A program's own ports, as flags that replace those of the container."""

    flags: tuple[str, ...] = ()
    #: The path and port that answer 200 when the program is ready.
    ready: str = ""
    webhook_port: int = 0


def _command(component: str) -> _Command:
    match component:
        case "webhook":
            port, health = free_port(), free_port()
            flags = (f"--secure-port={port}", f"--healthz-port={health}", "--metrics-listen-address=0")
            return _Command(flags, f"http://127.0.0.1:{health}/healthz", port)
        case "controller":
            health = free_port()
            return _Command(
                (f"--internal-healthz-listen-address=127.0.0.1:{health}",), f"http://127.0.0.1:{health}/livez"
            )
        case _:
            return _Command()


class ProgramPods:
    """Starts and ends the programs of Pods in one namespace."""

    def __init__(
        self,
        api: RawApi,
        kubeconfig: Path,
        namespace: str,
        *,
        program: Path,
        folder: Path,
        publish: Callable[[int], Awaitable[None]],
    ) -> None:
        self._api = api
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        self._program = program
        self._folder = folder
        #: Called with the port of each webhook before its Pod is ready.
        self._publish = publish
        self._outcomes: dict[str, PodOutcome] = {}

    def outcome(self, pod: Pod) -> PodOutcome:
        """How far a Pod is."""
        return self._outcomes.get(pod.metadata.uid or "", PodWaiting("ContainerCreating"))

    @asynccontextmanager
    async def running(self, client: Client) -> AsyncGenerator[None]:
        """Run workloads and their programs for one block."""
        scratch = Path(mkdtemp(prefix="steersman-cert-manager-"))
        async with (
            WorkloadRunner(client, outcome=self.outcome) as runner,
            supervised(folder=scratch, budget=10, log=self._folder / "programs.log") as processes,
            Supervisor() as tasks,
        ):
            tasks.start(self._follow(processes, tasks, runner), name="Pods of cert-manager")
            yield
            tasks.cancel()

    async def _follow(self, processes: Processes, tasks: Supervisor, runner: WorkloadRunner) -> None:
        known: set[str] = set()
        while True:
            answer = await self._api.send("GET", f"/api/v1/namespaces/{self._namespace}/pods")
            if answer.code == 200:
                pods = {pod["metadata"]["uid"]: pod for pod in answer.body["items"] if pod["spec"].get("nodeName")}
                for uid in known - pods.keys():
                    await processes.signal(uid, _TERM)
                for uid in pods.keys() - known:
                    tasks.start(self._run(processes, pods[uid], runner), name=pods[uid]["metadata"]["name"])
                known = set(pods)
            await asyncio.sleep(_POLL_SECONDS)

    async def _run(self, processes: Processes, pod: dict[str, Any], runner: WorkloadRunner) -> None:
        """Run the program of one Pod until it ends."""
        uid, component = pod["metadata"]["uid"], pod["metadata"]["labels"][_COMPONENT]
        command = _command(component)
        identity = await self.identity(pod["spec"]["serviceAccountName"])
        arguments = [each.replace("$(POD_NAMESPACE)", self._namespace) for each in pod["spec"]["containers"][0]["args"]]
        name = pod["metadata"]["name"]
        program = [self._program, component, *arguments, f"--kubeconfig={identity}", *command.flags]
        await processes.start(uid, [*_NAMED, name, *program], log=self._folder / f"{name}.log", stage=0)
        if command.ready:
            await _answers(command.ready)
        if command.webhook_port:
            await self._publish(command.webhook_port)
        self._outcomes[uid] = PodRunning()
        runner.look_again()
        code = await processes.wait(uid)
        self._outcomes[uid] = PodFailed(exit_code=code) if code else PodSucceeded()
        runner.look_again()

    async def identity(self, account: str) -> Path:
        """A kubeconfig with a token of a service account."""
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{account}/token"
        token = (await self._api.made("POST", path, {"spec": {}}))["status"]["token"]
        config = load_kubeconfig(self._kubeconfig)
        authority = base64.b64encode(config.tls.ca_data or b"").decode()
        context = {"cluster": "server", "user": account, "namespace": self._namespace}
        tree = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "server", "cluster": {"server": config.server, "certificate-authority-data": authority}}
            ],
            "users": [{"name": account, "user": {"token": token}}],
            "contexts": [{"name": "default", "context": context}],
            "current-context": "default",
        }
        file = self._folder / f"{account}.kubeconfig"
        await asyncio.to_thread(file.write_text, json.dumps(tree))
        return file


async def _answers(url: str) -> None:
    async with asyncio.timeout(_START_SECONDS), aiohttp.ClientSession() as http:
        while True:
            try:
                async with http.get(url) as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(_POLL_SECONDS)
