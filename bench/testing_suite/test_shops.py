"""A hundred tests of a webhook, each with three lines."""

from __future__ import annotations

import os

import pytest

from steersman import ObjectMeta, Resource, Spec
from steersman.testing import Plane
from steersman.webhooks import mutates

TESTS = int(os.environ.get("BENCH_TESTS", "100"))


class ShopSpec(Spec):
    """The desired state."""

    image: str | None = None


class Shop(Resource[ShopSpec, None], group="bench.steersman.dev", version="v1"):
    """A shop."""


@mutates(Shop)
def shop_defaults(shop: Shop) -> Shop:
    """Fill in the image."""
    shop.spec.image = shop.spec.image or "nginx:1.27"
    return shop


SHOP = Shop(metadata=ObjectMeta(name="corner"), spec=ShopSpec())


@pytest.mark.parametrize("number", range(TESTS))
async def test_the_image_has_a_default(control_plane: Plane, number: int) -> None:  # noqa: ARG001
    async with control_plane.running(shop_defaults):
        made = await control_plane.client.create(SHOP)
        assert made.spec.image == "nginx:1.27"
