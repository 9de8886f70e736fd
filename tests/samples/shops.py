"""A kind in two versions, and reviews as an API server sends them."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman import ObjectMeta, Resource, Spec, Status, Struct
from steersman.objects import AdmissionResponse, AdmissionReview, Object
from steersman.patches import JsonPatch
from steersman.webhooks import VersionConverter, WebhookServer, admission_path

GROUP = "shop.test.steersman.dev"


class Item(Struct):
    name: str
    price: int
    tax: int | None = None


class ShopSpec(Spec):
    host: str
    image: str | None = None
    replicas: int = 1
    items: list[Item] | None = None
    protected: bool | None = None


class ShopStatus(Status):
    visitors: int | None = None


class Shop(Resource[ShopSpec, ShopStatus], group=GROUP, version="v1", storage=True):
    """A shop."""


class OldItem(Struct):
    name: str
    price: str


class OldShopSpec(Spec):
    domain: str
    size: str | None = None
    items: list[OldItem] | None = None
    color: str | None = None


class OldShop(
    Resource[OldShopSpec, ShopStatus], group=GROUP, version="v1alpha1", kind="Shop", plural="shops", storage=False
):
    """A shop as it was before."""


SIZES = {"small": 1, "large": 5}


def upgraded_spec(old: OldShopSpec) -> ShopSpec:
    items = None if old.items is None else [Item(name=i.name, price=int(i.price)) for i in old.items]
    return ShopSpec(host=old.domain, replicas=SIZES.get(old.size or "", 1), items=items)


def downgraded_spec(new: ShopSpec) -> OldShopSpec:
    items = None if new.items is None else [OldItem(name=i.name, price=str(i.price)) for i in new.items]
    size = next((name for name, replicas in SIZES.items() if replicas == new.replicas), None)
    return OldShopSpec(domain=new.host, size=size, items=items)


def upgraded(old: OldShop) -> Shop:
    return Shop(metadata=old.metadata, spec=upgraded_spec(old.spec), status=old.status)


def downgraded(shop: Shop) -> OldShop:
    return OldShop(metadata=shop.metadata, spec=downgraded_spec(shop.spec), status=shop.status)


def old_shops() -> VersionConverter[OldShop, Shop]:
    return VersionConverter(OldShop, Shop, to_hub=upgraded, to_spoke=downgraded)


def shop(**spec: Any) -> dict[str, Any]:
    """A shop as JSON."""
    metadata = ObjectMeta(name="corner", namespace="town")
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Shop",
        "metadata": msgspec.to_builtins({"name": metadata.name, "namespace": metadata.namespace}),
        "spec": {"host": "a.example.com", **spec},
    }


def old_shop(**spec: Any) -> dict[str, Any]:
    """A shop of the old version as JSON."""
    return shop() | {"apiVersion": f"{GROUP}/v1alpha1", "spec": {"domain": "a.example.com", **spec}}


def admission(obj: Any, old: Any = None, *, operation: str = "CREATE", **request: Any) -> bytes:
    """The body of an AdmissionReview."""
    shown = obj or old
    gvk = dict(zip(("group", "version"), shown["apiVersion"].rpartition("/")[::2], strict=True))
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "7",
            "kind": {**gvk, "kind": shown["kind"]},
            "resource": {**gvk, "resource": shown["kind"].lower() + "s"},
            "name": shown["metadata"].get("name", ""),
            "namespace": shown["metadata"].get("namespace", ""),
            "operation": operation,
            "userInfo": {"username": "ada", "groups": ["keepers"]},
            "object": obj,
            "oldObject": old,
            "dryRun": False,
            "options": None,
            **request,
        },
    }
    return msgspec.json.encode(review)


async def reviewed(
    server: WebhookServer,
    body: bytes,
    *,
    kind: type[Object] = Shop,
    mutates: bool = False,
    within: float | None = None,
) -> AdmissionResponse:
    """The response to a review."""
    answer = await server.answer(admission_path(kind, mutates=mutates), body, timeout=within)
    response = msgspec.json.decode(answer, type=AdmissionReview).response
    assert response is not None
    assert response.uid == "7"
    return response


def operations(response: AdmissionResponse) -> list[dict[str, Any]]:
    """The operations of a patch."""
    return JsonPatch.parse(response.patch).to_json() if response.patch else []
