"""The API server on a port.

Guarantees
- It listens only on loopback unless another host is named; every connection uses TLS, with its own authority.
- Requests without a certificate of that authority or a token are rejected, except for health and version; their long
  bodies are not read.
- The last connections are for administrators: a request of another user there gets 429. The streams of one user take
  at most half of the others.
- When the kubeconfig exists, the server answers; server and port end with the ``async with``.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from steersman.apiserver.answers import answer_refusal
from steersman.apiserver.bootstrap import publish_address
from steersman.apiserver.chain import Authentication, AuthenticationAudit, RequestLimits
from steersman.apiserver.chain.authentication import ANONYMOUS
from steersman.apiserver.errors import RequestRejected, unauthorized
from steersman.apiserver.identity import MASTERS, User
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.server import ApiServer
from steersman.apiserver.serving.certificate_process import CertificateSource, ServerCertificates
from steersman.apiserver.serving.kubeconfig import write_kubeconfig
from steersman.transport import HttpListener, PemKeyPair, ServerResponse, ServerTls, join_host_port, local_address
from steersman.wire import HttpRequest

#: The user of the kubeconfig.
ADMIN = "admin"


class Served(NamedTuple):
    """Access to a server: its address, and the kubeconfig for kubectl and other clients."""

    url: str
    kubeconfig: Path
    port: int
    #: The authority's certificate as PEM, which verifies the server's own.
    authority: bytes = b""


@asynccontextmanager
async def serve(
    server: ApiServer,
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    folder: Path | str | None = None,
    kubeconfig: Path | str | None = None,
    token: str | None = None,
    certificates: CertificateSource | None = None,
    grace: float = 1.0,
) -> AsyncGenerator[Served]:
    """Run a server on a port, over TLS, while the block lasts.

    ```python
    async with serve(ApiServer(resources=[Site])) as served:
        print(f"export KUBECONFIG={served.kubeconfig}")
    ```

    The server must not be running yet. Port 0 chooses a free one. With the ``host`` 0.0.0.0 it listens on all addresses,
    and the kubeconfig names loopback. The certificate authority and the kubeconfig are kept
    in ``folder``, so that they stay valid after a restart, or in a temporary one; ``kubeconfig`` sets another path for
    that file. Its user has a client certificate, or the given ``token``. With a token, ``certificates`` may issue those of
    the server, such as `CertificateProcess`. A chain without an `Authentication`, or without `RequestLimits`, gets them at
    its front.
    """
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="steersman-"))
        for missing in (Authentication, RequestLimits):
            if not any(isinstance(handler, missing) for handler in server.chain):
                server.chain.insert(0, missing())
        authentication = next(handler for handler in server.chain if isinstance(handler, Authentication))
        if token is not None:
            authentication.add_token(token, User(name=ADMIN, groups=(MASTERS,)))
        _identify_users(server, authentication)
        place = Path(folder)
        issued, admin = await _issued(place, host, token, certificates)
        tls = ServerTls(
            certificate_data=issued.server.certificate,
            key_data=issued.server.key,
            client_ca_data=issued.authority,
            require_client=False,
        )
        listening = HttpListener(
            server.handler,
            port=port,
            host=host,
            tls=tls,
            grace=grace,
            before_body=_before_body(server),
            privileged=_is_administrator(server, authentication),
            on_demand=True,
        )
        _leave_connections(server, listening.capacity)
        async with server, listening as listener:
            await publish_address(server.registry, server.storage, host, listener.port, issued.authority)
            path = Path(kubeconfig) if kubeconfig is not None else place / "kubeconfig"
            url = _url(host, listener.port)
            write_kubeconfig(path, url=url, authority=issued.authority, user=admin)
            yield Served(url, path, listener.port, issued.authority)


def _url(host: str, port: int) -> str:
    """The address for clients on this machine: loopback if the server listens on all addresses."""
    return f"https://{join_host_port(local_address(host), port)}"


async def _issued(
    folder: Path, host: str, token: str | None, certificates: CertificateSource | None
) -> tuple[ServerCertificates, PemKeyPair | str]:
    """The certificates of the server, and the credentials of its administrator."""
    if certificates is not None:
        if token is None:
            raise ValueError("certificates needs a token: the authority behind it issues no client certificates")
        return await certificates(), token
    from steersman.apiserver.serving.certificates import Authority  # noqa: PLC0415 - needs the package cryptography

    authority = Authority(folder)
    own = ServerCertificates(authority.certificate, authority.server(host))
    return own, authority.client(ADMIN, groups=(MASTERS,)) if token is None else token


def _identify_users(server: ApiServer, authentication: Authentication) -> None:
    """Let the limits identify the user of a request."""
    for handler in server.chain:
        if isinstance(handler, RequestLimits):
            handler.sender = handler.sender or authentication.sender


def _leave_connections(server: ApiServer, capacity: int) -> None:
    """Let one user's streams take at most half of the connections."""
    for handler in server.chain:
        if isinstance(handler, RequestLimits):
            handler.watching = min(handler.watching, max(1, capacity // 2))


def _is_administrator(server: ApiServer, authentication: Authentication) -> Callable[[HttpRequest], bool]:
    """A check whether the sender of a request is an administrator, by its credentials alone."""

    def check(wire: HttpRequest) -> bool:
        try:
            return MASTERS in authentication.sender(ServerRequest(wire, accounts=server.account_tokens)).groups
        except RequestRejected:
            return False

    return check


def _before_body(server: ApiServer) -> Callable[[HttpRequest], ServerResponse | str]:
    """A check that runs before the body is read: it returns the user, or rejects an unknown sender.

    So strangers cannot fill the memory.
    """
    authentications = [handler for handler in server.chain if isinstance(handler, Authentication)]
    audits = [handler for handler in server.chain if isinstance(handler, AuthenticationAudit)]

    def refusal(wire: HttpRequest) -> ServerResponse | str:
        request = ServerRequest(wire, accounts=server.account_tokens)
        name = ""
        try:
            for authentication in authentications:
                sender = authentication.sender(request)
                if sender is ANONYMOUS:
                    # Requests for the server's health have no long bodies.
                    raise unauthorized()
                name = name or sender.name
        except RequestRejected as refused:
            for audit in audits:
                refused = audit.reported(request, refused)
            return answer_refusal(request, refused)
        return name

    return refusal
