"""Assembles an engine and takes it down.

Guarantees: the block begins when every part is ready, and ends when every process is gone and the directory is removed.
A failed start, or a part that exited by itself, keeps the logs and names them in the error.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from steersman.aio import Supervisor, new_uid
from steersman.testing.engine.certificates import CertificateAuthority, write_secret, write_signing_key
from steersman.testing.engine.cluster import Cluster, Credentials
from steersman.testing.engine.environment import Environment
from steersman.testing.engine.errors import EngineError
from steersman.testing.engine.flags import (
    EtcdAddress,
    Secrets,
    Topology,
    api_server_flags,
    controller_manager_flags,
    etcd_flags,
    merged,
)
from steersman.testing.engine.kubeconfig import write_kubeconfig
from steersman.testing.engine.parts import EtcdMember, KubeApiServer, KubeControllerManager, Launch, Surroundings
from steersman.testing.engine.ports import Ports
from steersman.testing.engine.processes import supervised
from steersman.testing.loop_thread import LoopThread

# Stages are stopped from the highest to the lowest. Each etcd member has its own, up to this: members stopped together
# would wait for each other to take over leadership.
_API_SERVER_STAGE = 10
_CONTROLLER_MANAGER_STAGE = 11


@asynccontextmanager
async def running_cluster(
    topology: Topology, environment: Environment, thread: LoopThread[Any]
) -> AsyncGenerator[Cluster]:
    """Run a control plane for one block."""
    programs = {name: str(environment.program(name)) for name in topology.programs()}
    folder = Path(tempfile.mkdtemp(prefix="steersman-engine-"))
    logs = folder / "logs"
    logs.mkdir()
    output = None if environment.attach_output else logs / "supervisor.log"
    with Ports() as ports:
        # The supervisor removes the directory when nothing uses it any more.
        async with supervised(folder=folder, budget=environment.stop_timeout, log=output) as processes:
            builder = _Builder(folder, topology, programs, ports)
            async with _http(builder.credentials) as http, Supervisor() as tasks:
                around = Surroundings(
                    thread=thread,
                    processes=processes,
                    tasks=tasks,
                    http=http,
                    logs=logs,
                    attach_output=environment.attach_output,
                    start_timeout=environment.start_timeout,
                    stop_timeout=environment.stop_timeout,
                )
                cluster = builder.build(around)
                try:
                    await cluster.start()
                except EngineError:
                    await cluster.keep_logs()
                    raise
                yield cluster
                await _report_crashes(cluster)
                # Only waits for processes remain; the supervisor ends those processes.
                tasks.cancel()


async def _report_crashes(cluster: Cluster) -> None:
    crashed = [part for part in cluster.parts() if part.crashed]
    if crashed:
        await cluster.keep_logs()
        raise EngineError("; ".join(f"{part.name} exited by itself; {part.log_hint()}" for part in crashed))


class _Builder:
    """Makes the files and the command lines of one engine."""

    def __init__(self, folder: Path, topology: Topology, programs: dict[str, str], ports: Ports) -> None:
        self._folder = folder
        self._topology = topology
        self._programs = programs
        self._ports = ports
        pki = folder / "pki"
        pki.mkdir()
        authority = CertificateAuthority(pki)
        server = authority.server("kube-apiserver")
        token = new_uid()
        self._secrets = Secrets(
            ca_file=authority.certificate_file,
            server_cert_file=server.certificate_file,
            server_key_file=server.key_file,
            signing_key_file=pki / "service-account.key",
            token_file=pki / "tokens.csv",
        )
        write_signing_key(self._secrets.signing_key_file)
        write_secret(self._secrets.token_file, f'{token},admin,admin,"system:masters"\n'.encode())
        admin = authority.client("admin", user="admin", groups=("system:masters",))
        self.credentials = Credentials(ca_file=authority.certificate_file, admin=admin, token=token)

    def build(self, around: Surroundings) -> Cluster:
        """Make the parts, without starting them."""
        cluster = Cluster(self.credentials, around)
        members = [
            EtcdAddress(name=f"etcd-{number}", client_url=self._address("http"), peer_url=self._address("http"))
            for number in range(self._topology.etcd_members)
        ]
        cluster.etcd = tuple(
            EtcdMember(
                self._etcd(number, members), around, data=self._data(members[number]), clients_ready=cluster.wait_ready
            )
            for number in range(len(members))
        )
        cluster.api_servers = tuple(
            self._api_server(number, members, around) for number in range(self._topology.api_servers)
        )
        if self._topology.controller_manager:
            launch = self._controller_manager(cluster.kubeconfig)
            cluster.controller_manager = KubeControllerManager(launch, around)
        return cluster

    def _etcd(self, number: int, members: Sequence[EtcdAddress]) -> Launch:
        member = members[number]
        flags = etcd_flags(member, members, data=self._data(member), token=self._folder.name)
        return self._launch("etcd", member.name, flags, member.client_url, stage=number)

    def _data(self, member: EtcdAddress) -> Path:
        return self._folder / member.name

    def _api_server(self, number: int, members: Sequence[EtcdAddress], around: Surroundings) -> KubeApiServer:
        name = f"kube-apiserver-{number}"
        port = self._ports.reserve()
        flags = api_server_flags(
            port=port, etcd=members, secrets=self._secrets, cert_dir=self._folder / f"{name}-certificates"
        )
        launch = self._launch("kube-apiserver", name, flags, f"https://127.0.0.1:{port}", _API_SERVER_STAGE)
        kubeconfig = self._folder / ("kubeconfig" if number == 0 else f"kubeconfig-{number}")
        write_kubeconfig(
            kubeconfig,
            url=launch.url,
            ca_file=self.credentials.ca_file,
            admin=self.credentials.admin,
            token=self.credentials.token,
        )
        return KubeApiServer(launch, around, kubeconfig=kubeconfig)

    def _controller_manager(self, kubeconfig: Path) -> Launch:
        name = "kube-controller-manager"
        port = self._ports.reserve()
        flags = controller_manager_flags(
            port=port, kubeconfig=kubeconfig, secrets=self._secrets, cert_dir=self._folder / f"{name}-certificates"
        )
        return self._launch(name, name, flags, f"https://127.0.0.1:{port}", _CONTROLLER_MANAGER_STAGE)

    def _launch(self, program: str, name: str, flags: Sequence[str], url: str, stage: int) -> Launch:
        argv = (self._programs[program], *merged(flags, self._topology.flags.get(program, ())))
        return Launch(name=name, argv=argv, url=url, stage=stage)

    def _address(self, scheme: str) -> str:
        return f"{scheme}://127.0.0.1:{self._ports.reserve()}"


def _http(credentials: Credentials) -> aiohttp.ClientSession:
    context = ssl.create_default_context(cafile=str(credentials.ca_file))
    context.load_cert_chain(credentials.admin.certificate_file, credentials.admin.key_file)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context), trust_env=False)
