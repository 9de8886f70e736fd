"""The certificates of one run of a server, issued by a process that then ends.

Guarantees
- The server's own process does not import ``cryptography``, whose memory it would keep until its end.
- The authority's key stays in the other process: nothing can sign a further certificate with it.
- The server's key travels through a pipe, never through arguments or files.
- If the other process fails or takes too long, this one issues the certificates, or raises why it cannot.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, NamedTuple, Self

from steersman.transport import PemKeyPair

_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "::1")
#: Seconds that the other process has, on a machine under load.
_PATIENCE: Final = 20.0
#: Prints the certificate of a new authority, and a certificate for the names in its arguments with its key.
_PROGRAM: Final = """\
import os, sys
sys.path[:] = {path!r}
from steersman.transport.certificates import CertificateIssuer
issuer = CertificateIssuer.create()
pair = issuer.server(sys.argv[1:])
os.write(1, b"\\0".join((issuer.certificate, pair.certificate, pair.key)))
"""


class ServerCertificates(NamedTuple):
    """The certificate of an authority, as PEM, and the key pair that it issued for a server."""

    authority: bytes
    server: PemKeyPair


#: Returns the certificates of a server.
CertificateSource = Callable[[], Awaitable[ServerCertificates]]


def server_names(host: str) -> list[str]:
    """The names and addresses of a server on loopback and on a host."""
    return list(dict.fromkeys((*_NAMES, host)))


class CertificateProcess:
    """Issues certificates for a server on loopback, while this process does other work.

    ```python
    async with CertificateProcess() as process:
        ...
        async with serve(server, token="secret", certificates=process.issued) as served:
            ...
    ```
    """

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        # An embedded Python may have no executable.
        with suppress(OSError, TypeError):
            # Without site packages, and with the path of this process, it starts sooner and finds the same modules.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-I", "-S", "-c", _PROGRAM.format(path=sys.path)),
                *server_names("127.0.0.1"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            await self._end(self._process)

    @staticmethod
    async def _end(process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def issued(self) -> ServerCertificates:
        """The certificates. Raises `ModuleNotFoundError` without the package ``cryptography``."""
        output = b""
        if self._process is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    output, _ = await self._process.communicate()
            await self._end(self._process)
        if self._process is None or self._process.returncode != 0 or not output:
            return _issued_here()
        authority, certificate, key = output.split(b"\0")
        return ServerCertificates(authority, PemKeyPair(certificate, key))


def _issued_here() -> ServerCertificates:
    from steersman.transport import CertificateIssuer  # noqa: PLC0415 - only if the other process has failed

    issuer = CertificateIssuer.create()
    return ServerCertificates(issuer.certificate, issuer.server(server_names("127.0.0.1")))
