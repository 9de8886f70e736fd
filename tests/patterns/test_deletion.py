"""Children that are declared no longer go; nothing else does. And all of them in order, when their owner goes."""

import pytest
from patterns.declaring import behind, own, reconciling

from steersman import MergePatch, ObjectMeta
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.objects import replace, set_owner


@pytest.fixture
async def home(client, sites, namespace):
    return await own(client, "home", namespace)


def page(name, **metadata):
    return ConfigMap(metadata=ObjectMeta(name=name, **metadata), data={"text": name})


def nothing(site, out):
    """Declare no child."""


def declare(*names, **options):
    def build(site, out):
        for name in names:
            out.apply(page(name), **options)

    return build


def names(pruned):
    return sorted(each.identity.key.name for each in pruned)


async def standing(client, namespace, kind=ConfigMap):
    listed = await client.list(kind, namespace=namespace)
    return sorted(each.key.name for each in listed if each.key.name != "kube-root-ca.crt")


async def test_what_is_declared_no_longer_is_deleted_once(client, home, namespace):
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.run(declare("a", "b", "kept"))
        pruned = await stage.run(declare("kept"))
        assert (names(pruned.pruned), pruned.writes) == (["a", "b"], ["DELETE a", "DELETE b"])
        assert await standing(client, namespace) == ["kept"]
        # at once, whether the watch has told of it or not
        assert (await stage.run(declare("kept"))).writes == []


async def test_what_is_not_ours_is_left_alone(client, home, namespace):
    other = await own(client, "other", namespace)
    theirs = page("theirs", namespace=namespace)
    set_owner(theirs, other)
    second = page("second", namespace=namespace)
    set_owner(second, home, controller=False)  # named among its owners, but not its controller
    held = page("held", namespace=namespace, finalizers=["test.dev/held"])
    set_owner(held, home)
    for each in (theirs, second, held, page("free", namespace=namespace)):
        await client.create(each)
    await client.delete(ConfigMap, (namespace, "held"))
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.seen(ConfigMap, "held", lambda view: view is not None and view.deleting)
        await stage.run(declare("keep"), pruning=False)
        await stage.run(declare("keep", "stays", prune=False), pruning=False)
        pruned = await stage.run(nothing)
        assert (pruned.pruned, pruned.writes) == ((), [])
        assert await standing(client, namespace) == ["free", "held", "keep", "second", "stays", "theirs"]


async def test_only_states_that_completed_prune(client, home, namespace):
    async with reconciling(client, home, (ConfigMap,)) as stage:
        for phase in ("storage", "primary"):
            await stage.run(declare(phase, f"{phase}-more"), phase=phase, labels=True, pruning=False)
        await stage.run(declare("unlabeled"), pruning=False)
        first = await stage.run(declare("storage"), phase="storage", labels=True, phases={"storage"})
        assert names(first.pruned) == ["storage-more"]
        assert first.pruned[0].state == "storage"
        assert (await stage.run(nothing, phases=set())).pruned == ()
        # the pass reached its end: also what no state of today ever declared
        last = await stage.run(declare("storage"), phase="storage", labels=True, phases=None)
        assert names(last.pruned) == ["primary", "primary-more", "unlabeled"]


async def test_a_retired_kind_is_pruned(client, home, namespace):
    async with reconciling(client, home, (ConfigMap, Secret)) as stage:
        await stage.run(lambda site, out: out.apply(Secret(metadata=ObjectMeta(name="old"))))
    async with reconciling(client, home, (ConfigMap,), retired=(Secret,)) as stage:
        assert names((await stage.run(declare("new"))).pruned) == ["old"]
        assert await standing(client, namespace, Secret) == []


async def test_a_child_that_changed_since_it_was_seen_is_looked_at_again_first(client, home, namespace):
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.run(declare("a"))
        await stage.seen(ConfigMap, "a")
        seen = await stage.client.views_owned_by(ConfigMap, home.metadata.uid)
        taken = await client.patch(ConfigMap, (namespace, "a"), MergePatch({"metadata": {"ownerReferences": None}}))

        async def views_owned_by(kind, uid, *, but=(), namespace=""):
            return seen

        # The cache has not seen yet that the child was given away.
        ctx = stage.ctx
        stage.ctx = behind(ctx, look=ctx.client.pipeline.memory.look, views_owned_by=views_owned_by)
        assert (await stage.run(nothing)).pruned == ()
        stage.ctx = ctx
        await stage.seen(ConfigMap, "a", lambda view: view.resource_version == taken.metadata.resource_version)
        assert (await stage.run(nothing)).writes == []


async def test_phases_are_deleted_in_reverse_order_each_when_the_next_is_gone(client, home, namespace):
    def storage(site, out):
        first = out.apply(page("volume"))
        out.apply(page("mount"), after=first)

    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.run(storage, phase="storage", labels=True, pruning=False)
        await stage.run(declare("primary"), phase="primary", labels=True, pruning=False)
        held = replace(page("replica"), metadata=ObjectMeta(name="replica", finalizers=["test.dev/held"]))
        await stage.run(lambda site, out: out.apply(held), phase="replicas", labels=True, pruning=False)

        order = ("storage", "primary", "replicas")
        # The event of this deletion is our own, so nothing may look again: the words are complete at once.
        words = f"ConfigMap {namespace}/replica is being deleted, held by test.dev/held"
        assert await stage.delete_in_order(*order) == (words,)
        assert await stage.delete_in_order(*order) == (words,)
        assert await standing(client, namespace) == ["mount", "primary", "replica", "volume"]

        await client.patch(ConfigMap, (namespace, "replica"), MergePatch({"metadata": {"finalizers": None}}))
        await stage.seen(ConfigMap, "replica", lambda view: view is None)
        stage.writes.clear()
        assert await stage.delete_in_order(*order) == ()
        assert stage.writes == ["DELETE primary", "DELETE mount", "DELETE volume"]
        assert await stage.delete_in_order(*order) == ()
