"""The API server on a port.

Guarantees
- Only loopback is listened on unless another host is named; every connection is TLS, by an authority of its own.
- Nobody is served on the port without a certificate of that authority or a token, health and version aside.
- When the kubeconfig is there, the server answers; it ends with the ``async with``, port and all.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from steersman.apiserver.chain import Authentication, RequestLimits
from steersman.apiserver.server import ApiServer
from steersman.apiserver.serving.certificates import Authority
from steersman.apiserver.serving.kubeconfig import write_kubeconfig
from steersman.transport import ServerTls
from steersman.transport.listener import Listener

#: Who the kubeconfig is for.
ADMIN, MASTERS = "admin", "system:masters"


class Served(NamedTuple):
    """Where a server is found."""

    url: str
    kubeconfig: Path
    port: int


@asynccontextmanager
async def serve(
    server: ApiServer,
    *,
    folder: Path | str,
    port: int = 0,
    host: str = "127.0.0.1",
    kubeconfig: Path | str | None = None,
    grace: float = 1.0,
) -> AsyncGenerator[Served]:
    """Run a server on a port for as long as the block lasts.

    ``async with serve(ApiServer(), folder=folder) as served: ...``. The server must not run yet. ``folder`` keeps the certificate authority, and the kubeconfig unless that has a place
    of its own; port 0 takes a free one. A chain without an `Authentication` gets one, and limits, at its front.
    """
    if not any(isinstance(handler, Authentication) for handler in server.chain):
        server.chain[:0] = [RequestLimits(), Authentication()]
    place = Path(folder)
    authority = Authority(place)
    own = authority.server(host)
    tls = ServerTls(
        certificate_data=own.certificate, key_data=own.key, client_ca_data=authority.certificate, require_client=False
    )
    async with server, Listener(server.handler, port=port, host=host, tls=tls, grace=grace) as listener:
        path = Path(kubeconfig) if kubeconfig is not None else place / "kubeconfig"
        admin = authority.client(ADMIN, groups=(MASTERS,))
        write_kubeconfig(path, url=listener.address, authority=authority.certificate, user=admin)
        yield Served(listener.address, path, listener.port)
