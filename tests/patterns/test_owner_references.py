"""Children whose owner references the program declares itself: Steersman writes none, and prunes all the same."""

import pytest
from patterns.declaring import behind, own, reconciling

from samples.postgres import Postgres, managed, postgres
from steersman import Done, MergePatch, ObjectMeta
from steersman.aio import name_suffix
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.kinds.rbac_v1 import ClusterRole
from steersman.objects import owner_reference, set_owner
from steersman.patterns import Children, Outputs, child, reconciles
from steersman.testing import eventually

KINDS = (child(ConfigMap, owner_references=False),)
LABEL = "steersman.dev/owner-uid"


@pytest.fixture
async def home(client, sites, namespace):
    return await own(client, "home", namespace)


@pytest.fixture
async def other(client, home, namespace):
    return await own(client, "other", namespace)


@pytest.fixture
def theirs(client):
    """Another program."""
    return client.with_transport(lambda inner: inner, field_manager="theirs")


def page(name, *references):
    return ConfigMap(metadata=ObjectMeta(name=name, owner_references=list(references) or None), data={"text": name})


def declare(*children, **options):
    def build(site, out):
        for each in children:
            out.apply(each, **options)

    return build


async def references(client, namespace, name):
    found = (await client.get(ConfigMap, (namespace, name))).metadata.owner_references or []
    return [(each.name, bool(each.controller), bool(each.block_owner_deletion)) for each in found]


async def test_children_are_looked_up_in_the_namespace_of_their_owner_alone(client, home):
    """With shards, a lookup in all namespaces is a request: one for each reconcile."""
    async with reconciling(client, home, KINDS) as stage:
        await stage.run(declare(page("a"), page("b")))
        pipeline, asked = stage.ctx.client.pipeline, []

        async def views_labeled(kind, label, value, **options):
            asked.append(options.get("namespace"))
            return await pipeline.cache.views_labeled(kind, label, value, **options)

        stage.ctx = behind(stage.ctx, look=pipeline.memory.look, views_labeled=views_labeled)
        pruned = await stage.run(declare(page("a")))
        assert [each.identity.key.name for each in pruned.pruned] == ["b"]
        assert set(asked) == {home.key.namespace}


@pytest.mark.parametrize("how", ["apply", "create", "merge", "update", "replace"])
async def test_the_references_are_as_declared_and_what_is_no_longer_declared_is_pruned(
    client, home, other, namespace, how
):
    several = [
        owner_reference(home, controller=False, block_owner_deletion=False),
        owner_reference(other, controller=False),
    ]
    wanted = [page("several", *several), page("controlled", owner_reference(other)), page("none")]
    async with reconciling(client, home, KINDS) as stage:
        assert not stage.memory.children.needs_finalizer
        await stage.run(declare(*wanted, how=how))
        assert await references(client, namespace, "several") == [("home", False, False), ("other", False, True)]
        assert await references(client, namespace, "controlled") == [("other", True, True)]
        assert await references(client, namespace, "none") == []
        assert (await stage.run(declare(*wanted, how=how))).writes == []
    async with reconciling(client, home, KINDS) as stage:  # as after a restart
        assert (await stage.run(declare(wanted[0], how=how))).writes == ["DELETE controlled", "DELETE none"]
        # the garbage collector decides about the rest
        assert await stage.delete_in_order() == ()
        assert (await stage.run(declare())).writes == ["DELETE several"]


async def test_references_that_others_add_stay_and_a_controller_of_others_protects(
    client, theirs, home, other, namespace
):
    async with reconciling(client, home, KINDS) as stage:
        wanted = [page("noted", owner_reference(home, controller=False)), page("taken")]
        await stage.run(declare(*wanted))
        reference = {"apiVersion": other.api_version, "kind": other.kind, "name": "other", "uid": other.uid}
        before = [{**reference, "name": "home", "uid": home.uid, "blockOwnerDeletion": True}]
        noted = await theirs.patch(
            ConfigMap, (namespace, "noted"), MergePatch({"metadata": {"ownerReferences": [*before, reference]}})
        )
        taken = await theirs.patch(
            ConfigMap,
            (namespace, "taken"),
            MergePatch({"metadata": {"ownerReferences": [{**reference, "controller": True}]}}),
        )
        for each in (noted, taken):
            version = each.metadata.resource_version
            await stage.seen(ConfigMap, each.key.name, lambda view, at=version: view.resource_version == at)
        done = await stage.run(declare(*wanted))
        assert await references(client, namespace, "noted") == [("home", False, True), ("other", False, False)]
        assert (done[0].problem, done[1].problem.reason) == (None, "NotOurs")
        assert (await stage.run(declare())).writes == ["DELETE noted"]


