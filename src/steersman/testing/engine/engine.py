"""A real Kubernetes control plane for tests: kube-apiserver and etcd, ready in seconds and removed without a trace.

Guarantees:

- It is Kubernetes itself; nothing is imitated.
- No process outlives the test, however the test ends. The engine's directory is removed, except for the logs of a
  failed engine.
- An engine is not bound to an event loop: it may be started on one, used on many and stopped on another.
- Engines do not affect each other: each has its own ports, certificates, data and token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from steersman.testing.engine.assembly import running_cluster
from steersman.testing.engine.cluster import Cluster
from steersman.testing.engine.environment import Environment
from steersman.testing.engine.errors import EngineError
from steersman.testing.engine.existing_cluster import ExistingCluster, existing_cluster, find_kubectl
from steersman.testing.engine.flags import Topology
from steersman.testing.engine.kubectl import run_kubectl
from steersman.testing.engine.parts import EtcdMember, KubeApiServer, KubeControllerManager
from steersman.testing.loop_thread import LoopThread

if TYPE_CHECKING:
    from steersman.client import Client, ClientOptions

T = TypeVar("T")


class Engine:
    """A running kube-apiserver and etcd; made by `Engine.start`.

    ```python
    async with Engine.start() as engine, engine.client(field_manager="tests") as client:
        await client.install(Site)
    ```
    """

    def __init__(
        self,
        thread: LoopThread[Cluster | ExistingCluster],
        cluster: Cluster | ExistingCluster,
        environment: Environment,
    ) -> None:
        self._thread = thread
        self._cluster = cluster
        self._environment = environment

    @staticmethod
    def start(
        *,
        api_servers: int = 1,
        etcd_members: int = 1,
        controller_manager: bool = False,
        flags: Mapping[str, Sequence[str]] | None = None,
        kubernetes: str | None = None,
    ) -> EngineStart:
        """Start an engine for a block: ``async with Engine.start() as engine:``, or ``with`` outside of a loop.

        `flags` are per program: ``{"kube-apiserver": ["--etcd-compaction-interval=1s"]}``; a flag of the same name
        replaces ours. `kubernetes` is a minor version, such as ``1.35``, that ``tools/engine/build --kubernetes 1.35``
        has built; it goes before the variables for programs. These environment variables apply:

        - ``KUBEBUILDER_ASSETS``, ``TEST_ASSET_*``: the programs; by default those in the cache of tools/engine/build.
        - ``KUBEBUILDER_CONTROLPLANE_START_TIMEOUT``, ``_STOP_TIMEOUT``: how long to wait.
        - ``KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT=true``: show the output.
        - ``USE_EXISTING_CLUSTER=true``: start nothing, and use the cluster of the default kubeconfig.
        """
        topology = Topology(
            api_servers=api_servers, etcd_members=etcd_members, controller_manager=controller_manager, flags=flags or {}
        )
        return EngineStart(topology, Environment.read(kubernetes=kubernetes))

    def __repr__(self) -> str:
        return f"<Engine at {self.url}>"

    @property
    def url(self) -> str:
        """The address of the (first) API server."""
        return self._cluster.url

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig file for the (first) API server, as administrator, with mode 0600."""
        return self._cluster.kubeconfig

    @property
    def ca_file(self) -> Path:
        """The certificate of the authority that signed the API server's."""
        return self._own("ca_file").credentials.ca_file

    @property
    def admin_cert_file(self) -> Path:
        """The administrator's client certificate."""
        return self._own("admin_cert_file").credentials.admin.certificate_file

    @property
    def admin_key_file(self) -> Path:
        """The key of the administrator's client certificate."""
        return self._own("admin_key_file").credentials.admin.key_file

    @property
    def admin_token(self) -> str:
        """A bearer token of the administrator."""
        return self._own("admin_token").credentials.token

    @property
    def logs(self) -> Path:
        """The directory with one log per part."""
        return self._own("logs").logs

    @property
    def api_servers(self) -> tuple[KubeApiServer, ...]:
        """The API servers, to kill, pause and restart."""
        return self._own("api_servers").api_servers

    @property
    def etcd(self) -> tuple[EtcdMember, ...]:
        """The etcd members, to kill, pause and restart."""
        return self._own("etcd").etcd

    @property
    def controller_manager(self) -> KubeControllerManager:
        """The controller manager, if the engine was started with one."""
        manager = self._own("controller_manager").controller_manager
        if manager is None:
            raise EngineError("this engine has no controller manager: use Engine.start(controller_manager=True)")
        return manager

    def client(self, **options: Unpack[ClientOptions]) -> AbstractAsyncContextManager[Client]:
        """A client of the (first) API server: ``async with engine.client() as client:``; options as for `Client`."""
        from steersman.client import Client  # noqa: PLC0415 - an engine without a client does not pay for one

        return Client.connect(kubeconfig=self.kubeconfig, **options)

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl as administrator and return its output; raises `KubectlError` with its stderr."""
        program = find_kubectl(self._environment)
        return await run_kubectl(program, arguments, kubeconfig=self.kubeconfig, stdin=stdin)

    async def wait_ready(self) -> None:
        """Wait until every running, unpaused API server is ready."""
        await self._thread.call(self._own("wait_ready").wait_ready())

    async def compact(self, revision: int | None = None) -> int:
        """Compact etcd's history up to `revision`, by default up to now; return that revision.

        Older versions then get 410 Expired, unless an API server still has them in memory: restart it as well to be
        sure.
        """
        return await self._thread.call(self._own("compact").compact(revision))

    async def back_up(self) -> Path:
        """Copy etcd's data; return the directory with the copy, which is removed with the engine."""
        return await self._thread.call(self._own("back_up").back_up())

    async def restore(self, backup: Path) -> None:
        """Restore what `back_up` copied: all state, including resource versions, goes back to that moment.

        Kills etcd and the API servers, as restoring a real cluster does; returns when all are ready again.
        """
        await self._thread.call(self._own("restore").restore(backup))

    async def keep_logs(self) -> Path:
        """Keep the logs after the engine ends, and return their directory."""
        return await self._thread.call(self._own("keep_logs").keep_logs())

    async def create_namespace(self, name: str) -> None:
        """Create a namespace."""
        await self._thread.call(self._cluster.create_namespace(name))

    async def delete_namespace(self, name: str) -> None:
        """Delete a namespace, without waiting for its end; its content is deleted only if a controller manager runs."""
        await self._thread.call(self._cluster.delete_namespace(name))

    async def delete_crds(self, group: str) -> None:
        """Delete all custom resource definitions of an API group, without waiting for their end."""
        await self._thread.call(self._cluster.delete_crds(group))

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run `work` on the engine's loop, for code without a loop: ``engine.submit(engine.compact()).result()``."""
        return self._thread.submit(work)

    @property
    def is_existing_cluster(self) -> bool:
        """Whether this is an existing cluster (``USE_EXISTING_CLUSTER=true``)."""
        return isinstance(self._cluster, ExistingCluster)

    def _own(self, purpose: str) -> Cluster:
        if isinstance(self._cluster, Cluster):
            return self._cluster
        raise EngineError(
            f"Engine.{purpose} needs an engine that Steersman started: unset USE_EXISTING_CLUSTER to use it"
        )


