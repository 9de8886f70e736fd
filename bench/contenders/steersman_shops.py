"""The webhooks of a Shop, written with Steersman as a user would: defaults, checks, and conversion from an older version.

The Go program in ``bench/controller_runtime_webhooks`` does the same. Arguments: the port, and the folder with
certificates.
"""

from __future__ import annotations

import sys
from pathlib import Path

from steersman import Manager, Resource, Spec, Struct
from steersman.cli import main
from steersman.transport import ServerTls
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


class Item(Struct):
    """An item of a shop."""

    name: str
    price: int


class ShopSpec(Spec):
    """The desired state."""

    host: str
    image: str | None = None
    replicas: int
    protected: bool | None = None
    items: list[Item] | None = None


class Shop(Resource[ShopSpec, None], group="bench.example.com", version="v1", storage=True):
    """A shop in the version that the server stores."""


class OldItem(Struct):
    """An item, as in the first release."""

    name: str
    price: str


class OldShopSpec(Spec):
    """The desired state, as in the first release."""

    domain: str
    image: str | None = None
    count: int
    protected: bool | None = None
    items: list[OldItem] | None = None


class OldShop(
    Resource[OldShopSpec, None],
    group="bench.example.com",
    version="v1alpha1",
    kind="Shop",
    plural="shops",
    storage=False,
):
    """A shop, as in the first release."""


@mutates(Shop)
def shop_defaults(shop: Shop) -> Shop:
    """Fill in the image."""
    if not shop.spec.image:
        shop.spec.image = "nginx:1.27"
    return shop


@validates(Shop, operations=("CREATE", "UPDATE", "DELETE"))
def shop_checks(shop: Shop, review: Review[Shop]) -> Admitted[Shop] | None:
    """Check the shop."""
    if review.operation == "DELETE":
        if shop.spec.protected:
            raise Denied("the shop is protected")
        return None
    problems: list[FieldProblem] = []
    if shop.spec.replicas > 50:
        problems.append(invalid("spec.replicas", shop.spec.replicas, "must be at most 50"))
    if review.old is not None and review.old.spec.host != shop.spec.host:
        problems.append(forbidden("spec.host", "may not change"))
    for number, item in enumerate(shop.spec.items or ()):
        if item.price < 0:
            problems.append(invalid(f"spec.items[{number}].price", item.price, "must not be negative"))
    if problems:
        raise Denied(*problems)
    return Admitted(warnings=["one replica is not highly available"]) if shop.spec.replicas == 1 else None


def upgraded(old: OldShop) -> Shop:
    """Convert to the stored version."""
    spec = old.spec
    items = None if spec.items is None else [Item(name=each.name, price=int(each.price)) for each in spec.items]
    wanted = ShopSpec(host=spec.domain, image=spec.image, replicas=spec.count, protected=spec.protected, items=items)
    return Shop(metadata=old.metadata, spec=wanted)


def downgraded(shop: Shop) -> OldShop:
    """Convert from the stored version."""
    spec = shop.spec
    items = None if spec.items is None else [OldItem(name=each.name, price=str(each.price)) for each in spec.items]
    wanted = OldShopSpec(domain=spec.host, image=spec.image, count=spec.replicas, protected=spec.protected, items=items)
    return OldShop(metadata=shop.metadata, spec=wanted)


manager = Manager(name="shops")
manager.add(shop_defaults)
manager.add(shop_checks)
manager.add(VersionConverter(OldShop, Shop, to_hub=upgraded, to_spoke=downgraded))

if __name__ == "__main__":
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    tls = ServerTls(certificate_file=str(folder / "tls.crt"), key_file=str(folder / "tls.key"))
    manager.webhook_endpoint = WebhookEndpoint(port=port, tls=tls)
    # as `steersman run steersman_shops:manager` does
    sys.exit(main(["run", "__main__:manager", "--log-level", "warning"]))