async def test_a_label_that_another_program_wrote_proves_nothing(client, theirs, home, namespace):
    copied = page("copied")
    copied.metadata.namespace, copied.metadata.labels = namespace, {LABEL: home.uid}
    await theirs.create(copied)
    made = page("theirs")
    made.metadata.namespace = namespace
    set_owner(made, home)
    await theirs.create(made)
    async with reconciling(client, home, KINDS) as stage:
        await stage.seen(ConfigMap, "theirs")
        assert (await stage.run(declare())).writes == []
        refused = await stage.run(declare(page("copied")))
        assert refused[0].problem.reason == "NotOurs"
        # what another program made for the same owner is changed as declared, and stays its
        assert (await stage.run(declare(page("theirs")))).writes == ["PATCH theirs"]
        assert LABEL not in ((await client.get(ConfigMap, (namespace, "theirs"))).metadata.labels or {})


async def test_a_program_may_begin_to_manage_them_and_end_it(client, home, namespace):
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.run(declare(page("page"), page("old")))
    async with reconciling(client, home, KINDS) as stage:
        assert (await stage.run(declare(page("page")))).writes == ["DELETE old", "PATCH page"]
        assert await references(client, namespace, "page") == []
        assert (await stage.run(declare(page("page")))).writes == []
    async with reconciling(client, home, (ConfigMap,)) as stage:
        assert (await stage.run(declare(page("page")))).writes == ["PATCH page"]
        assert await references(client, namespace, "page") == [("home", True, True)]
        assert LABEL not in ((await client.get(ConfigMap, (namespace, "page"))).metadata.labels or {})
        assert (await stage.run(declare())).writes == ["DELETE page"]


async def test_what_outlived_its_owner_can_be_taken_over_by_a_successor_of_the_same_name(
    client, home, other, namespace
):
    async with reconciling(client, home, KINDS) as stage:
        await stage.run(declare(page("page"), page("controlled", owner_reference(other))))
    await client.delete(home)
    again = await own(client, "home", namespace)
    async with reconciling(client, other, KINDS) as stage:
        # neither by its name nor as a controller: the child was made for another one
        assert (await stage.run(declare())).writes == []
        assert [
            each.problem.reason for each in (await stage.run(declare(page("page"), adopt=True))).result.children
        ] == ["NotOurs"]
    async with reconciling(client, again, KINDS) as stage:
        refused = await stage.run(declare(page("page")))
        assert (
            "that is an earlier object of this name; delete the child, or take it over with"
            in refused[0].problem.message
        )
        taken = await stage.run(declare(page("page"), page("controlled", owner_reference(other)), adopt=True))
        assert [each.change for each in taken.result.children] == ["adopted", "adopted"]
        assert (await stage.run(declare())).writes == ["DELETE controlled", "DELETE page"]


async def test_it_can_be_taken_over_too_once_steersman_writes_the_references(client, home, other, namespace):
    """The program dropped ``owner_references=False`` since; it could only delete these children by hand."""
    async with reconciling(client, home, KINDS) as stage:
        await stage.run(declare(page("page"), page("controlled", owner_reference(other))))
    await client.delete(home)
    again = await own(client, "home", namespace)
    async with reconciling(client, again, (ConfigMap,)) as stage:
        refused = await stage.run(declare(page("page")))
        assert "take it over with out.apply(..., adopt=True)" in refused[0].problem.message
        taken = await stage.run(declare(page("page"), page("controlled"), adopt=True))
        assert [each.change for each in taken.result.children] == ["adopted", "adopted"]
        for name in ("page", "controlled"):
            assert await references(client, namespace, name) == [("home", True, True)]
        assert (await stage.run(declare())).writes == ["DELETE controlled", "DELETE page"]


