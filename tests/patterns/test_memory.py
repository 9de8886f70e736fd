"""Two managers of one process run the same declaration and share nothing that they learn."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from samples.site import GROUP, Site, site
from steersman import ControlPlane, Done, Kind, Manager, MergePatch, ObjectMeta, Resource, Spec, Unstructured
from steersman.aio import Supervisor
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import Key, find_condition
from steersman.patterns import External, Outputs, Present, StateMachine, Wait, reconciles, state
from steersman.testing import eventually

WIDGETS = Kind(f"{GROUP}/v1", "Widget")


class WidgetSpec(Spec):
    size: int = 1


class Near(Resource[WidgetSpec, None], group=GROUP, version="v1", kind="Widget", plural="widgets"):
    """A Widget of a cluster where it lives in a namespace."""


class Wide(Resource[WidgetSpec, None], group=GROUP, version="v1", kind="Widget", plural="widgets", scope="Cluster"):
    """A Widget of a cluster where it lives in none."""


def widget(name: str) -> Unstructured:
    meta = {"metadata": {"name": name}, "spec": {"size": 1}}
    return Unstructured({"apiVersion": WIDGETS.api_version, "kind": WIDGETS.kind, **meta})


class Machine(StateMachine[Site], children=(WIDGETS,)):
    @state(condition="Made")
    async def made(self, home: Site, out: Outputs) -> Done:
        out.apply(widget(home.key.name))
        return Done()


@reconciles(Site, children=(WIDGETS,))
async def function(home: Site, out: Outputs) -> Done:
    out.apply(widget(home.key.name))
    return Done()


@asynccontextmanager
async def managing(plane, what):
    manager = Manager(
        plane.client.with_transport(lambda inner: inner, field_manager="widgets"), name="widgets", grace=1
    )
    manager.add(what)
    async with Supervisor() as tasks:
        tasks.start(manager.run(signals=False), name="manager")
        try:
            yield manager
        finally:
            manager.stop()


def is_ready(found):
    ready = find_condition(found.status.conditions or [], "Ready") if found.status else None
    return ready is not None and ready.status == "True"


@pytest.mark.parametrize("what", ["class", "function", "blueprint"])
async def test_a_kind_may_be_namespaced_in_one_cluster_and_not_in_the_other(what):
    """What one cluster said of a kind would otherwise decide in the other where a child is looked for, and what is pruned."""
    blueprint = Machine().blueprint()
    makers = {"class": Machine, "function": lambda: function, "blueprint": lambda: blueprint}
    async with AsyncExitStack() as stack:
        for definition in (Near, Wide, Near):
            plane = await stack.enter_async_context(ControlPlane())
            await plane.client.install(Site, definition)
            await plane.client.create(site("home", "default"))
            await stack.enter_async_context(managing(plane, makers[what]()))
            client = plane.client
            await eventually(client, Site, Key("default", "home"), is_ready)
            namespace = "default" if definition is Near else ""
            assert await client.find(definition, Key(namespace, "home")) is not None
            # only what no owner reference can hold needs a finalizer
            home = await client.get(Site, Key("default", "home"))
            assert bool(home.metadata.finalizers) == (definition is Wide)


class Shelf:
    """Something outside, which all clusters share."""

    def __init__(self):
        self.there = []

    async def find(self, key, obj):
        return key.uid if key.uid in self.there else None

    async def create(self, key, home):
        self.there.append(key.uid)
        return key.uid

    async def delete(self, key, obj, found):
        self.there.remove(found)


class Shelved(StateMachine[Site]):
    shelf = External(Shelf(), name="shelf", keep=True, late=0.0)

    @state(condition="Shelved")
    async def shelved(self, home: Site, out: Outputs) -> Done | Wait:
        match self.shelf.ensure(home):
            case Present():
                return Done()
            case pending:
                return pending.wait


async def test_machines_of_one_class_each_have_their_own_external():
    """Otherwise the machine of the second manager would never begin: its source runs in the first one."""
    async with AsyncExitStack() as stack:
        for _ in range(2):
            plane = await stack.enter_async_context(ControlPlane())
            await plane.client.install(Site)
            await plane.client.create(site("home", "default"))
            await stack.enter_async_context(managing(plane, Shelved()))
            await eventually(plane.client, Site, Key("default", "home"), is_ready)


async def test_every_owner_of_a_shared_child_is_woken_until_it_stops_declaring_it(client, sites, namespace):
    """A child without a mark of its owners is put back when one deletes it, whichever of them still declares it."""

    @reconciles(Site, children=(ConfigMap,))
    async def pages(home: Site, out: Outputs) -> Done:
        name, image = home.key.name, home.spec.image
        if image == "shared":
            out.apply(ConfigMap(metadata=ObjectMeta(name="shared"), data={name: "here"}), owner=False)
        elif image == "alone":
            out.apply(ConfigMap(metadata=ObjectMeta(name=f"{name}-alone")))
        return Done()

    runs = []
    manager = Manager(
        client.with_transport(lambda inner: inner, field_manager="pages"), name="pages", namespaces=[namespace]
    )
    manager.add(pages)
    manager.on_reconcile(lambda _, record: runs.append(record.request.key.name))
    async with Supervisor() as tasks:
        tasks.start(manager.run(signals=False), name="manager")
        for name in ("stays", "nothing", "other", "deleted"):
            await client.create(site(name, namespace, image="shared"))
            await eventually(client, Site, Key(namespace, name), is_ready)
        key = Key(namespace, "shared")
        runs.clear()
        await client.delete(ConfigMap, key)
        await eventually(lambda: set(runs) == {"stays", "nothing", "other", "deleted"})
        await eventually(client, ConfigMap, key)
        # one declares nothing any more, one something else, and one is gone
        for name, image in (("nothing", "none"), ("other", "alone")):
            await client.patch(Site, Key(namespace, name), MergePatch({"spec": {"image": image}}))
            await eventually(client, Site, Key(namespace, name), lambda one: one.status.observed_generation == 2)
        await client.delete(Site, Key(namespace, "deleted"))

        async def woken():
            runs.clear()
            await client.delete(ConfigMap, key)
            await eventually(client, ConfigMap, key, lambda found: found.data == {"stays": "here"})
            await eventually(lambda: not manager.controllers[0].busy)
            return set(runs)

        # the first time may meet late runs for the changes above
        async with asyncio.timeout(20):
            while await woken() != {"stays"}:
                pass
        manager.stop()
