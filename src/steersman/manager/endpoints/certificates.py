"""Certificates that a manager creates for its endpoints. Needs the package ``cryptography``.

Guarantees
- All replicas share the certificates, in a Secret (`steersman.webhooks.CertificateSecret`), and renew them in time.
- The port opens without the API server: until the Secret can be read, a temporary certificate answers the kubelet, which
  verifies none.
- The next connection uses a renewed certificate.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from steersman.client import Client
from steersman.errors import ApiError
from steersman.manager.endpoints.http_endpoints import HttpEndpoints
from steersman.transport import CertificateIssuer, ServerTls
from steersman.webhooks import CertificateSecret

_log = logging.getLogger("steersman.manager")

#: Seconds between two checks, before a retry after a failure, and for the first attempt before the port opens.
_INTERVAL, _RETRY, _FIRST = 60.0, 2.0, 5.0


class EndpointCertificates:
    """The certificates of endpoints with a Service."""

    def __init__(self, client: Client, endpoints: HttpEndpoints) -> None:
        self._secret = CertificateSecret(client, endpoints.secret_key, endpoints.names)
        pair = CertificateIssuer.create().server(endpoints.names)
        self._tls = ServerTls(certificate_data=pair.certificate, key_data=pair.key)
        self._problem = f"Secret {endpoints.secret_key} was not read yet"

    def current(self) -> ServerTls:
        """The certificate and key for the next connection."""
        return self._tls

    def check(self) -> str:
        """A warning if the Secret could not be read or written; empty otherwise."""
        return self._problem

    async def prepare(self) -> None:
        """Read or create the certificates, so that the first client gets them; give up after a few seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST):
                await self._refresh()

    async def keep(self) -> None:
        """Re-read the certificates, and renew them if they are due, until cancelled."""
        while True:
            await asyncio.sleep(_RETRY if self._problem else _INTERVAL)
            await self._refresh()

    async def _refresh(self) -> None:
        try:
            await self._secret.refresh()
        except ApiError as error:
            if str(error) != self._problem:
                _log.warning("cannot keep the certificate of the endpoints; retrying: %s", error)
            self._problem = str(error)
        else:
            self._tls, self._problem = self._secret.current(), ""