@pytest.mark.parametrize("how", ["apply", "merge", "update", "replace"])
async def test_it_is_taken_over_once_however_it_is_written(client, home, namespace, how):
    """The label of the earlier owner would stay: every reconcile would adopt the child again, and nothing would delete it."""
    async with reconciling(client, home, KINDS) as stage:
        await stage.run(declare(page("page"), how="merge"))
    await client.delete(home)
    again = await own(client, "home", namespace)
    async with reconciling(client, again, (ConfigMap,)) as stage:
        taken = await stage.run(declare(page("page"), adopt=True, how=how))
        assert [child.change for child in taken.result.children] == ["adopted"]
        assert LABEL not in ((await client.get(ConfigMap, (namespace, "page"))).metadata.labels or {})
        assert (await stage.run(declare(page("page"), adopt=True, how=how))).writes == []
        assert (await stage.run(declare())).writes == ["DELETE page"]


@pytest.mark.parametrize("kinds", [(ConfigMap,), KINDS], ids=["references", "labels"])
@pytest.mark.parametrize(("before", "after"), [(False, True), (True, False)])
async def test_what_is_taken_over_is_kept_as_declared_now(client, home, namespace, before, after, kinds):
    """The part of the program that keeps children would go on to hold its label and its annotation, or the program would."""
    async with reconciling(client, home, KINDS) as stage:
        await stage.run(declare(page("page"), prune=before))
    await client.delete(home)
    again = await own(client, "home", namespace)
    async with reconciling(client, again, kinds) as stage:
        await stage.run(declare(page("page"), adopt=True, prune=after))
        assert (await stage.run(declare(page("page"), adopt=True, prune=after))).writes == []
        assert (await stage.run(declare())).writes == (["DELETE page"] if after else [])


async def test_a_retired_kind_and_one_out_of_reach(client, home, namespace):
    role = f"role-{name_suffix()}"
    kinds = (child(ClusterRole, owner_references=False), child(Secret, owner_references=False))
    async with reconciling(client, home, kinds) as stage:
        assert stage.memory.children.needs_finalizer
        secret = Secret(metadata=ObjectMeta(name="old"))
        await stage.run(declare(ClusterRole(metadata=ObjectMeta(name=role)), secret))
    async with reconciling(client, home, kinds[:1], retired=kinds[1:]) as stage:
        assert (await stage.run(declare(ClusterRole(metadata=ObjectMeta(name=role))))).writes == ["DELETE old"]
        # no reference can hold it, so it goes before its owner
        assert await stage.delete_in_order() == ()
    assert await client.find(ClusterRole, role) is None


def test_claims_contradict():
    wrong = child(ConfigMap, claims=lambda owner: {"a": "b"}, owner_references=False)
    with pytest.raises(ValueError, match="cannot be combined, because adopting an object writes an owner reference"):
        Children(Postgres, (wrong,), where="reconciles(Postgres)")


@reconciles(Postgres, children=KINDS)
async def shares(pg: Postgres, out: Outputs) -> Done:
    """Settings that all databases of a version share, and a note that stays."""
    owners = [owner_reference(each, controller=False) for each in await out.ctx.client.list(Postgres)]
    if pg.key.name == "first":
        out.apply(page("shared", *owners))
        out.apply(page("kept"))
    return Done()


def owned_by(*names):
    return lambda found: {each.name for each in found.metadata.owner_references or ()} == set(names)


async def test_drift_is_corrected_and_the_owner_waits_for_nothing(plane):
    client = plane.client
    async with plane.running(managed(shares)) as operator:
        await client.create(postgres("second"))
        await operator.drained()
        first = await client.create(postgres("first"))
        before = await eventually(client, ConfigMap, "shared", owned_by("first", "second"))
        await client.delete(before)
        after = await eventually(client, ConfigMap, "shared", owned_by("first", "second"))
        assert after.uid != before.uid
        await operator.drained()
        assert (await client.get(Postgres, first.key)).metadata.finalizers is None


async def test_the_garbage_collector_decides_by_the_references_alone(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(shares)) as operator:
        await client.create(postgres("second"))
        await operator.drained()
        await client.create(postgres("first"))
        await eventually(client, ConfigMap, "shared", owned_by("first", "second"))
        await client.delete(Postgres, "first")
        await eventually(client, ConfigMap, "shared", owned_by("second"))
        await client.delete(Postgres, "second")
        await eventually(client, ConfigMap, "shared", gone=True)
        await operator.drained()
        assert await client.find(ConfigMap, "kept") is not None
