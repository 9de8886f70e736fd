"""Hostile requests to the port of webhooks: each ends in bounded time, and a review is answered afterwards."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest
from hostile.loop_gauge import LoopGauge

from samples.eventually import eventually
from samples.shops import GROUP, Shop, admission, old_shops, shop
from steersman import ApiServer, Client
from steersman.transport import HttpTransport, TlsMaterial
from steersman.webhooks import SAVED_FIELDS, WebhookEndpoint, WebhookServer, admission_path, mutates, serve_webhooks
from steersman.webhooks.serving import ServedWebhooks
from steersman.wire import HttpRequest

MIB = 1024 * 1024
#: Seconds of CPU for which a request may block the others.
BLOCKED_MAX = 3.0
PATH = admission_path(Shop, mutates=True)


@mutates(Shop)
def shop_defaults(given: Shop) -> Shop:
    given.spec.image = "nginx"
    return given


@pytest.fixture(scope="module")
async def found() -> AsyncIterator[ServedWebhooks]:
    async with ApiServer() as server:
        client = Client(server.transport(), namespace="default", field_manager="tests")
        hooks = WebhookServer([shop_defaults, old_shops()])
        async with serve_webhooks(hooks, WebhookEndpoint(port=0), client, name="shops") as served:
            await eventually(lambda: served.registered)
            yield served


async def post(found: ServedWebhooks, path: str, body: bytes, *headers: tuple[str, str]) -> tuple[int, bytes]:
    transport = HttpTransport(found.address, tls=TlsMaterial(ca_data=found.certificates.ca_bundle))
    try:
        async with await transport.send(HttpRequest("POST", path, headers=headers, body=body)) as response:
            return response.status, await response.read()
    finally:
        await transport.close()


async def is_answered(found: ServedWebhooks) -> bool:
    status, body = await post(found, PATH, admission(shop()))
    return status == 200 and msgspec.json.decode(body)["response"]["allowed"]


def review(obj: bytes, *, uid: bytes = b'"7"', kind: bytes = b"AdmissionReview") -> bytes:
    """A review with any bytes as its object."""
    whole = admission(shop())
    given = msgspec.json.encode(shop())
    assert given in whole
    assert b'"uid":"7"' in whole
    whole = whole.replace(given, obj).replace(b'"uid":"7"', b'"uid":' + uid)
    return whole.replace(b'"AdmissionReview"', b'"%b"' % kind)


def conversion(*objects: bytes, desired: bytes = f'"{GROUP}/v1alpha1"'.encode()) -> bytes:
    head = (
        b'{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"7","desiredAPIVersion":'
    )
    return head + desired + b',"objects":[' + b",".join(objects) + b"]}}"


def deep(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def with_spec(spec: bytes) -> bytes:
    return msgspec.json.encode(shop()).replace(b'"host":', spec + b',"host":')


def with_saved(saved: Any) -> bytes:
    given = shop()
    given["metadata"]["annotations"] = {SAVED_FIELDS: msgspec.json.encode({"v1alpha1": saved}).decode()}
    return msgspec.json.encode(given)


NAMES = b",".join(b'"x%d":1' % number for number in range(300_000))

#: Each body, and the status codes of its response. A response with 200 denies, except where the object is valid.
REVIEWS: dict[str, tuple[Callable[[], bytes], int]] = {
    "brackets": (lambda: b"[" * (7 * MIB), 400),
    "braces": (lambda: b'{"request":' * 500_000, 400),
    "zeroes": (lambda: bytes(7 * MIB), 400),
    "no UTF-8": (lambda: b"\xff" * (7 * MIB), 400),
    "a long number": (lambda: b"9" * (7 * MIB), 400),
    "nothing": (lambda: b"", 400),
    "a list": (lambda: b"[]", 400),
    "another kind": (lambda: review(b"{}", kind=b"Review"), 400),
    "a uid that is a number": (lambda: review(b"{}", uid=b"7"), 400),
    "a uid without UTF-8": (lambda: review(b"{}", uid=b'"\xff"'), 400),
    "a long uid": (lambda: review(b"{}", uid=b'"' + b"x" * MIB + b'"'), 200),
    "a deep object": (lambda: review(deep(100_000)), 400),
    "a deep field": (lambda: review(with_spec(b'"deep":' + deep(900))), 200),
    "many fields": (lambda: review(with_spec(NAMES)), 200),
    "a long text": (lambda: review(with_spec(b'"text":"' + b"x" * (6 * MIB) + b'"')), 200),
    "a text without UTF-8": (lambda: review(with_spec(b'"text":"\xff\xfe"')), 200),
    "a number as the object": (lambda: review(b"7"), 200),
    "too long": (lambda: review(with_spec(b'"text":"' + b"x" * (8 * MIB) + b'"')), 413),
}

CONVERSIONS: dict[str, tuple[Callable[[], bytes], int]] = {
    "brackets": (lambda: b"[" * (20 * MIB), 400),
    "many empty objects": (lambda: conversion(*([b"{}"] * 1_000_000)), 200),
    "a deep object": (lambda: conversion(deep(100_000)), 400),
    "a deep field": (lambda: conversion(with_spec(b'"deep":' + deep(900))), 200),
    "many fields": (lambda: conversion(with_spec(NAMES)), 200),
    "no UTF-8": (lambda: conversion(with_spec(b'"text":"\xff\xfe"')), 200),
    "a long version": (lambda: conversion(with_spec(b'"x":1'), desired=b'"' + b"v" * (20 * MIB) + b'"'), 200),
    "many saved fields": (lambda: conversion(with_saved([{"path": ["spec", f"x{n}"], "value": n} for n in range(20_000)])), 200),
    "a deep path": (lambda: conversion(with_saved([{"path": ["spec"] * 100_000, "value": 1}])), 200),
    "too long": (lambda: conversion(b'"' + b"x" * (101 * MIB) + b'"'), 413),
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "name"), [*((PATH, name) for name in REVIEWS), *(("/convert", name) for name in CONVERSIONS)]
)
async def test_a_hostile_review_ends_in_time(found: ServedWebhooks, path: str, name: str):
    """It gets a response, it blocks the port for a short time at most, and the next review is answered."""
    make, wanted = (REVIEWS if path == PATH else CONVERSIONS)[name]
    body = make()
    async with asyncio.timeout(60), LoopGauge() as gauge:
        status, answer = await post(found, path, body)
    assert status == wanted, answer[:500]
    assert gauge.blocked < BLOCKED_MAX
    assert await is_answered(found)


async def test_a_compressed_body_is_not_expanded(found: ServedWebhooks):
    """A short body could stand for gigabytes."""
    status, _ = await post(found, PATH, admission(shop()), ("Content-Encoding", "gzip"))
    assert status == 200
    assert await is_answered(found)


async def test_slow_bodies_block_no_other_review(found: ServedWebhooks):
    """Many connections that never send the rest of their review."""
    context = ssl.create_default_context(cadata=found.certificates.ca_bundle.decode())
    host, port = found.address.removeprefix("https://").rsplit(":", 1)
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {6 * MIB}\r\n\r\n".encode()
    async with AsyncExitStack() as stack:
        for _ in range(100):
            _, writer = await asyncio.open_connection(host, int(port), ssl=context)
            stack.callback(writer.close)
            stack.callback(writer.transport.abort)
            writer.write(head + b'{"request":')
        async with asyncio.timeout(20):
            assert await is_answered(found)
