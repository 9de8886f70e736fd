"""Where the control plane of a test runs: in this process (see `embedded_host`), in processes, or in a cluster.

Guarantees: a test reaches any host from every loop that the host can serve; otherwise the error says why not. Nothing
that a host started outlives `end`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Iterable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

from steersman.client import (
    Client,
    Config,
    Credentials,
    StaticCredentials,
    credentials_for,
    discover_config,
    transport_for,
)
from steersman.errors import ConfigError, NotFound
from steersman.kinds.apiextensions_v1 import CustomResourceDefinition
from steersman.kinds.core_v1 import Namespace
from steersman.objects import Object, ObjectMeta
from steersman.testing.engine.engine import Engine
from steersman.testing.engine.errors import EngineError
from steersman.testing.loop_bridge import closing
from steersman.testing.loop_thread import LoopThread
from steersman.testing.webhook_registration import answered_on_a_port
from steersman.transport import Transport
from steersman.webhooks import WebhookServer

#: How long a store must be unchanged to count as settled, if its controllers cannot be queried.
_QUIET = 0.3


class Host(ABC):
    """A running control plane, or one that starts on first use."""

    #: The value for ``--steersman-server``.
    name: str
    #: Whether a test's objects remain after it.
    lasting = True
    #: Whether it uses the time of the test's own loop.
    shares_time = False

    def __init__(self) -> None:
        self.installed: set[type[Object]] = set()

    @property
    @abstractmethod
    def url(self) -> str:
        """Its address."""

    @property
    @abstractmethod
    def kubeconfig(self) -> Path:
        """A kubeconfig for its administrator."""

    @property
    def credentials(self) -> Credentials:
        """The administrator's credentials."""
        return StaticCredentials()

    @abstractmethod
    def opened(self) -> AbstractAsyncContextManager[Transport]:
        """A transport to it from the running loop, for a block."""

    async def install(self, client: Client, classes: Iterable[type[Object]]) -> None:
        """Install kinds."""
        missing = [each for each in classes if each not in self.installed]
        if missing:
            await client.install(*missing)
            self.installed.update(missing)

    async def settled(self, client: Client) -> None:
        """Wait until its controllers are idle; by default, until nothing was written for a while."""
        before = ""
        while before != (before := await revision_of(client)):  # noqa: ASYNC110 - no event says "nothing happens"
            await asyncio.sleep(_QUIET)

    def webhooks(self, server: WebhookServer, client: Client, name: str) -> AbstractAsyncContextManager[None]:
        """Call these webhooks for a block; by default the server calls a port of this machine."""
        return answered_on_a_port(server, client, name)

    @abstractmethod
    def make_namespace(self, name: str) -> None:
        """Ensure that a namespace exists before the first request."""

    @abstractmethod
    def clean_up(self, *, namespace: str = "", group: str = "") -> Future[None] | None:
        """Start deleting a namespace, or the definitions of an API group."""

    def end(self) -> None:  # noqa: B027 - a host that started nothing stops nothing
        """Stop everything it started."""


async def revision_of(client: Client) -> str:
    """The store's current revision."""
    return (await client.metadata.list(Namespace, fields={"metadata.name": "default"})).resource_version


async def create_namespace(client: Client, namespace: str) -> None:
    """Create a namespace."""
    await client.create(Namespace(metadata=ObjectMeta(name=namespace)))


async def remove(client: Client, namespace: str, group: str) -> None:
    """Start deleting a namespace, and the definitions of a group."""
    if namespace:
        await _gone(client.delete(Namespace, namespace))
    if group:
        for each in await client.list(CustomResourceDefinition):
            if each.spec.group == group:
                await _gone(client.delete(each))


async def _gone(deleting: Awaitable[object]) -> None:
    with suppress(NotFound):  # the test has already deleted it
        await deleting


class RemoteHost(Host):
    """A server reached over the network."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self._credentials = credentials_for(config)

    @property
    def url(self) -> str:
        return self.config.server

    @property
    def credentials(self) -> Credentials:
        return self._credentials

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Transport]:
        async with closing(transport_for(self.config, self._credentials)) as transport:
            yield transport


class EngineHost(RemoteHost):
    """The engine of the test run."""

    name = "engine"

    def __init__(self, engine: Engine) -> None:
        super().__init__(discover_config(kubeconfig=engine.kubeconfig))
        self.engine = engine

    @property
    def kubeconfig(self) -> Path:
        return self.engine.kubeconfig

    async def install(self, client: Client, classes: Iterable[type[Object]]) -> None:
        """Install kinds, and make its garbage collector discover them."""
        before = len(self.installed)
        await super().install(client, classes)
        if len(self.installed) > before and not self.engine.is_existing_cluster:
            try:
                controllers = self.engine.controller_manager
            except EngineError:
                return  # started without one
            # The garbage collector discovers new kinds on start, and then every 30 seconds.
            await controllers.restart()

    def make_namespace(self, name: str) -> None:
        self.engine.submit(self.engine.create_namespace(name)).result()

    def clean_up(self, *, namespace: str = "", group: str = "") -> Future[None]:
        engine = self.engine
        cleaned = engine.submit(engine.delete_namespace(namespace) if namespace else engine.delete_crds(group))
        if engine.is_existing_cluster:
            cleaned.result()
        return cleaned


class ExistingHost(RemoteHost):
    """An existing cluster, given by kubeconfig or address."""

    def __init__(self, where: str) -> None:
        self.name = where
        self._kubeconfig = None if "://" in where else Path(where).expanduser()
        super().__init__(_config_of(where, self._kubeconfig))
        self._thread = LoopThread(self._client, name="steersman-existing-cluster")
        self._housekeeper = self._thread.start().result()

    def _client(self) -> AbstractAsyncContextManager[Client]:
        return Client.connect(self.config)

    @property
    def kubeconfig(self) -> Path:
        if self._kubeconfig is None:
            raise EngineError(
                f"--steersman-server={self.name} is an address, which has no kubeconfig: pass the path of a kubeconfig "
                "instead, or use control_plane.url"
            )
        return self._kubeconfig

    def clean_up(self, *, namespace: str = "", group: str = "") -> Future[None]:
        cleaned = self._thread.submit(remove(self._housekeeper, namespace, group))
        cleaned.result()  # a lasting cluster is cleaned before the test counts as done
        return cleaned

    def make_namespace(self, name: str) -> None:
        self._thread.submit(create_namespace(self._housekeeper, name)).result()

    def end(self) -> None:
        self._thread.stop().result()


def _config_of(where: str, kubeconfig: Path | None) -> Config:
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise EngineError(
                f"--steersman-server={where}: no such file; pass embedded, engine, the path of a kubeconfig, or the "
                "address of an API server"
            )
        return discover_config(kubeconfig=kubeconfig)
    # The address of the current context needs its credentials; any other, such as kubectl proxy's, needs none.
    try:
        known = discover_config()
    except ConfigError:
        return Config(where)
    return known if known.server.rstrip("/") == where.rstrip("/") else Config(where)
