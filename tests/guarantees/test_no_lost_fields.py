"""Guarantee 4: a write drops no field that the program's types do not know, and none of another writer."""

import asyncio

import pytest

from samples.site import Site, ThinSite, site
from steersman import Kind, MergePatch
from steersman.cache import KindOptions
from steersman.controller import Done, when
from steersman.manager import Manager

#: Nothing of this is known to `ThinSite`, which has an image alone.
UNKNOWN = {
    "mode": "dynamic",
    "replicas": 7,
    "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}],
    "routes": [{"path": "/a", "weight": 0}, {"path": "/b"}],
    "settings": {"deep": {"list": [1, None, {"x": ""}], "empty": {}}},
    "memory": "1Gi",
}


async def _update(ctx, found, image):
    found.spec.image = image
    await ctx.client.update(found)


async def _patch_from(ctx, found, image):
    found.spec.image = image
    await ctx.client.patch_from(found, found)


async def _save(ctx, found, image):
    found.spec.image = image
    await ctx.client.save(found)


async def _create_or_update(ctx, found, image):
    def mutate(current):
        current.spec.image = image

    await ctx.client.create_or_update(found, mutate)


def thin(client, namespace, reconciler):
    manager = Manager(client, kinds={ThinSite: KindOptions(namespaces=(namespace,))})
    manager.controller(ThinSite).when(when(lambda event: event.key.namespace == namespace)).run_with(reconciler)
    return manager


@pytest.mark.parametrize("write", [_update, _patch_from, _save, _create_or_update], ids=lambda each: each.__name__[1:])
async def test_no_lost_fields(client, other, namespace, running, until, write):
    """A program that knows one field of many, reading from its cache, changes that one."""
    tree = {"apiVersion": "web.test.steersman.dev/v1", "kind": "Site"}
    kind = Kind(tree["apiVersion"], "Site")
    await other.create(site("rich", namespace, image="v1"))
    await other.patch(
        Site,
        "rich",
        MergePatch({"spec": UNKNOWN, "metadata": {"annotations": {"theirs": "kept"}, "finalizers": ["test.dev/kept"]}}),
    )
    before = (await other.get(kind, "rich")).tree
    written = asyncio.Event()

    class Thin:
        async def reconcile(self, ctx, request):
            found = await ctx.client.get(ThinSite, request.key)
            if found.spec.image != "v2":
                await write(ctx, found, "v2")
            written.set()
            return Done()

    async with running(thin(client, namespace, Thin())):
        await written.wait()
    after = (await other.get(kind, "rich")).tree
    assert after["spec"] == {**before["spec"], "image": "v2"}
    assert after["metadata"]["annotations"] == {"theirs": "kept"}
    assert after["metadata"]["finalizers"] == ["test.dev/kept"]
    await other.patch(Site, "rich", MergePatch({"metadata": {"finalizers": None}}))


async def test_no_lost_fields_of_another_writer(client, other, namespace, running, until):
    """Two that write the same object all the time: conflicts are tried again, and each keeps what it wrote."""
    await client.create(site("shared", namespace, image="v0"))
    results = []

    class Counts:
        async def reconcile(self, ctx, request):
            found = await ctx.client.get(ThinSite, request.key)
            number = int(found.spec.image[1:])
            if number < 9:  # fewer than make a hot loop
                found.spec.image = f"v{number + 1}"
                await ctx.client.update(found)
            else:
                results.append(number)
            return Done()

    async with running(thin(client, namespace, Counts())):
        for number in range(40):
            await other.patch(
                Site,
                "shared",
                MergePatch({"spec": {"replicas": number % 50}, "metadata": {"annotations": {f"n{number}": "x"}}}),
            )
        await until(lambda: results)
    after = await other.get(Site, "shared")
    assert (after.spec.image, after.spec.replicas) == ("v9", 39)
    assert set(after.metadata.annotations) == {f"n{number}" for number in range(40)}
