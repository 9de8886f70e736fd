"""A control plane: the API server with its own controllers, as one object.

Guarantees
- ``async with`` owns everything. When the block begins, the server answers, every controller works, and existing
  namespaces are complete. When it ends, nothing is left running.
- `settled` returns when the controllers have finished all work caused by earlier writes.
- Controllers decide on responses of the server and act through requests, like any other client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from steersman.aio import Supervisor
from steersman.apiserver import ApiServer, ServerOptions, User
from steersman.client import Client
from steersman.controlplane.assembly import Assembled, chosen
from steersman.controlplane.new_objects import NewObjects
from steersman.transport import InProcessTransport

if TYPE_CHECKING:
    from steersman.apiserver import CertificateSource

_log = logging.getLogger("steersman.controlplane")

#: The name under which the administrator's client owns fields.
FIELD_MANAGER = "steersman"
#: Seconds to wait at the start for initial work, and between two log lines about pending work.
_FIRST_LOOK, _PATIENCE = 1.0, 10.0


class ControlPlane:
    """A Kubernetes API server in this process, with controllers for garbage collection, namespaces and service accounts.

    ```python
    async with ControlPlane(resources=[Site]) as plane:
        await plane.client.create(site)
        await plane.client.delete(site)
        await plane.settled()  # its children are gone
    ```

    ``controllers`` are names from kube-controller-manager; by default all that are available. With a ``port`` (0: any free
    one) it also serves TLS, on loopback or another ``host``, and writes the administrator's ``kubeconfig``, with a client
    certificate or the given ``token``. A ``folder`` stores objects, certificates and the kubeconfig. ``certificates`` is for
    `serve`. The other options are those of `ApiServer`.
    """

    def __init__(
        self,
        *,
        controllers: Iterable[str] | None = None,
        port: int | None = None,
        host: str = "127.0.0.1",
        folder: Path | str | None = None,
        kubeconfig: Path | str | None = None,
        token: str | None = None,
        certificates: CertificateSource | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        if port is None and kubeconfig is not None:
            raise ValueError("kubeconfig needs a port to point at: pass port=0 for any free one")
        #: The names of its controllers.
        self.controllers = chosen(controllers)
        if options.get("storage") is None and folder is not None:
            options["storage"] = Path(folder) / "journal"
        self.server = ApiServer(**options)
        self._new_objects = NewObjects()
        self.server.admission.add(self._new_objects)
        #: Its address, and the administrator's kubeconfig; None without a port.
        self.url: str | None = None
        self.kubeconfig: Path | None = None
        self._port, self._host = port, host
        self._folder = folder
        self._kubeconfig = kubeconfig
        self._token = token
        self._certificates = certificates
        self._stack: AsyncExitStack | None = None
        self._client: Client | None = None
        self._assembled: Assembled | None = None
        self._news = asyncio.Event()

    @property
    def client(self) -> Client:
        """The administrator's client."""
        if self._client is None:
            raise RuntimeError("the control plane is not running; use it within its 'async with'")
        return self._client

    def transport(self, user: User | str | None = None) -> InProcessTransport:
        """A transport to the server without a socket, as administrator or as ``user``: see `ApiServer.transport`."""
        return self.server.transport(user)

    def refuse_creates(self, why: str) -> None:
        """Answer every create with 403 and this reason, as for a control plane that stops; Events are still created.

        An empty reason allows creates again.
        """
        self._new_objects.refusal = why

    # lifetime

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise RuntimeError("this ControlPlane is already running; make another one for a second control plane")
        stack = AsyncExitStack()
        try:
            await self._start(stack)
        except BaseException:
            await stack.aclose()
            self._forget()
            raise
        self._stack = stack
        return self

    async def __aexit__(self, *error: Any) -> None:
        stack, self._stack = self._stack, None
        try:
            if stack is not None:
                await stack.__aexit__(*error)
        finally:
            self._forget()

    async def _start(self, stack: AsyncExitStack) -> None:
        authority = await self._serve(stack)
        client = Client(self.server.transport(), server=self.url or "", field_manager=FIELD_MANAGER)
        self._client = await stack.enter_async_context(client)
        assembled = Assembled(self.server, self.controllers, authority=authority, on_news=self._news.set)
        for transport in assembled.transports:
            await stack.enter_async_context(transport)
        tasks = await stack.enter_async_context(Supervisor())
        stack.callback(tasks.cancel)
        await assembled.changes.begin()
        for controller in assembled.controllers:
            tasks.start(controller.run(), name=controller.name)
        tasks.start(assembled.changes.run(), name="control plane: changes")
        self._assembled = assembled
        try:
            async with asyncio.timeout(_FIRST_LOOK):
                await self.settled()
        except TimeoutError:
            _log.info("the controllers are still working: %s", await assembled.left())

    async def _serve(self, stack: AsyncExitStack) -> bytes | None:
        """Start the server, on its port if it has one; returns the certificate of its authority."""
        if self._port is None:
            await stack.enter_async_context(self.server)
            return None
        from steersman.apiserver import serve  # noqa: PLC0415 - needs aiohttp, and certificates an extra

        serving = serve(
            self.server,
            port=self._port,
            host=self._host,
            folder=self._folder,
            kubeconfig=self._kubeconfig,
            token=self._token,
            certificates=self._certificates,
        )
        served = await stack.enter_async_context(serving)
        self.url, self.kubeconfig = served.url, served.kubeconfig
        return served.authority

    def _forget(self) -> None:
        self._client = self._assembled = self.url = self.kubeconfig = None

    # waiting

    async def settled(self) -> None:
        """Wait until the controllers have finished all work caused by earlier writes.

        - Consequences are included: children of children, the end of a namespace.
        - A controller whose requests fail keeps retrying, and this keeps waiting; bound the time with
          ``asyncio.timeout``.
        - Objects that wait for someone else, such as those with a finalizer, are not waited for.
        """
        assembled = self._assembled
        if assembled is None:
            raise RuntimeError("the control plane is not running; use it within its 'async with'")
        while True:
            self._news.clear()
            await assembled.changes.wait_for(await self.server.storage.revision())
            if not await assembled.is_busy():
                if assembled.changes.reached >= await self.server.storage.revision():
                    return
                # The writes of the last reconcile have not been seen yet.
                continue
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._news.wait()
            except TimeoutError:
                _log.warning("still waiting for %s", await assembled.left())
