"""Checks the client certificates of requests to the webhook port.

Guarantees
- A client without an accepted certificate reaches no handler of admission reviews.
- Conversions need no certificate, because kube-apiserver presents none to conversion webhooks. A conversion depends only
  on the objects that the client sends, so it reveals nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from steersman.errors import ApiStatus, encode_status
from steersman.transport import ServerResponse, current_peer
from steersman.webhooks.server import CONVERT, JSON_HEADERS, WebhookServer
from steersman.wire import HttpRequest


class ClientCheck:
    """Passes requests of accepted clients to a server. With ``names``, the common name must be one of them."""

    def __init__(self, server: WebhookServer, names: Iterable[str]) -> None:
        self._server = server
        self._names = frozenset(names)

    async def handle(self, request: HttpRequest) -> ServerResponse:
        """Answer an HTTP request. The port calls this."""
        peer = current_peer()
        certificate = peer.certificate if peer is not None else b""
        if request.path == CONVERT or (certificate and (not self._names or _common_name(certificate) in self._names)):
            return await self._server.handle(request)
        problem = "has a common name that the port does not accept" if certificate else "is missing"
        message = f"this port answers only the API server: the client certificate {problem}"
        status = ApiStatus(status="Failure", message=message, reason="Forbidden", code=403)
        return ServerResponse(status=403, headers=JSON_HEADERS, body=encode_status(status))


@lru_cache(maxsize=64)
def _common_name(certificate: bytes) -> str:
    from steersman.transport import common_name  # noqa: PLC0415 - needs cryptography

    return common_name(certificate)
