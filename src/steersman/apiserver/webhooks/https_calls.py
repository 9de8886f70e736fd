"""Calls webhooks over HTTPS or in this process.

Guarantees
- Only `steersman.transport` opens sockets. Connections are kept for the last `CLIENTS_MAX` webhooks; those of an older
  one close after its calls in progress.
- A call ends within its timeout, and reads at most `ANSWER_MAX` bytes. It follows no redirect.
- A webhook in this process whose own writes call it again fails after `NESTED_MAX` calls.
- Failures have kube-apiserver's messages, except those that come from Go's network code.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from steersman.apiserver.webhooks.targets import (
    CallFailed,
    ReviewHandler,
    ServiceReference,
    ServiceResolver,
    WebhookTarget,
)
from steersman.errors import ApiError, ConfigError, DeadlineExceeded, decode_status
from steersman.golang import quoted
from steersman.transport import TlsMaterial, join_host_port
from steersman.wire import JSON, HttpRequest

if TYPE_CHECKING:
    from steersman.transport import HttpTransport

#: The longest answer of a webhook in bytes.
ANSWER_MAX: Final = 3 * 1024 * 1024
#: The number of webhooks whose connections are kept.
CLIENTS_MAX: Final = 200
#: How many webhooks in this process may call each other in a row, by writing objects.
NESTED_MAX: Final = 16
_SHOWN_MAX: Final = 2048
_OUT_OF_TIME: Final = "context deadline exceeded"
#: The message of Go's client for each status code.
_CODES: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_depth: ContextVar[int] = ContextVar("steersman_nested_webhooks", default=0)


class WebhookCalls:
    """The default `WebhookCaller`. A resolver finds the address of a Service; `close` closes the connections."""

    def __init__(self, resolver: ServiceResolver) -> None:
        self._resolver = resolver
        self._clients: dict[tuple[str, str, bytes], _Client] = {}
        #: The functions that answer for Services in this process, by namespace and name.
        self._answered: dict[tuple[str, str], ReviewHandler] = {}

    def answer_in_process(self, namespace: str, name: str, handler: ReviewHandler | None) -> None:
        """Let a function of this process answer all webhooks of a Service; None removes the function."""
        if handler is None:
            self._answered.pop((namespace, name), None)
        else:
            self._answered[namespace, name] = handler

    async def __call__(self, target: WebhookTarget, body: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109 - part of the call
        """Call a webhook."""
        seconds = math.ceil(timeout)
        tried = f"Post {quoted(f'{target.address}?timeout={seconds}s')}: "
        try:
            async with asyncio.timeout(timeout):
                return await self._called(target, body, seconds, tried)
        except TimeoutError:
            raise CallFailed(f"{tried}{_OUT_OF_TIME}") from None

    async def close(self) -> None:
        """Close all connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.transport.close()

    async def _called(self, target: WebhookTarget, body: bytes, seconds: int, tried: str) -> bytes:
        service = target.service
        if service is not None and (handler := self._answered.get((service.namespace, service.name))) is not None:
            return await _nested(handler, service.path or "/", body, tried)
        path = service.path if service is not None else urlsplit(target.url).path
        request = HttpRequest(
            method="POST",
            path=path if path.startswith("/") else f"/{path}",
            query=(("timeout", f"{seconds}s"),),
            headers=(("Content-Type", JSON), ("Accept", "application/json, */*")),
            body=body,
        )
        try:
            async with (
                self._transport(target) as transport,
                await transport.send(request, timeout=seconds + 1) as response,
            ):
                content_type = response.headers.get("Content-Type", JSON)
                answer = await response.read(ANSWER_MAX)
                status = response.status
        except DeadlineExceeded:
            raise CallFailed(f"{tried}{_OUT_OF_TIME}") from None
        except (ApiError, ConfigError, LookupError) as error:
            raise CallFailed(f"{tried}{_network_words(error, target)}") from None
        return _checked(status, content_type, answer)

    @asynccontextmanager
    async def _transport(self, target: WebhookTarget) -> AsyncGenerator[HttpTransport]:
        """The connections to a webhook, reserved for one call."""
        service = target.service
        if service is None:
            parts = urlsplit(target.url)
            server, name = f"{parts.scheme}://{parts.netloc}", ""
        else:
            server, name = await self._located(service), service.host
        key = (server, name, target.ca_bundle)
        client = self._clients.pop(key, None)
        if client is None:
            tls = TlsMaterial(ca_data=target.ca_bundle or None, server_name=name or None)
            from steersman.transport import HttpTransport  # noqa: PLC0415 - imports aiohttp, and few servers call webhooks

            client = _Client(HttpTransport(server, tls=tls))
        # The most recent one comes last.
        self._clients[key] = client
        client.calls += 1
        try:
            while len(self._clients) > CLIENTS_MAX:
                oldest = self._clients.pop(next(iter(self._clients)))
                oldest.is_kept = False
                await oldest.close_if_unused()
            yield client.transport
        finally:
            client.calls -= 1
            await client.close_if_unused()

    async def _located(self, service: ServiceReference) -> str:
        host, port = await self._resolver(service.namespace, service.name, service.port)
        return f"https://{join_host_port(host, port)}"


class _Client:
    """The connections to one webhook, and the number of its calls in progress."""

    def __init__(self, transport: HttpTransport) -> None:
        self.transport = transport
        self.calls = 0
        self.is_kept = True

    async def close_if_unused(self) -> None:
        if not self.is_kept and not self.calls:
            await self.transport.close()


async def _nested(handler: ReviewHandler, path: str, body: bytes, tried: str) -> bytes:
    """The answer of a handler in this process, whose writes may call webhooks in turn."""
    depth = _depth.get()
    if depth >= NESTED_MAX:
        raise CallFailed(f"{tried}writes of webhooks call webhooks {NESTED_MAX} times in a row; does one call itself?")
    token = _depth.set(depth + 1)
    try:
        return await handler(path, body)
    finally:
        _depth.reset(token)


def _checked(status: int, content_type: str, answer: bytes) -> bytes:
    """The body of a successful answer."""
    if 200 <= status <= 206:
        if not answer:
            raise CallFailed(f"0-length response with status code: {status} and content type: {content_type}")
        return answer
    rejection = decode_status(answer)
    if rejection is not None and rejection.status == "Failure":
        raise CallFailed(rejection.message)
    is_text = content_type.startswith("text/")
    words = answer[:_SHOWN_MAX].decode("utf-8", "replace").strip() if is_text else "unknown"
    if status in {403, 415}:
        raise CallFailed(words)
    if status >= 500 and status not in _CODES:
        raise CallFailed(f"an error on the server ({quoted(words)}) has prevented the request from succeeding")
    otherwise = f"the server responded with the status code {status} but did not return more information"
    raise CallFailed(_CODES.get(status, otherwise))


def _network_words(error: Exception, target: WebhookTarget) -> str:
    """The message about a failed connection: kube-apiserver's where it is known, and otherwise this server's."""
    words = str(error.args[0]) if isinstance(error, LookupError) and error.args else str(error)
    if target.service is None and "connection refused" in words:
        parts = urlsplit(target.url)
        return f"dial tcp {parts.hostname}:{parts.port or 443}: connect: connection refused"
    if "is not trusted" in words and "mismatch" not in words:
        return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    return words
