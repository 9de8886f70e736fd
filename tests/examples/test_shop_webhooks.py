"""examples/shop_webhooks.py: what its users see."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

import pytest

from samples.stage import load
from steersman import ObjectMeta
from steersman.aio import Supervisor
from steersman.errors import Forbidden, InternalError, Invalid
from steersman.webhooks import WebhookEndpoint


@pytest.fixture
def example(monkeypatch):
    """The example, loaded anew: its manager runs once."""
    monkeypatch.delitem(sys.modules, "example_shop_webhooks", raising=False)
    return load("shop_webhooks")


async def until_registered(client, probe):
    """Wait until the server calls this manager, and not the port of an earlier one."""
    async with asyncio.timeout(60):
        while True:
            with suppress(InternalError):
                if (await client.create(probe, dry_run=True)).spec.image is not None:
                    return
            await asyncio.sleep(0.02)


async def until_checked(client, changed):
    """Wait until the server has read the registration of the checks, too."""
    async with asyncio.timeout(60):
        while True:
            try:
                await client.update(changed, dry_run=True)
            except Invalid:
                return
            await asyncio.sleep(0.02)


async def test_defaults_checks_and_the_old_version(client, monkeypatch, example):
    manager, Shop = example.manager, example.Shop  # noqa: N806

    def shop(name, **spec):
        return Shop(metadata=ObjectMeta(name=name), spec=example.ShopSpec(host="a.example.com", **spec))

    monkeypatch.setattr(manager, "webhook_endpoint", WebhookEndpoint(port=0, install=True))
    await client.install(*manager.own_kinds)
    async with Supervisor() as tasks:
        running = tasks.start(manager.run(client, signals=False), name="manager")
        await until_registered(client, shop("probe"))
        made = await client.create(shop("one", replicas=5, protected=True))
        assert made.spec.image == "nginx:1.27"
        made.spec.host = "b.example.com"
        await until_checked(client, made)
        with pytest.raises(Invalid, match=r"spec\.host: Forbidden: may not change"):
            await client.update(made)
        with pytest.raises(Forbidden, match="the shop is protected"):
            await client.delete(Shop, "one")
        old = await client.get(example.OldShop, "one")
        assert old.spec == example.OldShopSpec(domain="a.example.com", size="large")
        old.spec.size = "small"
        await client.update(old)
        changed = await client.get(Shop, "one")
        assert (changed.spec.replicas, changed.spec.image, changed.spec.protected) == (1, "nginx:1.27", True)
        changed.spec.protected = None
        await client.update(changed)
        await client.delete(Shop, "one")
        manager.stop()
        await running
