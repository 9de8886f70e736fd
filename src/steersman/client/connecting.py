"""The transport that a `Config` asks for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from steersman.client.config import Config, ExecPlugin
from steersman.client.credentials import ClientCertificate, Credentials
from steersman.transport import HttpTransport, Response, Transport
from steersman.wire import Request


def transport_for(config: Config, credentials: Credentials) -> Transport:
    """Make the transport; nothing is connected before the first request."""
    if isinstance(config.auth, ExecPlugin):
        return _CertifiedTransport(config, credentials)
    return _http(config, None)


def _http(config: Config, certificate: ClientCertificate | None) -> HttpTransport:
    tls = config.tls
    if certificate is not None:
        tls = dataclasses.replace(tls, certificate_data=certificate.certificate, key_data=certificate.key.reveal())
    proxy = config.proxy_url.reveal() if config.proxy_url is not None else None
    return HttpTransport(config.server, tls=tls, proxy=proxy)


class _CertifiedTransport:
    """A transport whose client certificate comes from an exec plugin and may change at any time.

    A new certificate gets connections of its own; requests and watches on the old ones go on, for the last few
    certificates. What is older ends: its certificate has expired long since.
    """

    FORMER_MAX = 3

    def __init__(self, config: Config, credentials: Credentials) -> None:
        self._config = config
        self._credentials = credentials
        self._certificate: ClientCertificate | None = None
        self._current: HttpTransport | None = None
        self._former: list[HttpTransport] = []

    async def send(
        self,
        request: Request,
        *,
        stream: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport
        before_send: Callable[[], None] | None = None,
    ) -> Response:
        """Send over connections that carry the current certificate."""
        certificate = await self._credentials.client_certificate()
        if self._current is None or certificate != self._certificate:
            if self._current is not None:
                self._former.append(self._current)
            self._current, self._certificate = _http(self._config, certificate), certificate
        current = self._current
        while len(self._former) > self.FORMER_MAX:
            await self._former.pop(0).close()
        return await current.send(request, stream=stream, timeout=timeout, before_send=before_send)

    async def close(self) -> None:
        """Close the connections of all certificates."""
        transports = [*self._former, *([self._current] if self._current else [])]
        self._former.clear()
        self._current = None
        for transport in transports:
            await transport.close()
