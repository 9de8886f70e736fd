"""A release that reconciles a new version of its kind renews the owner references of all children."""

from __future__ import annotations

from samples.shops import OldShop, OldShopSpec, Shop, old_shops
from steersman import Done, Manager, MergePatch, ObjectMeta
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import child, reconciles
from steersman.testing import eventually

HOW = ("apply", "create", "merge", "replace", "update")


def release(kind: type) -> Manager:
    """An operator that makes a child in each way, and claims others."""

    @reconciles(kind, name="shop", children=(child(ConfigMap, claims=lambda shop: {"shop": shop.key.name}),))
    async def shops(shop, out) -> Done:
        for how in HOW:
            out.apply(ConfigMap(metadata=ObjectMeta(name=how)), how=how)
        out.apply(ConfigMap(metadata=ObjectMeta(name="kept")), how="create", prune=False)
        return Done()

    manager = Manager(name="shops")
    manager.add(old_shops())
    manager.add(shops)
    return manager


async def test_every_child_names_the_version_that_is_reconciled(control_plane):
    """When the old version is no longer served, the garbage collector would not find the owner: the children would stay."""
    client = control_plane.client

    async def versions() -> dict[str, str]:
        found = [each for each in await client.list(ConfigMap) if each.metadata.owner_references]
        return {each.key.name: each.metadata.owner_references[0].api_version for each in found}

    await client.create(ConfigMap(metadata=ObjectMeta(name="claimed", labels={"shop": "corner"})))
    async with control_plane.running(release(OldShop)) as operator:
        await client.create(OldShop(metadata=ObjectMeta(name="corner"), spec=OldShopSpec(domain="a.org")))
        await eventually(client, ConfigMap, "claimed", lambda each: each.metadata.owner_references)
        await operator.drained()
        assert await versions() == dict.fromkeys((*HOW, "kept", "claimed"), OldShop.gvk().api_version)
    async with control_plane.running(release(Shop)) as operator:
        await operator.drained()
        assert await versions() == dict.fromkeys((*HOW, "kept", "claimed"), Shop.gvk().api_version)
        with control_plane.writes() as writes:
            await client.patch(Shop, "corner", MergePatch({"metadata": {"labels": {"look": "again"}}}))
            await operator.drained()
        assert writes.by("shops") == []
