"""The API server on a port.

Guarantees
- Only loopback is listened on unless another host is named; every connection is TLS, by an authority of its own.
- Nobody is served on the port without a certificate of that authority or a token, health and version aside; nor is a
  long body of such a request read.
- When the kubeconfig is there, the server answers; it ends with the ``async with``, port and all.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from steersman.apiserver.answers import answer_refusal
from steersman.apiserver.chain import Authentication, RequestLimits
from steersman.apiserver.chain.authentication import ANONYMOUS
from steersman.apiserver.errors import Refused, unauthorized
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.server import ApiServer
from steersman.apiserver.serving.certificates import Authority
from steersman.apiserver.serving.kubeconfig import write_kubeconfig
from steersman.transport import ServerResponse, ServerTls
from steersman.transport.listener import Listener
from steersman.wire import Request

#: Who the kubeconfig is for.
ADMIN, MASTERS = "admin", "system:masters"


class Served(NamedTuple):
    """Where a server is found: its address, and the file that kubectl and other clients need."""

    url: str
    kubeconfig: Path
    port: int
    #: The certificate, as PEM, by which the server's own can be checked.
    authority: bytes = b""


@asynccontextmanager
async def serve(
    server: ApiServer,
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    folder: Path | str | None = None,
    kubeconfig: Path | str | None = None,
    grace: float = 1.0,
) -> AsyncGenerator[Served]:
    """Run a server on a port, over TLS, for as long as the block lasts.

    ```python
    async with serve(ApiServer(resources=[Site])) as served:
        print(f"export KUBECONFIG={served.kubeconfig}")
    ```

    The server must not run yet. Port 0 takes a free one. The certificate authority and the kubeconfig are kept in
    ``folder``, so that they are good after a restart, or in a temporary one; ``kubeconfig`` gives that file a place of
    its own. A chain without an `Authentication`, or without `RequestLimits`, gets them at its front.
    """
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="steersman-"))
        for missing in (Authentication, RequestLimits):
            if not any(isinstance(handler, missing) for handler in server.chain):
                server.chain.insert(0, missing())
        place = Path(folder)
        authority = Authority(place)
        own = authority.server(host)
        tls = ServerTls(
            certificate_data=own.certificate,
            key_data=own.key,
            client_ca_data=authority.certificate,
            require_client=False,
        )
        listening = Listener(
            server.handler, port=port, host=host, tls=tls, grace=grace, before_body=_before_body(server)
        )
        async with server, listening as listener:
            path = Path(kubeconfig) if kubeconfig is not None else place / "kubeconfig"
            admin = authority.client(ADMIN, groups=(MASTERS,))
            write_kubeconfig(path, url=listener.address, authority=authority.certificate, user=admin)
            yield Served(listener.address, path, listener.port, authority.certificate)


def _before_body(server: ApiServer) -> Callable[[Request], ServerResponse | None]:
    """Refuses nobody's request before its body is read, so that strangers cannot fill the memory."""
    authentications = [handler for handler in server.chain if isinstance(handler, Authentication)]

    def refusal(wire: Request) -> ServerResponse | None:
        request = ServerRequest(wire, accounts=server.account_tokens)
        try:
            if any(authentication.sender(request) is ANONYMOUS for authentication in authentications):
                # Who may look at the health of the server has nothing long to say.
                raise unauthorized()
        except Refused as refused:
            return answer_refusal(request, refused)
        return None

    return refusal
