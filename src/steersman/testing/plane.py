"""The control plane of a test: one interface for every server.

Guarantees
- The same test runs on the embedded control plane, on the engine and on an existing cluster.
- Each test has its own namespace, which is also the default of bare names. Its objects are deleted after the test.
- A control plane on the test's own loop starts with the first request; a test without requests does not wait for it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Unpack

from steersman._version import __version__
from steersman.client import Client, ClientOptions, ImpersonatingCredentials, Impersonation
from steersman.controller import Blueprint, SupportsBlueprint
from steersman.kinds.core_v1 import Namespace
from steersman.manager import Manager
from steersman.objects import Object, ObjectMeta
from steersman.testing.drain import drained
from steersman.testing.hosts import Host
from steersman.testing.loop_bridge import LateTransport
from steersman.testing.operators import Operator, manager_of, running
from steersman.testing.write_watch import WatchedTransport, Writes
from steersman.webhooks import Hook


class Plane:
    """The value of the fixture ``control_plane``.

    ```python
    async def test_a_site_gets_a_deployment(control_plane):
        async with control_plane.running(manager):
            await control_plane.client.create(Site(...))
            await eventually(control_plane.client, Deployment, "home", has={"spec": {"replicas": 2}})
    ```
    """

    def __init__(self, host: Host, *, namespace: str = "default") -> None:
        self._host = host
        #: The test's own namespace, the default of bare names.
        self.namespace = namespace
        self._namespaces: list[str] = []
        if namespace != "default":
            host.make_namespace(namespace)
            self._namespaces.append(namespace)
        self._watch = host.watch
        self._transport = LateTransport(host.opened, name="the transport to the control plane")
        #: The administrator's client.
        self.client = self._client({}, None)

    def __repr__(self) -> str:
        return f"<control plane ({self.server}), namespace {self.namespace}>"

    # identity and address

    @property
    def server(self) -> str:
        """The kind of server: ``embedded``, ``engine``, or the value of ``--steersman-server``."""
        return self._host.name

    @property
    def shares_time(self) -> bool:
        """Whether the server runs on the test's own loop, so that a clock can skip its time too."""
        return self._host.shares_time

    @property
    def url(self) -> str:
        """The server's address; the embedded server starts listening when it is first read."""
        return self._host.url

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig for the administrator, for kubectl and any other program."""
        return self._host.kubeconfig

    def client_as(self, user: str, *, groups: Iterable[str] = (), **options: Unpack[ClientOptions]) -> Client:
        """A client as another user, such as ``system:serviceaccount:shop:site-operator``."""
        return self._client(options, Impersonation(user=user, groups=tuple(groups)))

    def client_with(self, **options: Unpack[ClientOptions]) -> Client:
        """An administrator's client with its own options, such as ``field_manager``."""
        return self._client(options, None)

    def _client(self, options: ClientOptions, who: Impersonation | None) -> Client:
        credentials = self._host.credentials
        options.setdefault("namespace", self.namespace)
        options.setdefault("field_manager", "test")
        # deletions carry no field manager: `writes` attributes them by user agent
        options.setdefault("user_agent", f"{options.get('field_manager') or 'steersman'}/{__version__}")
        return Client(
            WatchedTransport(self._transport, self._watch),
            credentials=credentials if who is None else ImpersonatingCredentials(credentials, who),
            server=f"the {self.server} control plane",
            **options,
        )

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl as administrator in the test's namespace; returns its output."""
        from steersman.testing.engine.environment import Environment  # noqa: PLC0415 - few tests run kubectl
        from steersman.testing.engine.existing_cluster import find_kubectl  # noqa: PLC0415 - as above
        from steersman.testing.engine.kubectl import run_kubectl  # noqa: PLC0415 - as above

        await self._transport.ready()
        program = find_kubectl(Environment.read())
        own = (*arguments, f"--namespace={self.namespace}")
        return await run_kubectl(program, own, kubeconfig=self.kubeconfig, stdin=stdin)

    # objects

    async def create_namespace(self, name: str) -> str:
        """Create another namespace, which is deleted after the test; returns its name."""
        await self.client.create(Namespace(metadata=ObjectMeta(name=name)))
        self._namespaces.append(name)
        return name

    async def install(self, *classes: type[Object]) -> None:
        """Install kinds; those already served are not sent again."""
        await self._host.install(self.client, classes)

    # operators

    @asynccontextmanager
    async def running(
        self,
        operator: Manager | Blueprint | SupportsBlueprint | Hook | Iterable[Blueprint | SupportsBlueprint | Hook],
        *,
        namespaces: Sequence[str] | None = None,
        user: str = "",
        install: bool = True,
        crashes: bool = False,
    ) -> AsyncGenerator[Operator]:
        """Run an operator for a block: ``async with control_plane.running(manager) as operator:``.

        - A manager is run as a copy with the same controllers, so all tests can use one of a module.
        - ``user`` is the user it acts as; by default the administrator.
        - An operator of a namespaced kind works in the test's namespaces at the start of the block, unless it has its
          own. ``namespaces`` overrides them; ``namespaces=()`` means all.
        - The definitions of its own kinds are installed first, unless ``install=False``.
        - Its webhooks are registered and called during the block, for all namespaces.
        - The test fails at the end of the block if the operator ended early, or crashed in a reconcile.
          ``crashes=True`` allows crashes.
        """
        __tracebackhide__ = True
        manager = manager_of(operator, namespaces, own=self._namespaces)
        if install:
            await self.install(*manager.own_kinds)
        name = manager.name or "operator"
        client = self.client_as(user, field_manager=name) if user else self.client_with(field_manager=name)
        async with AsyncExitStack() as stack:
            if manager.webhooks.hooks:
                await stack.enter_async_context(self._host.webhooks(manager.webhooks, self.client, name))
            yield await stack.enter_async_context(running(manager, client, drained=self.drained, crashes=crashes))

    async def settled(self) -> None:
        """Wait until the control plane's own controllers are idle.

        A server in another process cannot be queried: there it means that nothing was written for a moment.
        """
        await self._transport.ready()
        await self._host.settled(self.client)

    async def drained(self, *, within: float = 10.0) -> None:
        """Wait until no work is left, for the control plane and all operators of the test.

        After that, plain asserts are enough. Endless work fails the test with the keys that keep running, and why.
        """
        __tracebackhide__ = True
        await drained(self.client, self.settled, within=within)

    def writes(self) -> AbstractContextManager[Writes]:
        """Record the writes of the test and its operators: ``with control_plane.writes() as writes:``."""
        return self._watch.look()

    # lifetime

    def forget_group(self, group: str) -> None:
        """Start deleting the definitions of an API group, on a server that outlives the test."""
        if self._host.lasting:
            self._host.clean_up(group=group)

    def end(self) -> list[Future[None]]:
        """Disconnect, and start deleting the test's objects; called by the fixture, outside of any loop."""
        self._transport.end()
        if not self._host.lasting:
            return []
        begun = [self._host.clean_up(namespace=name) for name in self._namespaces]
        return [each for each in begun if each is not None]
