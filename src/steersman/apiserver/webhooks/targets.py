"""The target of a webhook: a URL, or a Service of the cluster."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

import msgspec

from steersman.apiserver.registry.definition import Tree


class ServiceReference(msgspec.Struct, frozen=True, kw_only=True):
    """A Service that serves webhooks."""

    namespace: str
    name: str
    path: str = ""
    port: int = 443

    @property
    def host(self) -> str:
        """The host name for which the certificate of the Service must be valid."""
        return f"{self.name}.{self.namespace}.svc"


class WebhookTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The ``clientConfig`` of a webhook: either ``url`` or ``service``, and the authorities of its certificate."""

    url: str = ""
    service: ServiceReference | None = None
    ca_bundle: bytes = b""

    @property
    def address(self) -> str:
        """The address for error messages."""
        if self.service is None:
            return self.url
        path = self.service.path
        return f"https://{self.service.host}:{self.service.port}{path if path.startswith('/') else f'/{path}'}"


class WebhookCaller(Protocol):
    """Sends a review to a webhook and returns its answer. Raises `CallFailed`; any other error is treated the same."""

    async def __call__(self, target: WebhookTarget, body: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109 - the webhook's own
        """Call a webhook."""
        ...


#: Returns the host and port of a Service: ``await resolve("shop", "webhooks", 443)``. Raises LookupError.
ServiceResolver: TypeAlias = Callable[[str, str, int], Awaitable[tuple[str, int]]]
#: Answers a review in this process, given the path of the webhook and the body.
ReviewHandler: TypeAlias = Callable[[str, bytes], Awaitable[bytes]]


class CallFailed(Exception):
    """A webhook could not be called, or its answer is invalid; the text is kube-apiserver's."""


def read_target(client: Tree) -> WebhookTarget:
    """The target of a ``clientConfig``."""
    try:
        bundle = base64.b64decode(client.get("caBundle") or "")
    except (binascii.Error, ValueError):
        bundle = b""
    service: Tree | None = client.get("service")
    if service is None:
        return WebhookTarget(url=client.get("url") or "", ca_bundle=bundle)
    reference = ServiceReference(
        namespace=service.get("namespace") or "",
        name=service.get("name") or "",
        path=service.get("path") or "",
        port=service.get("port") or 443,
    )
    return WebhookTarget(service=reference, ca_bundle=bundle)
