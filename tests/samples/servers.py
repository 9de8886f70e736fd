"""The embedded API server as tests use it: on a port, over TLS, with RBAC and a kubeconfig, as ``steersman serve`` has it.

It runs in a thread, on a loop of its own: a test that blocks its loop does not stop its server, and the server's tasks and
connections are not taken for the test's. The tests of a module share one, each in a namespace of its own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Generator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from steersman import Client
from steersman.aio import name_suffix
from steersman.apiserver import ApiServer, User, serve
from steersman.apiserver.admission.unsupported_features import REFUSED
from steersman.objects import Object
from steersman.testing.engine.environment import Environment
from steersman.testing.engine.kubectl import run_kubectl
from steersman.testing.loop_thread import LoopThread
from steersman.wire import HttpRequest

T = TypeVar("T")


class Embedded:
    """A running embedded server: what `steersman.testing.Engine` offers, as far as both have it."""

    #: Group and resource of what it does not take.
    refused = frozenset(REFUSED)

    def __init__(self, server: ApiServer, url: str, kubeconfig: Path) -> None:
        self._server = server
        self._thread: LoopThread[Embedded] | None = None
        self.url = url
        #: As administrator; a second user in it, ``admin-token``, is the same one with a token.
        self.kubeconfig = kubeconfig

    @staticmethod
    @contextmanager
    def start(folder: Path) -> Generator[Embedded]:
        """Run a server for a block."""
        thread = LoopThread(partial(_life, folder), name="embedded API server")
        embedded = thread.start().result()
        embedded._thread = thread
        try:
            yield embedded
        finally:
            thread.stop().result()

    def client(self, **options: Any) -> AbstractAsyncContextManager[Client]:
        """A client of the server, as its administrator."""
        return Client.connect(kubeconfig=self.kubeconfig, **options)

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl as administrator; what it printed."""
        program = Environment.read().program("kubectl")
        return await run_kubectl(program, arguments, kubeconfig=self.kubeconfig, stdin=stdin)

    async def install(self, *classes: type[Object]) -> None:
        """Serve kinds from now on: their CRDs are applied, as `Client.install` does it everywhere."""

        async def apply() -> None:
            async with Client(self._server.transport(), field_manager="tests") as client:
                await client.install(*classes)

        await self._on_its_loop(apply())

    async def create_namespace(self, name: str) -> None:
        """Create a namespace."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self._send(HttpRequest("POST", "/api/v1/namespaces", body=msgspec.json.encode(body)))

    async def delete_namespace(self, name: str) -> None:
        """Delete a namespace; it stays, terminating, as on an engine without a controller manager."""
        await self._send(HttpRequest("DELETE", f"/api/v1/namespaces/{name}"))

    async def forget(self) -> None:
        """Let it forget all history, as an engine does that is compacted and restarted."""
        await self._on_its_loop(self._server.forget())

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run something on the server's own loop."""
        assert self._thread is not None
        return self._thread.submit(work)

    async def _on_its_loop(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._thread is not None
        return await self._thread.call(work)

    async def _send(self, request: HttpRequest) -> None:
        """Ask the server on its own loop, whichever loop this is."""
        answered = await self._on_its_loop(self._server.handle(request))
        assert answered.status < 300, answered.body


@asynccontextmanager
async def _life(folder: Path) -> AsyncGenerator[Embedded]:
    token = f"token-{name_suffix(10)}"
    server = ApiServer(authorizer="rbac", tokens={token: User(name="admin", groups=("system:masters",))})
    async with serve(server, folder=folder, grace=0.1) as served:
        document = yaml.safe_load(served.kubeconfig.read_text())
        document["users"].append({"name": "admin-token", "user": {"token": token}})
        served.kubeconfig.write_text(yaml.safe_dump(document))
        yield Embedded(server, served.url, served.kubeconfig)
