"""Control planes reached over the network: the engine of the test run, or an existing cluster.

Guarantees: as for every host. A test on the embedded control plane does not import this module, which needs aiohttp and
cryptography.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from steersman.client import Client, Config, Credentials, credentials_for, discover_config, transport_for
from steersman.errors import ConfigError
from steersman.objects import Object
from steersman.testing.engine.engine import Engine
from steersman.testing.engine.errors import EngineError
from steersman.testing.hosts import Host, create_namespace, remove
from steersman.testing.loop_bridge import closing
from steersman.testing.loop_thread import LoopThread
from steersman.transport import Transport


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
        self.disposable = not engine.is_existing_cluster

    @property
    def kubeconfig(self) -> Path:
        return self.engine.kubeconfig

    async def install(self, client: Client, classes: Iterable[type[Object]]) -> bool:
        """Install kinds, and make its garbage collector discover them."""
        installed = await super().install(client, classes)
        if installed and not self.engine.is_existing_cluster:
            try:
                controllers = self.engine.controller_manager
            except EngineError:
                return True  # started without one
            # The garbage collector discovers new kinds on start, and then every 30 seconds.
            await controllers.restart()
        return installed

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

    disposable = False

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
