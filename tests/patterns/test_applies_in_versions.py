"""Server-side apply in two versions of a kind whose fields were renamed, as docs/versions.md describes them."""

from __future__ import annotations

import pytest

from samples.shops import OldItem, OldShop, OldShopSpec, Shop, ShopSpec, old_shops
from steersman import Manager, MergePatch, ObjectMeta, Unstructured
from steersman.errors import Conflict
from steersman.kinds.autoscaling_v2 import HorizontalPodAutoscaler

OPERATORS = "me", "other"


def new(host="a.org", replicas=5, **metadata):
    return Shop(metadata=ObjectMeta(name="corner", **metadata), spec=ShopSpec(host=host, replicas=replicas))


def old(host="a.org", size="large", **metadata):
    return OldShop(metadata=ObjectMeta(name="corner", **metadata), spec=OldShopSpec(domain=host, size=size))


def manager():
    operator = Manager(name="shops")
    operator.add(old_shops())
    return operator


def versions(shop, name="me"):
    """The versions in which a manager holds fields."""
    return {each.api_version.rpartition("/")[2] for each in shop.metadata.managed_fields if each.manager == name}


@pytest.mark.parametrize(("first", "second"), [(old, new), (new, old), (old, old), (new, new)])
async def test_a_manager_moves_to_another_version(plane, first, second):
    """What it gives up in the one version goes in the other one, too."""
    async with plane.running(manager()):
        client = plane.client_with(field_manager="me")
        await client.apply(first(labels={"team": "tea", "old": "yes"}, annotations={"a": "b"}))
        for host in ("b.org", "c.org"):
            await client.apply(second(host, labels={"team": "tea"}))
        shop = await client.get(Shop, "corner")
        assert (shop.spec.host, shop.spec.replicas, shop.metadata.labels) == ("c.org", 5, {"team": "tea"})
        assert "a" not in (shop.metadata.annotations or {})
        assert versions(shop) == {type(second()).gvk().version}


SCALED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
MEMORY = {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 60}}


def autoscaler(version, **spec):
    metadata = {"name": "web"}
    spec |= {"maxReplicas": 5, "scaleTargetRef": SCALED}
    kind = "HorizontalPodAutoscaler"
    return Unstructured({"apiVersion": f"autoscaling/{version}", "kind": kind, "metadata": metadata, "spec": spec})


async def test_metrics_that_a_manager_gives_up_by_another_version_stay(plane):
    """``v1`` has a field for one metric, ``v2`` one list for all: only an apply in ``v2`` gives up the others."""
    client = plane.client_with(field_manager="me")

    async def metrics():
        return [each.resource.name for each in (await client.get(HorizontalPodAutoscaler, "web")).spec.metrics or ()]

    memory = autoscaler("v2", metrics=[{"type": "Resource", "resource": MEMORY}])
    cpu = {"targetCPUUtilizationPercentage": 70}
    await client.apply(memory)
    await client.apply(autoscaler("v1", **cpu))
    assert await metrics() == ["memory", "cpu"]
    await client.delete(HorizontalPodAutoscaler, "web")
    await client.apply(memory)
    await client.apply(autoscaler("v2"))
    await client.apply(autoscaler("v1", **cpu))
    assert await metrics() == ["cpu"]


@pytest.mark.parametrize(("first", "second"), [(old, new), (new, old)])
async def test_two_managers_share_an_object_in_two_versions(plane, first, second):
    """One gives up the required field, which the other holds under its other name: neither loses anything."""
    async with plane.running(manager()):
        me, other = (plane.client_with(field_manager=name) for name in OPERATORS)
        await me.apply(first())
        await other.apply(second(labels={"team": "tea"}), force=True)
        await me.apply(type(first()).only(metadata=ObjectMeta(name="corner", annotations={"mine": "yes"})))
        shop = await me.get(Shop, "corner")
        assert (shop.spec.host, shop.spec.replicas) == ("a.org", 5)
        assert shop.metadata.labels == {"team": "tea"}
        assert shop.metadata.annotations["mine"] == "yes"
        await me.apply(type(first()).only(metadata=ObjectMeta(name="corner")))
        assert "mine" not in ((await me.get(Shop, "corner")).metadata.annotations or {})


async def test_a_conflict_names_the_field_in_the_version_of_its_owner(plane):
    async with plane.running(manager()):
        me, other = (plane.client_with(field_manager=name) for name in OPERATORS)
        await me.apply(old())
        with pytest.raises(Conflict) as refused:
            await other.apply(new("b.org"))
        assert [(each.manager, each.field) for each in refused.value.field_conflicts] == [("me", ".spec.domain")]


async def test_an_update_in_the_other_version_keeps_the_managed_fields(plane):
    """Otherwise the next apply would not remove what its manager gives up."""
    async with plane.running(manager()):
        client = plane.client_with(field_manager="me")
        applied = old(labels={"gone": "soon"})
        applied.spec.items = [OldItem(name="tea", price="3")]
        await client.apply(applied)
        await plane.client.patch(Shop, "corner", MergePatch({"spec": {"replicas": 1}}))
        assert versions(await client.get(Shop, "corner")) == {"v1alpha1"}
        await client.apply(old(), force=True)
        shop = await client.get(Shop, "corner")
        assert (shop.spec.items, shop.spec.replicas, shop.metadata.labels) == (None, 5, None)
