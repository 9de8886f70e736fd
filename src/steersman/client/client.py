"""The client: one object with all verbs, for one API server and one user."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Mapping
from contextlib import asynccontextmanager
from copy import copy
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

from msgspec.structs import replace

from steersman._version import __version__
from steersman.client.bindings import VerbCall
from steersman.client.configuration.config import Config
from steersman.client.credentials.credentials import Credentials, StaticCredentials
from steersman.client.credentials.identity import credentials_for
from steersman.client.discovery import Discovery
from steersman.client.kind_bindings import KindBindings
from steersman.client.request_sender import RequestObserver, RequestSender, SenderOptions, log_warning
from steersman.client.results import ServerWarning
from steersman.client.retries import RateLimit, RetryPolicy
from steersman.client.shard_support import ShardSupport
from steersman.client.stages.observers import ApplyMemory, Before, ObjectCache, WriteObserver, nothing_before
from steersman.client.stages.pipeline import Pipeline
from steersman.client.stages.write_settings import WriteSettings
from steersman.client.transports import MAX_CONNECTIONS, transport_for
from steersman.client.verbs.installation import install
from steersman.client.verbs.verbs import Verbs
from steersman.objects import Object
from steersman.transport import Transport
from steersman.wire import FieldValidation, HttpRequest, parse_query

USER_AGENT = f"steersman/{__version__} (python/{'.'.join(map(str, sys.version_info[:3]))})"


class ClientOptions(TypedDict, total=False):
    """The options of a client; each has a default."""

    #: The name under which this program owns fields. Required for apply; keep it stable.
    field_manager: str
    #: How the server treats unknown or duplicate fields.
    field_validation: FieldValidation | None
    #: Check our own resources' constraints before sending.
    validate: bool
    #: The namespace of a bare name; defaults to the context's namespace.
    namespace: str
    retry: RetryPolicy
    rate_limit: RateLimit | None
    #: Seconds for each attempt of a request, and for the start of a watch.
    timeout: float
    user_agent: str
    on_warning: Callable[[ServerWarning], None]


class Client(Verbs):
    """Reads and writes objects of any kind on one API server, as one user.

    ```python
    async with Client.connect(field_manager="site-operator") as client:
        site = await client.get(Site, "default/web")
        site.spec.replicas = 3
        await client.update(site)
    ```

    A class such as ``Site`` makes a verb typed; a `Kind` makes it read an `Unstructured`. Every failure is an `ApiError`.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        credentials: Credentials | None = None,
        server: str = "",
        **options: Unpack[ClientOptions],
    ) -> None:
        if unknown := options.keys() - ClientOptions.__annotations__.keys():
            known = ", ".join(ClientOptions.__annotations__)
            raise TypeError(f"unknown client option {', '.join(sorted(unknown))}; the options are {known}")
        namespace = options.get("namespace", "default")
        sending = SenderOptions(
            headers=(("User-Agent", options.get("user_agent", USER_AGENT)),),
            retry=options.get("retry", RetryPolicy()),
            rate_limit=options.get("rate_limit"),
            timeout=options.get("timeout", 60.0),
            server=server,
            on_warning=options.get("on_warning", log_warning),
            shard_support=ShardSupport(namespace),
        )
        settings = WriteSettings(
            field_manager=options.get("field_manager", ""),
            field_validation=options.get("field_validation"),
            validate=options.get("validate", True),
        )
        sender = RequestSender(transport, credentials or StaticCredentials(), sending)
        kinds = KindBindings(Discovery(sender), namespace=namespace)
        super().__init__(Pipeline.plain(sender, kinds, settings))
        self.server = server

    def __repr__(self) -> str:
        return f"<Client of {self.server or 'an API server in this process'}>"

    @classmethod
    def connect(
        cls,
        config: Config | None = None,
        *,
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        max_connections: int = MAX_CONNECTIONS,
        **options: Unpack[ClientOptions],
    ) -> Connecting:
        """Connect: with ``await``, or with ``async with``, which also closes the client.

        Uses the first configuration found: ``config``, ``kubeconfig``, the files in ``KUBECONFIG``, ``~/.kube/config``,
        the Pod's service account. ``options`` are those of `Client`.

        ``max_connections`` bounds the requests in flight; further ones wait. Raise it when many reconciles write to a
        slow server. Watches and the leader's Lease have their own connections.
        """
        return Connecting(cls, config, kubeconfig, context, options, max_connections=max_connections)

    def with_transport(
        self,
        wrap: Callable[[Transport], Transport],
        *,
        observer: RequestObserver | None = None,
        field_manager: str = "",
        formerly: tuple[str, ...] = (),
    ) -> Self:
        """The same client with a wrapped transport: ``client.with_transport(Recording)``.

        Shares the user, the options and the discovered kinds; closing either client closes its own transport.
        ``observer`` is notified of what no transport sees: retries, and waits for the rate limit. ``field_manager``
        overrides the name it writes under; ``formerly`` lists earlier names.
        """
        names = {"field_manager": field_manager, "formerly": formerly}
        settings = replace(self.pipeline.settings, **{name: given for name, given in names.items() if given})
        return self._over(self._sender.with_transport(wrap(self._sender.transport), observer=observer), settings)

    def dedicated(self) -> Self:
        """The same client with its own connections and without the rate limit; close it after use.

        Its requests never wait for other requests of this client. It shares connections with this client if the
        transport cannot make others: see `steersman.transport.Separable`.
        """
        return self._over(self._sender.dedicated(), self.pipeline.settings)

    def not_waiting(self) -> Self:
        """The same client, which raises immediately instead of waiting for the server's Retry-After.

        Controllers use it: they requeue the key after that time and free the worker.
        """
        return self._over(self._sender.not_waiting(), self.pipeline.settings)

    @property
    def _sender(self) -> RequestSender:
        return self.pipeline.server.sender

    def _over(self, sender: RequestSender, settings: WriteSettings) -> Self:
        client = copy(self)
        client.pipeline = Pipeline.plain(sender, self.pipeline.kinds, settings)
        return client

    @property
    def live(self) -> Self:
        """This client: it has no cache."""
        return self

    def observed(
        self,
        observers: Iterable[WriteObserver] = (),
        *,
        cache: ObjectCache | None = None,
        before: Before = nothing_before,
        memory: ApplyMemory | None = None,
    ) -> Verbs:
        """A client that notifies observers of its writes; see `steersman.client.stages.observers`. This one closes it.

        ``cache`` answers get and list, ``before`` returns an object's last known state before a write, and ``memory``
        decides which applies need no request.
        """
        return Verbs(self.pipeline.observed(observers, cache=cache, before=before, memory=memory))

    async def request(self, method: str, path: str, *, body: bytes | None = None, accept: str = "*/*") -> bytes:
        """Send any request and return the body: for non-resource endpoints such as ``/version`` or ``/metrics``."""
        path, _, query = path.partition("?")
        headers = (("Accept", accept),) if body is None else (("Accept", accept), ("Content-Type", "application/json"))
        request = HttpRequest(method=method, path=path, query=parse_query(query), headers=headers, body=body)
        return await self._sender.send(request, tried=VerbCall(f"{method} {path}"))

    @asynccontextmanager
    async def stream(self, path: str, *, accept: str = "*/*") -> AsyncGenerator[AsyncIterator[bytes]]:
        """GET a path and read its body as it arrives, without a total timeout: for a followed log.

        ```python
        async with client.stream("/api/v1/namespaces/default/pods/web/log?follow=true") as pieces:
            async for piece in pieces: ...
        ```
        """
        path, _, query = path.partition("?")
        request = HttpRequest(method="GET", path=path, query=parse_query(query), headers=(("Accept", accept),))
        async with await self._sender.stream(request, tried=VerbCall(f"GET {path}")) as response:
            yield response.chunks()

    async def install(
        self,
        *classes: type[Object],
        timeout: float = 30.0,  # noqa: ASYNC109
        force: bool = True,
        replace: bool = False,
        conversion: Mapping[str, Any] | None = None,
    ) -> None:
        """Apply the CustomResourceDefinitions of these classes; returns when the server serves them.

        Several classes of one kind are its versions. Raises `WouldRemove` if that would remove a version or a field of
        an installed definition; ``replace=True`` installs it all the same. ``force=False`` raises a conflict instead of
        taking fields of a definition from another field manager. ``conversion`` is the ``spec.conversion`` of a
        definition that has no webhook yet; it gets this before it gets another version.
        """
        await install(self, classes, timeout=timeout, force=force, replace=replace, conversion=conversion)

    async def close(self) -> None:
        """Close all connections."""
        await self._sender.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Connecting:
    """A client being made: ``await`` it, or enter it with ``async with``."""

    def __init__(
        self,
        cls: type[Client],
        config: Config | None,
        kubeconfig: str | Path | None,
        context: str | None,
        options: ClientOptions,
        *,
        max_connections: int,
    ) -> None:
        if max_connections < 1:
            raise ValueError(f"max_connections must be at least 1 (got {max_connections})")
        self._max_connections = max_connections
        self._make = cls
        self._config = config
        self._kubeconfig = kubeconfig
        self._context = context
        self._options = options
        self._client: Client | None = None

    async def _connect(self) -> Client:
        from steersman.client.configuration.discovery_order import discover_config  # noqa: PLC0415 - not all clients have a kubeconfig

        config = discover_config(self._config, kubeconfig=self._kubeconfig, context=self._context)
        options = self._options
        options.setdefault("namespace", config.namespace)
        credentials = credentials_for(config)
        transport = transport_for(config, credentials, max_connections=self._max_connections)
        return self._make(transport, credentials=credentials, server=config.server, **options)

    def __await__(self) -> Generator[Any, None, Client]:
        return self._connect().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._connect()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.close()
