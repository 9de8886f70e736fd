"""Where the control plane of a test runs: in this process (see `embedded_host`), in processes, or somewhere already.

Guarantees: whatever it is, a test reaches it from any loop that the host can serve, or is told in words why not; nothing
that a host started outlives `end`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Iterable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

from steersman.client import Client, Config
from steersman.client.connecting import transport_for
from steersman.client.credentials import Credentials, StaticCredentials
from steersman.client.discovery_order import discover_config
from steersman.client.identity import credentials_for
from steersman.kinds.apiextensions_v1 import CustomResourceDefinition
from steersman.kinds.core_v1 import Namespace
from steersman.objects import Object, ObjectMeta
from steersman.objects.errors import ConfigError, NotFound
from steersman.testing.crossing import closing
from steersman.testing.engine import Engine
from steersman.testing.errors import EngineError
from steersman.testing.loop_thread import LoopThread
from steersman.transport import Transport

#: For how long a store must stand still to count as settled, where its controllers cannot be asked.
_QUIET = 0.3


class Host(ABC):
    """A running control plane, or one that starts when it is first used."""

    #: As ``--steersman-server`` has it.
    name: str
    #: Whether what a test made is still there after it.
    lasting = True
    #: Whether its time is that of the test's own loop.
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
        """Who the administrator is, on every request."""
        return StaticCredentials()

    @abstractmethod
    def opened(self) -> AbstractAsyncContextManager[Transport]:
        """The way to it from the running loop, for a block."""

    async def install(self, client: Client, classes: Iterable[type[Object]]) -> None:
        """Have it serve kinds."""
        missing = [each for each in classes if each not in self.installed]
        if missing:
            await client.install(*missing)
            self.installed.update(missing)

    async def settled(self, client: Client) -> None:
        """Wait until its controllers have nothing left to do; here: until nothing was written for a while."""
        before = ""
        while before != (before := await revision_of(client)):  # noqa: ASYNC110 - nobody tells when nothing happens
            await asyncio.sleep(_QUIET)

    @abstractmethod
    def make_namespace(self, name: str) -> None:
        """See to it that a namespace is there when the first request comes."""

    @abstractmethod
    def clean_up(self, *, namespace: str = "", group: str = "") -> Future[None] | None:
        """Begin to delete a namespace, or the definitions of an API group."""

    def end(self) -> None:  # noqa: B027 - what is somebody else's stays
        """Stop what was started."""


async def revision_of(client: Client) -> str:
    """The store's present revision."""
    return (await client.metadata.list(Namespace, fields={"metadata.name": "default"})).resource_version


async def create_namespace(client: Client, namespace: str) -> None:
    """Make a namespace."""
    await client.create(Namespace(metadata=ObjectMeta(name=namespace)))


async def remove(client: Client, namespace: str, group: str) -> None:
    """Begin to delete a namespace, and the definitions of a group."""
    if namespace:
        await _gone(client.delete(Namespace, namespace))
    if group:
        for each in await client.list(CustomResourceDefinition):
            if each.spec.group == group:
                await _gone(client.delete(each))


async def _gone(deleting: Awaitable[object]) -> None:
    with suppress(NotFound):  # the test was tidy
        await deleting


class RemoteHost(Host):
    """A server that is reached over the network with a configuration."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self._credentials = credentials_for(config)

    @property
    def url(self) -> str:
        """Its address."""
        return self.config.server

    @property
    def credentials(self) -> Credentials:
        """Who the administrator is."""
        return self._credentials

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Transport]:
        """The way to it."""
        async with closing(transport_for(self.config, self._credentials)) as transport:
            yield transport


class EngineHost(RemoteHost):
    """The run's engine."""

    name = "engine"

    def __init__(self, engine: Engine) -> None:
        super().__init__(discover_config(kubeconfig=engine.kubeconfig))
        self.engine = engine

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.engine.kubeconfig

    async def install(self, client: Client, classes: Iterable[type[Object]]) -> None:
        """Have it serve kinds, and its garbage collector know them."""
        before = len(self.installed)
        await super().install(client, classes)
        if len(self.installed) > before and not self.engine.is_existing_cluster:
            try:
                controllers = self.engine.controller_manager
            except EngineError:
                return  # it was asked for without
            # The garbage collector looks for new kinds when it starts, and then every 30 seconds.
            await controllers.restart()

    def make_namespace(self, name: str) -> None:
        """Make it now."""
        self.engine.submit(self.engine.create_namespace(name)).result()

    def clean_up(self, *, namespace: str = "", group: str = "") -> Future[None]:
        """Begin to delete."""
        engine = self.engine
        cleaned = engine.submit(engine.delete_namespace(namespace) if namespace else engine.delete_crds(group))
        if engine.is_existing_cluster:
            cleaned.result()
        return cleaned


class ExistingHost(RemoteHost):
    """A cluster that was there already, by its kubeconfig or its address."""

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
        """The administrator's kubeconfig."""
        if self._kubeconfig is None:
            raise EngineError(
                f"--steersman-server={self.name} is an address, so there is no kubeconfig of it: give the kubeconfig "
                "instead, or use control_plane.url"
            )
        return self._kubeconfig

    def clean_up(self, *, namespace: str = "", group: str = "") -> Future[None]:
        """Begin to delete."""
        cleaned = self._thread.submit(remove(self._housekeeper, namespace, group))
        cleaned.result()  # what stays is cleaned before the test counts as done
        return cleaned

    def make_namespace(self, name: str) -> None:
        """Make it now."""
        self._thread.submit(create_namespace(self._housekeeper, name)).result()

    def end(self) -> None:
        """Stop what was started."""
        self._thread.stop().result()


def _config_of(where: str, kubeconfig: Path | None) -> Config:
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise EngineError(
                f"--steersman-server={where}: there is no such file; say embedded, engine, the path of a kubeconfig, or "
                "the address of an API server"
            )
        return discover_config(kubeconfig=kubeconfig)
    # The address of the present context needs its credentials; any other, such as that of kubectl proxy, has none.
    try:
        known = discover_config()
    except ConfigError:
        return Config(where)
    return known if known.server.rstrip("/") == where.rstrip("/") else Config(where)
