"""Where the control plane of a test runs: in this process (`embedded_host`), in processes or a cluster (`remote_hosts`).

Guarantees: a test reaches any host from every loop that the host can serve; otherwise the error says why not. Nothing
that a host started outlives `end`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

from steersman.client import Client, Credentials, StaticCredentials
from steersman.errors import NotFound
from steersman.kinds.core_v1 import Namespace
from steersman.objects import Kind, Object, ObjectMeta
from steersman.testing.write_watch import WriteWatch
from steersman.transport import Transport
from steersman.webhooks import WebhookServer

#: How long a store must be unchanged to count as settled, if its controllers cannot be queried.
_QUIET = 0.3
#: Not the class, which few tests need.
_CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")


class Host(ABC):
    """A running control plane, or one that starts on first use."""

    #: The value for ``--steersman-server``.
    name: str
    #: Whether a test's objects remain after it.
    lasting = True
    #: Whether it uses the time of the test's own loop.
    shares_time = False
    #: Whether it exists for tests alone, so that a test may replace definitions of earlier ones.
    disposable = True

    def __init__(self) -> None:
        #: The kinds that were installed through it.
        self.installed: set[type[Object]] = set()
        #: Records writes, whichever way they come.
        self.watch = WriteWatch()

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

    async def install(self, client: Client, classes: Iterable[type[Object]]) -> bool:
        """Install kinds that were not installed, or whose definition was deleted since. Returns whether there was one."""
        missing = [each for each in classes if each not in self.installed or not await _is_defined(client, each)]
        if missing:
            await client.install(*missing, replace=self.disposable)
            self.installed.update(missing)
        return bool(missing)

    async def settled(self, client: Client) -> None:
        """Wait until its controllers are idle; by default, until nothing was written for a while."""
        before = ""
        while before != (before := await revision_of(client)):  # noqa: ASYNC110 - no event says "nothing happens"
            await asyncio.sleep(_QUIET)

    def webhooks(self, server: WebhookServer, client: Client, name: str) -> AbstractAsyncContextManager[None]:
        """Call these webhooks for a block; by default the server calls a port of this machine."""
        from steersman.testing.webhook_registration import answered_on_a_port  # noqa: PLC0415 - few tests have webhooks

        return answered_on_a_port(server, client, name)

    @abstractmethod
    def make_namespace(self, name: str) -> None:
        """Ensure that a namespace exists before the first request."""

    @abstractmethod
    def clean_up(self, *, namespace: str = "", group: str = "") -> Future[None] | None:
        """Start deleting a namespace, or the definitions of an API group."""

    def end(self) -> None:  # noqa: B027 - a host that started nothing stops nothing
        """Stop everything it started."""


async def _is_defined(client: Client, kind: type[Object]) -> bool:
    """Whether the definition of a custom kind is there."""
    name = f"{kind.__resource__.plural}.{kind.__resource__.group}"
    return await client.metadata.find(_CRD, name) is not None


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
        from steersman.kinds.apiextensions_v1 import CustomResourceDefinition  # noqa: PLC0415 - few tests have a group

        for each in await client.list(CustomResourceDefinition):
            if each.spec.group == group:
                await _gone(client.delete(each))


async def _gone(deleting: Awaitable[object]) -> None:
    with suppress(NotFound):  # the test has already deleted it
        await deleting
