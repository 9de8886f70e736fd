"""A user's test of webhooks: the fixture registers them, on every server, without a port in this process."""

from __future__ import annotations

import pytest

from samples.stage import load
from steersman import ObjectMeta
from steersman.errors import Forbidden
from steersman.kinds.admissionregistration_v1 import MutatingWebhookConfiguration
from steersman.testing import Plane

example = load("shop_webhooks")


def shop(name: str, **spec: object) -> object:
    return example.Shop(metadata=ObjectMeta(name=name), spec=example.ShopSpec(host="a", **spec))


async def test_the_webhooks_of_a_manager_are_called(control_plane: Plane):
    """Defaults and refusals of an operator are tested like its reconciles."""
    async with control_plane.running(example.manager):
        made = await control_plane.client.create(shop("one", protected=True))
        assert made.spec.image == "nginx:1.27"
        with pytest.raises(Forbidden, match="the shop is protected"):
            await control_plane.client.delete(made)
    assert not (await control_plane.client.list(MutatingWebhookConfiguration)).items
    await control_plane.client.delete(made)


async def test_one_handler_is_enough(control_plane: Plane):
    async with control_plane.running(example.shop_defaults):
        assert (await control_plane.client.create(shop("two"))).spec.image == "nginx:1.27"


async def test_another_version_loses_no_field(control_plane: Plane):
    """A client of the old version changes a label; what the old version cannot hold stays."""
    client = control_plane.client
    async with control_plane.running(example.manager):
        await client.create(shop("three", replicas=7, protected=True))
        old = await client.get(example.OldShop, "three")
        assert old.spec == example.OldShopSpec(domain="a", size="large")
        old.metadata.labels = {"a": "b"}
        await client.update(old)
        new = await client.get(example.Shop, "three")
        assert (new.spec.replicas, new.spec.protected, new.metadata.labels) == (7, True, {"a": "b"})
        assert not new.metadata.annotations
