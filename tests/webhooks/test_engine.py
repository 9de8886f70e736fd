"""Webhooks on kube-apiserver: registered, called over HTTPS, and their certificates renewed under load."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from samples.eventually import eventually
from samples.shops import Item, OldItem, OldShop, OldShopSpec, Shop, ShopSpec, old_shops
from steersman import Client, Manager, ObjectMeta
from steersman.aio import Supervisor
from steersman.errors import Forbidden, Invalid
from steersman.kinds.admissionregistration_v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from steersman.kinds.core_v1 import Secret
from steersman.objects import Kind
from steersman.webhooks import (
    Denied,
    Review,
    WebhookEndpoint,
    WebhookServer,
    forbidden,
    mutates,
    serve_webhooks,
    validates,
)


@mutates(Shop)
def shop_defaults(shop: Shop) -> Shop:
    shop.spec.image = shop.spec.image or "nginx"
    return shop


@validates(Shop, operations=("CREATE", "UPDATE", "DELETE"))
def shop_checks(shop: Shop, review: Review[Shop]) -> None:
    if review.operation == "DELETE" and shop.spec.protected:
        raise Denied("the shop is protected")
    if review.old is not None and review.old.spec.host != shop.spec.host:
        raise Denied(forbidden("spec.host", "may not change"))


def new_shop(name: str, **spec: Any) -> Shop:
    return Shop(metadata=ObjectMeta(name=name), spec=ShopSpec(host="a", **spec))


@asynccontextmanager
async def running(manager: Manager, client: Client) -> AsyncIterator[None]:
    async with Supervisor() as tasks:
        task = tasks.start(manager.run(client, signals=False), name="manager")
        try:
            yield
        finally:
            manager.stop()
            await task


async def until_called(client: Client) -> None:
    """Wait until the API server calls the webhook: it reads a new registration after a moment."""
    async with asyncio.timeout(60):
        while (await client.create(new_shop("probe"), dry_run=True)).spec.image != "nginx":  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@pytest.fixture
async def shops(api_server: Any, namespace: str) -> AsyncIterator[Client]:
    """A client in a namespace of its own; at the end, no registration is left."""
    async with api_server.client(field_manager="tests", namespace=namespace) as client:
        await client.install(Shop, OldShop)
        yield client
        for kind in (MutatingWebhookConfiguration, ValidatingWebhookConfiguration):
            for each in (await client.list(kind)).items:
                if each.key.name == f"shops-{namespace}":
                    await client.delete(each)
        crd = await client.get(Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"), CRD)
        crd["spec"]["conversion"] = {"strategy": "None"}
        await client.update(crd)


CRD = f"shops.{Shop.gvk().group}"


async def test_a_manager_registers_its_webhooks_and_they_are_called(shops: Client, namespace: str):
    """Defaults, checks and conversion of an operator work with nothing but `manager.add` and a port."""
    endpoint = WebhookEndpoint(port=0, install=True)
    manager = Manager(name=f"shops-{namespace}", webhook_endpoint=endpoint)
    for hook in (shop_defaults, shop_checks, old_shops()):
        manager.add(hook)
    async with running(manager, shops):
        await until_called(shops)
        async with asyncio.timeout(60):
            while {each.name: each.message for each in await manager.ready.run()}["webhooks"]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        made = await shops.create(new_shop("corner", items=[Item(name="tea", price=3, tax=1)], protected=True))
        assert made.spec.image == "nginx"
        made.spec.host = "b"
        with pytest.raises(Invalid) as refused:
            await shops.update(made)
        assert [(cause.field, cause.reason) for cause in refused.value.causes] == [("spec.host", "FieldValueForbidden")]
        with pytest.raises(Forbidden, match="the shop is protected"):
            await shops.delete(Shop, "corner")

        old = await shops.get(OldShop, "corner")
        assert old.spec == OldShopSpec(domain="a", size="small", items=[OldItem(name="tea", price="3")])
        old.spec.size = "large"
        old.spec.color = "red"
        await shops.update(old)
        new = await shops.get(Shop, "corner")
        assert new.spec.replicas == 5
        assert new.spec.items == [Item(name="tea", price=3, tax=1)]
        assert new.spec.image == "nginx"
        assert (await shops.get(OldShop, "corner")).spec.color == "red"
        new.spec.protected = False
        await shops.update(new)
        await shops.delete(Shop, "corner")


@pytest.mark.alone("it measures how soon an object is restored")
async def test_an_overwritten_registration_is_restored_at_once(shops: Client, namespace: str):
    """A redeployment that replaces the objects interrupts no conversion and no review for longer than 2 seconds."""
    manager = Manager(name=f"shops-{namespace}", webhook_endpoint=WebhookEndpoint(port=0, install=True))
    for hook in (shop_defaults, old_shops()):
        manager.add(hook)
    definition = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    async with running(manager, shops):
        await until_called(shops)
        await shops.create(new_shop("corner", replicas=5))
        whole = await converted(shops, definition)
        for overwrite in ({"strategy": "None"}, {**whole, "webhook": without_bundle(whole["webhook"])}):
            crd = await shops.get(definition, CRD)
            crd["spec"]["conversion"] = overwrite
            await shops.update(crd)
            async with asyncio.timeout(2):
                assert await converted(shops, definition) == whole
        live = await shops.get(MutatingWebhookConfiguration, manager.name)
        bundle = live.webhooks[0].client_config.ca_bundle
        live.webhooks[0].client_config.ca_bundle = b""
        await shops.update(live)
        async with asyncio.timeout(2):
            while live.webhooks[0].client_config.ca_bundle != bundle:
                await asyncio.sleep(0.02)
                live = await shops.get(MutatingWebhookConfiguration, manager.name)
        assert (await shops.get(OldShop, "corner")).spec.size == "large"


async def converted(client: Client, definition: Kind) -> dict[str, Any]:
    """Wait until the CRD has a conversion with an authority."""
    while True:
        conversion = (await client.get(definition, CRD))["spec"].get("conversion") or {}
        if (conversion.get("webhook") or {}).get("clientConfig", {}).get("caBundle"):
            return conversion
        await asyncio.sleep(0.02)


def without_bundle(webhook: dict[str, Any]) -> dict[str, Any]:
    config = {name: value for name, value in webhook["clientConfig"].items() if name != "caBundle"}
    return {**webhook, "clientConfig": config}


async def test_a_certificate_is_renewed_while_requests_run(shops: Client, namespace: str):
    """Two replicas share one Secret; a renewal fails no request and changes no caBundle."""
    server, other = WebhookServer([shop_defaults]), WebhookServer([shop_defaults])
    name = f"shops-{namespace}"
    async with (
        serve_webhooks(other, WebhookEndpoint(port=0), shops, name=name) as second,
        serve_webhooks(server, WebhookEndpoint(port=0, install=True), shops, name=name) as first,
    ):
        await until_called(shops)
        await eventually(lambda: second.address)
        assert first.certificates.current() == second.certificates.current()
        stop = asyncio.Event()

        async def create(worker: int) -> int:
            number = 0
            while not stop.is_set():
                made = await shops.create(new_shop(f"shop-{worker}-{number}"), dry_run=True)
                assert made.spec.image == "nginx"
                number += 1
            return number

        async with Supervisor() as tasks:
            workers = [tasks.start(create(worker), name="create") for worker in range(4)]
            before = first.certificates.current()
            bundle = first.certificates.ca_bundle
            for _ in range(3):
                await first.certificates.refresh(force=True)
                assert first.certificates.current() != before
                await asyncio.sleep(0.2)
            stop.set()
            counts = [await worker for worker in workers]
        assert min(counts) > 0
        assert first.certificates.ca_bundle == bundle
        await second.certificates.refresh()
        assert second.certificates.current() == first.certificates.current()
        secret = await shops.get(Secret, f"{name}-webhooks-tls")
        assert set(secret.data or {}) == {"tls.crt", "tls.key", "ca.crt", "ca.key"}
