"""Registers the webhooks of an operator for a block of a test.

Guarantees
- The server calls the webhooks from the beginning of the block until its end.
- An embedded control plane calls them without a socket; for any other server, they listen on a port of this machine.
- Handlers run on the loop of the test.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from steersman.aio import call_on
from steersman.client import Client
from steersman.errors import InternalError, NotFound
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import Kind, ObjectMeta, Unstructured
from steersman.webhooks import Hook, WebhookEndpoint, WebhookRegistration, WebhookServer

_NAMESPACE = "steersman-testing"
_CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_PROBE = "steersman.dev/probe"
#: Lets a function answer the webhooks of a Service, by its namespace and name; None removes the function.
Answer = Callable[[str, str, Callable[[str, bytes], Awaitable[bytes]] | None], None]


class Answering(Protocol):
    """Answers reviews, as a `WebhookServer` does."""

    @property
    def hooks(self) -> tuple[Hook, ...]:
        """Its webhooks."""
        ...

    async def answer(self, path: str, body: bytes) -> bytes:
        """Answer one review."""
        ...


@asynccontextmanager
async def answered_in_process(
    server: Answering, client: Client, name: str, answer_in_process: Answer
) -> AsyncGenerator[None]:
    """Register webhooks that a server in this process calls without a socket."""
    home = asyncio.get_running_loop()

    async def answer(path: str, body: bytes) -> bytes:
        return await call_on(home, server.answer(path, body))

    endpoint = WebhookEndpoint(service=f"{_NAMESPACE}/{name}")
    registration = WebhookRegistration(server.hooks, endpoint, name=name)
    answer_in_process(_NAMESPACE, name, answer)
    try:
        for tree in registration.configurations():
            await client.apply(Unstructured(tree), force=True)
        await _set_conversions(client, registration, registration.conversion())
        yield
    finally:
        await _removed(client, registration)
        answer_in_process(_NAMESPACE, name, None)


@asynccontextmanager
async def answered_on_a_port(server: WebhookServer, client: Client, name: str) -> AsyncGenerator[None]:
    """Register webhooks that a server on this machine calls."""
    from steersman.webhooks import serve_webhooks  # noqa: PLC0415 - imports aiohttp's server

    endpoint = WebhookEndpoint(port=0, install=True)
    registration = WebhookRegistration(server.hooks, endpoint, name=name)
    async with serve_webhooks(server, endpoint, client, name=name) as served:
        try:
            while not served.registered:  # noqa: ASYNC110 - it takes a few requests
                await asyncio.sleep(0.01)
            await _until_called(client, name, served.address)
            yield
        finally:
            await served.leave_registrations()
            await _removed(client, registration)


async def _set_conversions(client: Client, registration: WebhookRegistration, conversion: dict[str, Any]) -> None:
    for name in registration.converted_kinds().values():
        definition = await client.get(_CRD, name)
        definition["spec"]["conversion"] = conversion
        await client.update(definition)


async def _removed(client: Client, registration: WebhookRegistration) -> None:
    for tree in registration.configurations():
        with suppress(NotFound):
            await client.delete(Kind(tree["apiVersion"], tree["kind"]), tree["metadata"]["name"])
    with suppress(NotFound):
        await _set_conversions(client, registration, {"strategy": "None"})


async def _until_called(client: Client, name: str, address: str) -> None:
    """Wait until the server calls the webhooks that were registered just now.

    The server reads registrations with a delay, in order. So this registers one more webhook, for a label that no other
    object has, at an unknown path. Once a write with that label fails, the server has read all registrations.
    """
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        probe = _probe(kind, f"{name}-probe", address)
        await client.apply(Unstructured(probe), force=True)
        labeled = ConfigMap(metadata=ObjectMeta(name="probe", labels={_PROBE: kind}))
        try:
            while not await _fails(client.create(labeled, dry_run=True)):  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(0.02)
        finally:
            await client.delete(Kind(probe["apiVersion"], kind), f"{name}-probe")


async def _fails(creation: Awaitable[object]) -> bool:
    try:
        await creation
    except InternalError:
        return True
    return False


def _probe(kind: str, name: str, address: str) -> dict[str, Any]:
    rule: dict[str, Iterable[str]] = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
        "operations": ["CREATE"],
    }
    webhook = {
        "name": "probe.steersman.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": f"{address}/probe"},
        "rules": [rule],
        "objectSelector": {"matchLabels": {_PROBE: kind}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 5,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [webhook],
    }
