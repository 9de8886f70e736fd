"""Children that no owner reference can hold, and whom an object wakes: in a manager that runs."""

import asyncio

import pytest
from patterns.declaring import own, reconciling

from samples.site import Site
from steersman import Done, Manager, ObjectMeta
from steersman.aio import Supervisor, name_suffix
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.kinds.rbac_v1 import ClusterRole
from steersman.objects import Key
from steersman.patterns import Children, Outputs, child, reconciles
from steersman.patterns.children.apply import apply_outputs
from steersman.patterns.children.deletion import prune
from steersman.patterns.children.memory import Memories


@pytest.fixture
async def home(client, sites, namespace):
    return await own(client, "home", namespace)


@pytest.fixture
async def elsewhere(client):
    made = await client.create(Namespace(metadata=ObjectMeta(generate_name="elsewhere-")))
    yield made.key.name
    await client.delete(made)


async def test_children_out_of_reach_are_held_by_a_label(client, home, elsewhere, namespace):
    kinds = (child(ConfigMap, across_namespaces=True), ClusterRole)
    role = f"role-{name_suffix()}"

    def build(site, out):
        out.apply(ConfigMap(metadata=ObjectMeta(name="far", namespace=elsewhere)))
        out.apply(ConfigMap(metadata=ObjectMeta(name="near")))
        out.apply(ClusterRole(metadata=ObjectMeta(name=role, labels={"mine": "too"})))

    async with reconciling(client, home, kinds) as stage:
        made = await stage.run(build)
        far, near, wide = [each.object.metadata for each in made.result.children]
        owner = f"Site.web.test.steersman.dev/{namespace}/home"
        assert far.labels == {"steersman.dev/owner-uid": home.metadata.uid}
        assert far.annotations == {"steersman.dev/owner": owner}
        assert (far.owner_references, wide.owner_references) == (None, None)
        assert wide.labels == {"mine": "too", "steersman.dev/owner-uid": home.metadata.uid}
        assert (near.labels, near.owner_references[0].uid) == (None, home.metadata.uid)
        assert (await stage.run(build)).writes == []
    async with reconciling(client, home, kinds) as stage:  # as after a restart
        assert (await stage.run(build)).writes == []
        pruned = await stage.run(lambda site, out: None)
        assert sorted(each.identity.key.name for each in pruned.pruned) == ["far", "near", role]
        assert await client.find(ClusterRole, role) is None


async def test_another_owners_label_is_respected(client, home, elsewhere, namespace):
    other = await own(client, "other", namespace)
    kinds = (child(ConfigMap, across_namespaces=True),)

    def build(site, out):
        out.apply(ConfigMap(metadata=ObjectMeta(name="far", namespace=elsewhere)), adopt=True)

    async with reconciling(client, other, kinds) as stage:
        await stage.run(build)
    async with reconciling(client, home, kinds) as stage:
        refused = await stage.run(build)
        assert refused.writes == []
        assert refused.first_unready[1] == (
            f"ConfigMap {elsewhere}/far exists and belongs to Site {namespace}/other (uid {other.metadata.uid}); delete it or "
            "give the child another name; adopt=True takes over only objects without a controller"
        )


async def test_every_owner_that_a_child_concerns_is_queued(client, home, elsewhere, namespace):
    """Its controller, who is named on it, and who waits for what stands in its place."""
    memories = Memories(Children(Site, (child(ConfigMap, across_namespaces=True),), where="generates(Site)"))
    blocking = await client.create(ConfigMap(metadata=ObjectMeta(name="blocked", namespace=namespace)))
    results, again = [], asyncio.Event()

    async def reconcile(ctx, request):
        if request.key != home.key:
            return Done()
        memory = memories.of(ctx)
        out = Outputs(await ctx.client.get(Site, request.key), memory.children, ctx=ctx)
        for name, where in (("far", elsewhere), ("near", namespace), ("blocked", namespace)):
            out.apply(ConfigMap(metadata=ObjectMeta(name=name, namespace=where), data={"a": "b"}))
        result = await apply_outputs(ctx, out.owner, out, memory, labels=False)
        await prune(ctx, out.owner, memory, [each.identity for each in out.declared], states=None)
        results.append([each.problem.reason if each.problem else each.change for each in result.children])
        again.set()
        return Done()

    async def passed(count):
        async with asyncio.timeout(60):
            while len(results) < count:
                again.clear()
                await again.wait()

    manager = Manager(client.with_transport(lambda inner: inner, field_manager="waking"))
    builder = manager.controller(Site)
    memories.watch(builder)
    builder.run_with(reconcile)
    async with Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await passed(1)
        assert results == [["created", "created", "NotOurs"]]
        await client.delete(ConfigMap, (elsewhere, "far"))
        await passed(2)
        await client.delete(ConfigMap, (namespace, "near"))
        await passed(3)
        await client.delete(blocking)
        await passed(4)
        manager.stop()
    assert results[1:] == [["created", "", "NotOurs"], ["", "created", "NotOurs"], ["", "", "created"]]


async def test_an_owner_of_another_managers_namespace_is_left_alone(client, home, elsewhere, namespace, caplog):
    """A cluster-scoped object may name any owner: this manager neither fails on it again and again, nor touches it."""
    named = {"steersman.dev/owner": f"Site.web.test.steersman.dev/{elsewhere}/theirs"}
    role = await client.create(ClusterRole(metadata=ObjectMeta(generate_name="theirs-", annotations=named)))

    @reconciles(Site, children=(ClusterRole,))
    async def roles(site: Site, out: Outputs) -> Done:
        return Done()

    woken = asyncio.Event()
    manager = Manager(
        client.with_transport(lambda inner: inner, field_manager="roles"), name="roles", namespaces=[namespace]
    )
    manager.add(roles)
    manager.on_reconcile(lambda _, record: woken.set() if record.request.key == Key(elsewhere, "theirs") else None)
    async with Supervisor() as tasks, asyncio.timeout(30):
        tasks.start(manager.run(signals=False), name="manager")
        await woken.wait()
        manager.stop()
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []
    await client.delete(role)
