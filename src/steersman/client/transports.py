"""The transport for a `Config`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Unpack

from steersman.client.configuration.config import Config, ExecPlugin
from steersman.client.credentials.credentials import ClientCertificate, Credentials
from steersman.transport import Response, SendOptions, Transport
from steersman.wire import HttpRequest

if TYPE_CHECKING:
    from steersman.transport import HttpTransport

#: The default limit of requests in flight per client; watches do not count.
MAX_CONNECTIONS = 64


def transport_for(config: Config, credentials: Credentials, *, max_connections: int = MAX_CONNECTIONS) -> Transport:
    """Make the transport; it connects on the first request."""
    if isinstance(config.auth, ExecPlugin):
        return _CertifiedTransport(config, credentials, max_connections)
    return _http(config, None, max_connections)


def _http(config: Config, certificate: ClientCertificate | None, max_connections: int) -> HttpTransport:
    from steersman.transport import HttpTransport  # noqa: PLC0415 - imports aiohttp, which a server in this process needs not

    tls = config.tls
    if certificate is not None:
        tls = dataclasses.replace(tls, certificate_data=certificate.certificate, key_data=certificate.key.reveal())
    proxy = config.proxy_url.reveal() if config.proxy_url is not None else None
    return HttpTransport(config.server, tls=tls, proxy=proxy, max_connections=max_connections)


class _CertifiedTransport:
    """A transport whose client certificate comes from an exec plugin and may change at any time.

    A new certificate gets new connections. Requests and watches on the old ones continue for the last few certificates;
    older transports are closed, since their certificates have long expired.
    """

    FORMER_MAX = 3

    def __init__(self, config: Config, credentials: Credentials, max_connections: int) -> None:
        self._config = config
        self._max_connections = max_connections
        self._credentials = credentials
        self._certificate: ClientCertificate | None = None
        self._current: HttpTransport | None = None
        self._former: list[HttpTransport] = []

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        """Send over connections with the current certificate."""
        certificate = await self._credentials.client_certificate()
        if self._current is None or certificate != self._certificate:
            if self._current is not None:
                self._former.append(self._current)
            self._current, self._certificate = _http(self._config, certificate, self._max_connections), certificate
        current = self._current
        while len(self._former) > self.FORMER_MAX:
            await self._former.pop(0).close()
        return await current.send(request, **options)

    def separate(self) -> _CertifiedTransport:
        """Return a transport with its own connections; see `Separable`."""
        return _CertifiedTransport(self._config, self._credentials, self._max_connections)

    async def close(self) -> None:
        """Close the connections of all certificates."""
        transports = [*self._former, *([self._current] if self._current else [])]
        self._former.clear()
        self._current = None
        for transport in transports:
            await transport.close()
