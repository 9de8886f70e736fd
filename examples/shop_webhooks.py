"""Webhooks as typed functions: defaults, checks, and conversion from an older version of a kind.

Run it against a server on this machine, such as `steersman serve` in a second terminal:

    steersman run examples.shop_webhooks --install

In a cluster, the API server calls the program through a Service: WebhookEndpoint(service="shop-system/shop-webhooks").
"""

from __future__ import annotations

from steersman import Manager, Resource, Spec
from steersman.webhooks import (
    Admitted,
    Denied,
    FieldProblem,
    Review,
    VersionConverter,
    WebhookEndpoint,
    forbidden,
    invalid,
    mutates,
    validates,
)


class ShopSpec(Spec):
    host: str
    image: str | None = None
    replicas: int = 1
    protected: bool | None = None


class Shop(Resource[ShopSpec, None], group="shops.example.com", version="v1"):
    """A shop on the web."""


class OldShopSpec(Spec):
    domain: str
    size: str = "small"


class OldShop(
    Resource[OldShopSpec, None],
    group="shops.example.com",
    version="v1alpha1",
    kind="Shop",
    plural="shops",
    storage=False,
):
    """A shop, as in the first release."""


@mutates(Shop)
def shop_defaults(shop: Shop) -> Shop:
    if shop.spec.image is None:
        shop.spec.image = "nginx:1.27"
    return shop


@validates(Shop, operations=("CREATE", "UPDATE", "DELETE"))
def shop_checks(shop: Shop, review: Review[Shop]) -> Admitted[Shop] | None:
    if review.operation == "DELETE":
        if shop.spec.protected:
            raise Denied("the shop is protected: set spec.protected to false first")
        return None
    problems: list[FieldProblem] = []
    if shop.spec.replicas > 50:
        problems.append(invalid("spec.replicas", shop.spec.replicas, "must be at most 50"))
    if review.old is not None and review.old.spec.host != shop.spec.host:
        problems.append(forbidden("spec.host", "may not change"))
    if problems:
        raise Denied(*problems)
    return Admitted(warnings=["one replica is not highly available"]) if shop.spec.replicas == 1 else None


SIZES = {"small": 1, "large": 5}


def upgraded(old: OldShop) -> Shop:
    return Shop(metadata=old.metadata, spec=ShopSpec(host=old.spec.domain, replicas=SIZES.get(old.spec.size, 1)))


def downgraded(shop: Shop) -> OldShop:
    size = "large" if shop.spec.replicas >= SIZES["large"] else "small"
    return OldShop(metadata=shop.metadata, spec=OldShopSpec(domain=shop.spec.host, size=size))


manager = Manager(name="shop-webhooks", webhook_endpoint=WebhookEndpoint(port=9443))
manager.add(shop_defaults)
manager.add(shop_checks)
manager.add(VersionConverter(OldShop, Shop, to_hub=upgraded, to_spoke=downgraded))
