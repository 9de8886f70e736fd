"""Certificates of a port, in a Secret that all replicas share. Needs the package ``cryptography``.

Guarantees
- Replicas that start together agree on one certificate: the first one writes the Secret, and the others read it.
- The next connection uses a renewed certificate; open connections continue.
- Keys are in the Secret and in memory, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable

from steersman.aio import utc_now
from steersman.client import Client
from steersman.errors import AlreadyExists, ApiError, Conflict, NotFound
from steersman.kinds.core_v1 import Secret
from steersman.objects import Key, ObjectMeta
from steersman.transport import ServerTls
from steersman.webhooks.certificate_renewal import BUNDLE, CERTIFICATE, KEY, renewed

_ATTEMPTS = 5


class CertificateSecret:
    """Certificates in a Secret, which any replica creates and renews; ``names`` are those of the server."""

    def __init__(
        self,
        client: Client,
        key: Key,
        names: Iterable[str],
        *,
        client_ca_file: str | None = None,
        require_client: bool = False,
    ) -> None:
        self._client = client
        self._key = key
        self._names = tuple(names)
        self._client_ca_file = client_ca_file
        self._require_client = require_client
        self._tls: ServerTls | None = None
        self.ca_bundle = b""

    def current(self) -> ServerTls:
        """The certificate and key that `refresh` read last."""
        if self._tls is None:
            raise RuntimeError("there is no certificate yet; await refresh() first")
        return self._tls

    async def refresh(self, *, force: bool = False) -> None:
        """Read the Secret; create it if it is missing, and renew its certificates if they are due."""
        for attempt in range(_ATTEMPTS):
            try:
                secret = await self._client.get(Secret, self._key)
            except NotFound:
                secret = None
            changes = renewed((secret and secret.data) or {}, self._names, utc_now(), force=force and attempt == 0)
            try:
                self._use(await self._written(secret, changes))
            except (AlreadyExists, Conflict):
                continue  # another replica was first
            return
        raise ApiError(
            f"Secret {self._key}: cannot write the certificate, because the Secret keeps changing;"
            " stop other programs from writing it"
        )

    async def _written(self, secret: Secret | None, changes: dict[str, bytes]) -> Secret:
        if secret is None:
            metadata = ObjectMeta(name=self._key.name, namespace=self._key.namespace)
            return await self._client.create(Secret(metadata=metadata, type="kubernetes.io/tls", data=changes))
        if not changes:
            return secret
        secret.data = {**(secret.data or {}), **changes}
        return await self._client.update(secret)

    def _use(self, secret: Secret) -> None:
        data = secret.data or {}
        self.ca_bundle = data.get(BUNDLE, b"")
        certificate, key = data.get(CERTIFICATE, b""), data.get(KEY, b"")
        if self._tls is None or (self._tls.certificate_data, self._tls.key_data) != (certificate, key):
            self._tls = ServerTls(
                certificate_data=certificate,
                key_data=key,
                client_ca_file=self._client_ca_file,
                require_client=self._require_client,
            )