class EngineStart:
    """An engine about to be started: enter it with ``async with``, or with ``with`` outside of a loop."""

    def __init__(self, topology: Topology, environment: Environment) -> None:
        self._topology = topology
        self._environment = environment
        self._thread: LoopThread[Cluster | ExistingCluster] | None = None
        self._cluster: Cluster | ExistingCluster | None = None

    async def __aenter__(self) -> Engine:
        thread = self._new_thread()
        try:
            return self._engine(thread, await asyncio.wrap_future(thread.start()))
        except BaseException:
            await asyncio.wrap_future(thread.stop())
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _beside(error):
            await asyncio.wrap_future(self._submit_end(error))

    def __enter__(self) -> Engine:
        thread = self._new_thread()
        try:
            return self._engine(thread, thread.start().result())
        except BaseException:
            thread.stop().result()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _beside(error):
            self._submit_end(error).result()

    def _new_thread(self) -> LoopThread[Cluster | ExistingCluster]:
        if self._thread is not None:
            raise RuntimeError("an EngineStart can be entered once: call Engine.start() again for another engine")
        self._thread = LoopThread(self._life, name="steersman-engine")
        return self._thread

    def _life(self) -> AbstractAsyncContextManager[Cluster | ExistingCluster]:
        assert self._thread is not None
        if self._environment.use_existing_cluster:
            return existing_cluster(self._environment)
        return running_cluster(self._topology, self._environment, self._thread)

    def _engine(self, thread: LoopThread[Cluster | ExistingCluster], cluster: Cluster | ExistingCluster) -> Engine:
        self._cluster = cluster
        return Engine(thread, cluster, self._environment)

    def _submit_end(self, error: BaseException | None) -> Future[None]:
        assert self._thread is not None
        # An early end of a test (a cancellation, Ctrl-C, a skip) is not a failure to investigate.
        if isinstance(error, Exception) and isinstance(self._cluster, Cluster):
            self._thread.submit(_keep_logs(self._cluster, error))
        return self._thread.stop()


async def _keep_logs(cluster: Cluster, error: Exception) -> None:
    error.add_note(f"the engine's logs are kept in {await cluster.keep_logs()}")


@contextmanager
def _beside(error: BaseException | None) -> Generator[None]:
    """Raise a failure of the engine's end, or add it as a note to the block's own failure, which matters more."""
    try:
        yield
    except EngineError as failure:
        if error is None:
            raise
        error.add_note(str(failure))
