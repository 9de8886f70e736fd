"""The webhooks of a program on a TLS port: listening, certificates and the caBundle of the registration objects.

Guarantees
- The port opens as soon as there is a certificate. It stays open until the block ends, and behind a Service at least
  for a few seconds after the stop was requested. It closes after the responses in progress.
- Certificates are checked every minute. A renewal drops no connection.
- The caBundle of existing registration objects, and the conversion of existing CRDs, is restored within 2 seconds of
  an overwrite: they are watched. If another program keeps overwriting one, it is restored more slowly.
- A webhook that calls another Service or address stays as it is: it belongs to another run of the program.
  A conversion is taken over once, when the program starts.
- A deleted registration object stays deleted, so an administrator can turn a webhook off.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from steersman.aio import Supervisor
from steersman.client import Client, retry_on_conflict
from steersman.errors import ApiError, NotFound
from steersman.objects import Key, Kind, Tree, Unstructured
from steersman.transport import HttpListener
from steersman.webhooks.certificate_files import Certificates, FileCertificates
from steersman.webhooks.client_check import ClientCheck
from steersman.webhooks.conversion import VersionConverter
from steersman.webhooks.endpoint import WebhookEndpoint
from steersman.webhooks.object_watch import watch_object
from steersman.webhooks.registration import WebhookRegistration
from steersman.webhooks.server import WebhookServer

_log = logging.getLogger("steersman.webhooks")

_CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_SECRET = Kind("v1", "Secret")
#: Seconds between two checks of the certificates, and before a retry after a failure.
_INTERVAL, _RETRY = 60.0, 2.0
#: Seconds between two updates: usually, and after more than so many writes in the last minute.
_PAUSE, _LONG_PAUSE, _MANY_WRITES = 0.5, 10.0, 10


@asynccontextmanager
async def serve_webhooks(
    server: WebhookServer,
    endpoint: WebhookEndpoint,
    client: Client,
    *,
    name: str,
    stopping: asyncio.Event | None = None,
) -> AsyncGenerator[ServedWebhooks]:
    """Serve webhooks on a port until the block ends; ``name`` is the name of their registration objects.

    ``stopping`` is set when a stop is requested, before the block ends.
    """
    served = ServedWebhooks(server, endpoint, client, name)
    requested = stopping or asyncio.Event()
    try:
        async with Supervisor() as tasks:
            served.keeper = tasks.start(served.keep(), name="webhooks")
            left = tasks.start(_leave(requested, endpoint.leaving), name="webhooks: leave")
            yield served
            if endpoint.service and served.address:
                requested.set()
                await left
            tasks.cancel()
    finally:
        await served.close()


async def _leave(requested: asyncio.Event, seconds: float) -> None:
    """Return so many seconds after the stop was requested."""
    await requested.wait()
    await asyncio.sleep(seconds)


class ServedWebhooks:
    """Webhooks on a port. `check` is their readiness check."""

    def __init__(self, server: WebhookServer, endpoint: WebhookEndpoint, client: Client, name: str) -> None:
        self._server = server
        self._endpoint = endpoint
        self._client = client
        self._name = name
        self._listener: HttpListener | None = None
        self._installed = False
        self._problem = "not started yet"
        self._changed = asyncio.Event()
        #: When it wrote registration objects, in the loop's time.
        self._writes: deque[float] = deque(maxlen=_MANY_WRITES + 1)
        self._has_written = False
        #: The CRDs whose conversion this run has set or found set.
        self._converting: set[str] = set()
        #: The registration objects that call another address, for which the log has a line.
        self._elsewhere: set[str] = set()
        #: The task of `keep`.
        self.keeper: asyncio.Task[None] | None = None
        #: The certificates of the port; ``refresh`` re-reads and renews them.
        self.certificates = self._certificates()

    @property
    def address(self) -> str:
        """The URL of the port; empty until it is open."""
        return self._listener.address if self._listener is not None else ""

    @property
    def registered(self) -> bool:
        """Whether the port is open and the last update of the registration objects succeeded."""
        return self._listener is not None and not self._problem

    def check(self) -> str:
        """Raise if the port cannot answer. Returns a warning if the registration objects could not be updated."""
        if self._listener is None:
            raise RuntimeError(f"the port of the webhooks is not open: {self._problem}")
        if busy := self._server.busy():
            raise RuntimeError(busy)
        return self._problem

    async def keep(self) -> None:
        """Open the port, and keep the certificates and registration objects up to date."""
        async with Supervisor() as watches:
            for kind, key in self._watched():
                watch = watch_object(self._client, kind, key, self._changed)
                watches.start(watch, name=f"webhooks: watch {kind.kind} {key}")
            await self._keep()

    async def leave_registrations(self) -> None:
        """Stop updating certificates and registration objects; the port stays open."""
        if self.keeper is not None:
            self.keeper.cancel()
            await asyncio.wait((self.keeper,))

    async def _keep(self) -> None:
        while True:
            self._changed.clear()
            self._has_written = False
            problem = ""
            try:
                await self.update()
            except ApiError as error:
                problem = str(error)
            if problem and problem != self._problem:
                _log.warning("webhooks: %s; retrying", problem)
            self._problem = problem
            if self._has_written:
                self._writes.append(asyncio.get_running_loop().time())
            await asyncio.sleep(self._pause())
            with suppress(TimeoutError):
                async with asyncio.timeout(_RETRY if problem else _INTERVAL):
                    await self._changed.wait()

    def _pause(self) -> float:
        """The seconds until the next update: longer if another program keeps overwriting the registration objects."""
        now = asyncio.get_running_loop().time()
        if len(self._writes) <= _MANY_WRITES or now - self._writes[0] > _INTERVAL:
            return _PAUSE
        _log.warning(
            "webhooks: another program keeps overwriting the registration objects of %s; look at their managedFields",
            self._name,
        )
        return _LONG_PAUSE

    def _watched(self) -> list[tuple[Kind, Key]]:
        """The objects whose changes are followed at once: the registration objects and the certificate's Secret."""
        if isinstance(self.certificates, FileCertificates):
            if self._endpoint.ca_file is None:
                return []
            found: list[tuple[Kind, Key]] = []
        else:
            found = [(_SECRET, self._secret)]
        registration = WebhookRegistration(self._server.hooks, self._endpoint, name=self._name)
        for tree in registration.configurations():
            found.append((Kind(tree["apiVersion"], tree["kind"]), Key("", self._name)))
        return [*found, *((_CRD, Key("", name)) for name in registration.converted_kinds().values())]

    async def update(self) -> None:
        """Update the certificates and the registration objects once; open the port if it is closed."""
        await self.certificates.refresh()
        if self._listener is None:
            endpoint = self._endpoint
            guarded = ClientCheck(self._server, endpoint.client_names) if endpoint.checks_clients else self._server
            listener = HttpListener(
                guarded.handle,
                port=endpoint.port,
                host=endpoint.listens_on,
                tls=self.certificates.current,
                max_body=self._server.max_body,
            )
            await listener.start()
            self._listener = listener
            _log.info("serving webhooks at %s", listener.address)
        await self._register()

    async def close(self) -> None:
        """Close the port after the responses in progress."""
        if self._listener is not None:
            await self._listener.close()
        self._server.close()

    def _certificates(self) -> Certificates:
        if self._endpoint.tls is not None:
            return FileCertificates(self._endpoint.tls, self._endpoint.ca_file)
        from steersman.webhooks.certificate_secret import CertificateSecret  # noqa: PLC0415 - files need no cryptography

        converts = any(isinstance(hook, VersionConverter) for hook in self._server.hooks)
        authority = self._endpoint.client_ca_file
        return CertificateSecret(
            self._client,
            self._secret,
            self._endpoint.names,
            client_ca_file=authority,
            require_client=authority is not None and not converts,
        )

    @property
    def _secret(self) -> Key:
        return Key(self._endpoint.namespace or self._client.namespace, self._endpoint.secret_name(self._name))

    async def _register(self) -> None:
        ca_bundle = self.certificates.ca_bundle
        registration = WebhookRegistration(
            self._server.hooks, self._endpoint, name=self._name, address=self.address, ca_bundle=ca_bundle
        )
        if self._endpoint.install and not self._installed:
            for tree in registration.configurations():
                await self._client.apply(Unstructured(tree), force=True, field_manager=self._name)
            self._installed = True
        if not ca_bundle:
            return
        for tree in registration.configurations():
            await self._inject(Kind(tree["apiVersion"], tree["kind"]), registration)
        for crd in registration.converted_kinds().values():
            await self._set_conversion(crd, registration)

    async def _inject(self, kind: Kind, registration: WebhookRegistration) -> None:
        """Set the caBundle of the webhooks that call this program, in an existing configuration."""
        wanted = registration.ca_bundle

        def inject(live: Unstructured) -> bool:
            configs = [webhook["clientConfig"] for webhook in live.get("webhooks") or ()]
            ours = [config for config in configs if registration.is_called_by(config)]
            self._note_address(live, is_ours=bool(ours) or not configs)
            stale = [each for each in ours if each.get("caBundle") != wanted]
            for each in stale:
                each["caBundle"] = wanted
            return bool(stale)

        await self._change(kind, self._name, inject)

    async def _set_conversion(self, name: str, registration: WebhookRegistration) -> None:
        """Set the conversion of an existing CRD, unless another run has taken it over since this one began."""
        conversion = registration.conversion()

        def convert(live: Unstructured) -> bool:
            present: Tree = live.get("spec", "conversion") or {}
            webhook: Tree = present.get("webhook") or {}
            is_ours = name not in self._converting or not webhook or registration.is_called_by(webhook["clientConfig"])
            self._note_address(live, is_ours=is_ours)
            if not is_ours or present == conversion:
                return False
            live["spec"]["conversion"] = conversion
            return True

        if await self._change(_CRD, name, convert):
            self._converting.add(name)

    def _note_address(self, live: Unstructured, *, is_ours: bool) -> None:
        """Log once that a registration object calls another address."""
        what = f"{live.kind} {live.key}"
        if is_ours:
            self._elsewhere.discard(what)
        elif what not in self._elsewhere:
            self._elsewhere.add(what)
            _log.warning("webhooks: %s calls another address, so the API server does not call this program", what)

    async def _change(self, kind: Kind, name: str, change: Callable[[Unstructured], bool]) -> bool:
        """Change an object if it exists; read it again if another program writes it in between. Returns whether it exists.

        ``change`` returns whether there was anything to change.
        """

        async def write() -> bool:
            try:
                live = await self._client.get(kind, name)
            except NotFound:
                return False
            if change(live):
                await self._client.update(live)
                self._has_written = True
                _log.info("registered the certificate of the webhooks in %s %s", live.kind, live.key)
            return True

        return await retry_on_conflict(write)
