"""Certificates of a port: the protocol, and certificates from files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

from steersman.errors import ConfigError
from steersman.transport import ServerTls


class Certificates(Protocol):
    """The certificates of a port."""

    def current(self) -> ServerTls:
        """The certificate and key for the next connection."""
        ...

    @property
    def ca_bundle(self) -> bytes:
        """The authority as PEM; empty if another program sets the caBundle."""
        ...

    async def refresh(self) -> None:
        """Re-read the certificates, and renew them if they are due."""
        ...


class FileCertificates:
    """Certificates in files, which another program renews."""

    def __init__(self, tls: ServerTls, ca_file: str | None) -> None:
        self._tls = tls
        self._ca_file = ca_file
        self.ca_bundle = b""

    def current(self) -> ServerTls:
        """The files; the port re-reads them when they change."""
        return self._tls

    async def refresh(self) -> None:
        """Re-read the authority."""
        if self._ca_file is None:
            return
        try:
            self.ca_bundle = await asyncio.to_thread(Path(self._ca_file).read_bytes)
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise ConfigError(f"cannot read the webhooks' certificate authority in {self._ca_file}: {why}") from None
