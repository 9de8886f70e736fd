"""A control plane in the test process: on the loop of one test, or in a thread for all loops.

Guarantees
- On a test's loop, it starts with the first request and ends with the test, or with the loop if that closes first.
- In a thread, it serves every loop, one after the other or concurrently.
- It opens a port only when url or kubeconfig is read; the port has its own thread.
- Using it from a loop that it cannot serve raises an error that names the right one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from steersman.aio import call_on
from steersman.client import Client
from steersman.controlplane import ControlPlane
from steersman.testing.background_context import BackgroundContext
from steersman.testing.hosts import Host, create_namespace, remove
from steersman.testing.loop_bridge import LoopBridgeTransport, closing, handler_over
from steersman.testing.loop_thread import LoopThread
from steersman.testing.write_watch import WatchedTransport
from steersman.transport import Transport
from steersman.webhooks import WebhookServer


class WrongLoop(RuntimeError):
    """A control plane bound to one event loop was used from another."""


class EmbeddedHost(Host):
    """A control plane in this process: on the first user's loop, or in a thread for all loops."""

    name = "embedded"

    def __init__(self, options: dict[str, Any], *, in_thread: bool, lasting: bool = True) -> None:
        super().__init__()
        self._options: dict[str, Any] = {"authorizer": "rbac", **options}
        self._stack = ExitStack()
        self._port: tuple[str, Path] | None = None
        self.lasting, self.shares_time = lasting and in_thread, not in_thread
        #: Namespaces to create on start.
        self._wanted: list[str] = []
        self._context: BackgroundContext[ControlPlane] | None = None
        self._thread: LoopThread[tuple[ControlPlane, asyncio.AbstractEventLoop]] | None = None
        if in_thread:
            self._thread = LoopThread(self._thread_life, name="steersman-control-plane")
            self._plane, self._loop = self._thread.start().result()
        else:
            self._context = BackgroundContext(self._life, name="the control plane of the test")

    @asynccontextmanager
    async def _life(self) -> AsyncGenerator[ControlPlane]:
        async with ControlPlane(**self._options) as plane:
            for name in self._wanted:
                await create_namespace(plane.client, name)
            yield plane

    @asynccontextmanager
    async def _thread_life(self) -> AsyncGenerator[tuple[ControlPlane, asyncio.AbstractEventLoop]]:
        async with self._life() as plane:
            yield plane, asyncio.get_running_loop()

    def make_namespace(self, name: str) -> None:
        """Create it now, or when the control plane starts."""
        if self._thread is None:
            self._wanted.append(name)
        else:
            self._thread.submit(create_namespace(self._plane.client, name)).result()

    async def plane(self) -> ControlPlane:
        """The control plane itself, started if necessary."""
        if self._context is None:
            return self._plane
        if self._context.loop not in {None, asyncio.get_running_loop()}:
            raise WrongLoop(
                "this control plane belongs to the event loop that used it first, and this is another loop. Under "
                "pytest-asyncio every test has its own loop by default, and an async fixture of wider scope has yet "
                "another: give both the same loop_scope, or run the server in a thread for all loops with "
                'steersman_scope = "module" or "session" in the pytest configuration'
            )
        return await self._context.start()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Transport]:
        inner = (await self.plane()).transport()
        transport: Transport = inner if self._thread is None else LoopBridgeTransport(inner, self._loop)
        async with closing(transport):
            yield transport

    async def settled(self, client: Client) -> None:
        del client
        plane = await self.plane()
        await (plane.settled() if self._thread is None else self._thread.call(plane.settled()))

    @asynccontextmanager
    async def webhooks(self, server: WebhookServer, client: Client, name: str) -> AsyncGenerator[None]:
        """Call these webhooks for a block, without a socket."""
        from steersman.testing.webhook_registration import answered_in_process  # noqa: PLC0415 - few tests have webhooks

        calls = (await self.plane()).server.webhooks
        async with answered_in_process(server, client, name, calls.answer_in_process):
            yield

    @property
    def url(self) -> str:
        return self._listening()[0]

    @property
    def kubeconfig(self) -> Path:
        return self._listening()[1]

    def _listening(self) -> tuple[str, Path]:
        """Open a port, in its own thread: the caller need not be on a loop."""
        if self._port is None:
            loop = self._loop if self._thread is not None else _running_loop()
            import tempfile  # noqa: PLC0415 - a server without a port needs no folder

            folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="steersman-control-plane-")))
            thread = LoopThread(partial(_listening, self, loop, folder), name="steersman-control-plane-port")
            self._stack.callback(lambda: thread.stop().result())
            self._port = thread.start().result()
        return self._port

    def clean_up(self, *, namespace: str = "", group: str = "") -> Future[None] | None:
        if self._thread is None:
            return None
        return self._thread.submit(remove(self._plane.client, namespace, group))

    def end(self) -> None:
        self._stack.close()
        if self._context is not None:
            self._context.end()
        if self._thread is not None:
            self._thread.stop().result()


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise WrongLoop(
            "the control plane of an async test opens its port on demand, which needs a running loop: read kubeconfig"
            " and url inside the test or an async fixture"
        ) from None


@asynccontextmanager
async def _listening(
    host: EmbeddedHost, loop: asyncio.AbstractEventLoop, folder: Path
) -> AsyncGenerator[tuple[str, Path]]:
    from steersman.apiserver.serving import Authority, write_kubeconfig  # noqa: PLC0415 - few tests need certificates
    from steersman.transport import HttpListener, ServerTls  # noqa: PLC0415 - imports aiohttp's server

    found: list[Transport] = []

    async def way() -> Transport:
        if not found:
            inner = LoopBridgeTransport((await call_on(loop, host.plane())).transport(), loop)
            found.append(WatchedTransport(inner, host.watch))
        return found[0]

    async with AsyncExitStack() as stack:
        authority = Authority(folder)
        own = authority.server()
        tls = ServerTls(
            certificate_data=own.certificate,
            key_data=own.key,
            client_ca_data=authority.certificate,
            require_client=False,
        )
        listener = await stack.enter_async_context(HttpListener(handler_over(way), tls=tls, grace=0.1))
        path = folder / "kubeconfig"
        admin = authority.client("admin", groups=("system:masters",))
        write_kubeconfig(path, url=listener.address, authority=authority.certificate, user=admin)
        yield listener.address, path
