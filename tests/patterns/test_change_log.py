"""What a machine does is in its log, once; a converged world logs nothing."""

import logging

from samples.site import Site, site
from steersman import Done, Manager, MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import Key
from steersman.patterns import Outputs, Wait, reconciles
from steersman.testing import eventually


def page(name, text):
    return ConfigMap(metadata=ObjectMeta(name=name), data={"text": text})


@reconciles(Site, children=(ConfigMap,), ordered_deletion=True)
async def pages(home: Site, out: Outputs) -> Done | Wait:
    out.apply(page("index", home.spec.image))
    for number in range(home.spec.replicas):
        out.apply(page(f"page-{number}", "text"))
    return Wait("not yet") if home.spec.image == "slow" else Done()


async def test_every_change_is_one_line_and_a_converged_world_is_silent(client, sites, namespace, caplog):
    caplog.set_level(logging.INFO, "steersman.controller.site")
    manager = Manager(
        client.with_transport(lambda inner: inner, field_manager="pages"), name="pages", namespaces=[namespace]
    )
    manager.add(pages)
    key = Key(namespace, "home")

    async def said(generation):
        if generation:
            await eventually(
                client, Site, key, lambda found: found.status and found.status.observed_generation == generation
            )
        await eventually(lambda: not manager.controllers[0].busy)
        lines = [each.getMessage() for each in caplog.records if each.name == "steersman.controller.site"]
        caplog.clear()
        return sorted(line.replace(namespace, "ns") for line in lines)

    async with Supervisor() as tasks:
        tasks.start(manager.run(signals=False), name="manager")
        await client.create(site("home", namespace, image="one", replicas=1))
        assert await said(1) == [
            "ns/home: Ready is True (Ready): its 2 children are ready",
            "ns/home: created ConfigMap ns/index",
            "ns/home: created ConfigMap ns/page-0",
        ]
        await client.patch(ConfigMap, (namespace, "index"), MergePatch({"metadata": {"labels": {"a": "b"}}}))
        await client.patch(Site, key, MergePatch({"metadata": {"labels": {"a": "b"}}}))
        assert await said(0) == []
        await client.patch(Site, key, MergePatch({"spec": {"image": "slow"}}))
        assert await said(2) == [
            "ns/home: Ready is False (Waiting), was True: not yet",
            "ns/home: updated ConfigMap ns/index",
        ]
        await client.patch(Site, key, MergePatch({"spec": {"image": "two", "replicas": 0}}))
        assert await said(3) == [
            "ns/home: Ready is True (Ready), was False: its child is ready",
            "ns/home: deleted ConfigMap ns/page-0: no state declares it any more",
            "ns/home: updated ConfigMap ns/index",
        ]
        await client.delete(Site, key)
        await eventually(client, Site, key, gone=True)
        assert await said(0) == ["ns/home: deleted ConfigMap ns/index: Site ns/home is being deleted"]
        manager.stop()
