"""Guarantee 1: reconcile gets a key and reads; events that are merged, repeated or missed change nothing."""

import asyncio
from collections import Counter

from samples.site import Site, site
from steersman import MergePatch, ObjectMeta
from steersman.cache import KindOptions
from steersman.controller import Done, when
from steersman.errors import NotFound
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import Manager


class Mirror:
    """One ConfigMap for each Site, with its image; written only if it differs."""

    def __init__(self):
        self.runs = Counter()
        self.state = {}

    async def reconcile(self, ctx, request):
        self.runs[request.key.name] += 1
        try:
            found = await ctx.client.get(Site, request.key)
        except NotFound:
            self.state.pop(request.key.name, None)
            return Done()
        wanted = {"image": found.spec.image, "uid": found.metadata.uid}
        try:
            data = (await ctx.client.get(ConfigMap, request.key)).data
        except NotFound:
            data = None
        if data != wanted:
            child = ConfigMap(metadata=ObjectMeta(name=request.key.name, namespace=request.key.namespace), data=wanted)
            await ctx.client.apply(child, owner=found)
        self.state[request.key.name] = found.spec.image
        return Done()


def mirroring(client, namespace, mirror, **own):
    here = KindOptions(namespaces=(namespace,))
    manager = Manager(client, kinds={Site: here, ConfigMap: here})
    begun = manager.controller(Site)
    if own:
        begun = begun.when(when(lambda event: True), **own)
    begun.owns(ConfigMap).run_with(mirror)
    return manager


def image(value):
    return MergePatch({"spec": {"image": value}})


async def test_level_not_edge_merged(client, other, namespace, line, running, until):
    """Twenty changes that arrive as one are one look at the last of them."""
    mirror = Mirror()
    manager = mirroring(client.with_transport(line.wrap), namespace, mirror)
    async with running(manager):
        await other.create(site("merged", namespace, image="v0"))
        await until(lambda: mirror.state == {"merged": "v0"})
        before = mirror.runs["merged"]
        line.open.clear()
        for number in range(1, 21):
            await other.patch(Site, "merged", image(f"v{number}"))
        line.open.set()
        await until(lambda: mirror.state == {"merged": "v20"})
        assert mirror.runs["merged"] - before < 20
        assert (await other.get(ConfigMap, "merged")).data["image"] == "v20"


async def test_level_not_edge_repeated(client, other, namespace, running, until):
    """The same event again and again makes the same look again and again, and no write."""
    mirror = Mirror()
    await other.create(site("repeated", namespace, image="v1"))
    async with running(mirroring(client, namespace, mirror, resync=0.2)):
        await until(lambda: mirror.runs["repeated"] >= 2)
        version = (await other.get(ConfigMap, "repeated")).metadata.resource_version
        seen = mirror.runs["repeated"]
        await until(lambda: mirror.runs["repeated"] >= seen + 5)
        assert (await other.get(ConfigMap, "repeated")).metadata.resource_version == version


async def test_level_not_edge_missed(client, other, namespace, line, running, until):
    """While no watch gets through: one changed, one deleted, one created, one replaced by another of its name."""
    mirror = Mirror()
    for name in ("changed", "deleted", "replaced", "untouched"):
        await other.create(site(name, namespace, image="v1"))
    manager = mirroring(client.with_transport(line.wrap), namespace, mirror)
    async with running(manager):
        await until(lambda: len(mirror.state) == 4)
        runs = mirror.runs.copy()
        await line.cut()
        await other.patch(Site, "changed", image("v2"))
        await other.delete(Site, "deleted")
        await other.create(site("created", namespace, image="v2"))
        await other.delete(Site, "replaced")
        successor = await other.create(site("replaced", namespace, image="v1"))
        # a child that vanishes meanwhile is made again
        await other.delete(ConfigMap, "untouched")
        line.mend()
        wanted = {"changed": "v2", "created": "v2", "replaced": "v1", "untouched": "v1"}
        await until(lambda: mirror.state == wanted and mirror.runs["replaced"] > runs["replaced"])
        async with other.watch(ConfigMap, namespace=namespace, initial_events=True) as seen, asyncio.timeout(30):
            async for event in seen:
                if getattr(event, "object", None) is not None and event.object.key.name == "untouched":
                    assert event.object.data["image"] == "v1"
                    break
        assert mirror.runs["untouched"] > runs["untouched"]
        assert (await other.get(ConfigMap, "replaced")).data["uid"] == successor.metadata.uid
