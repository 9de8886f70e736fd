"""Children become what was declared: with the fewest requests, and never by taking what belongs to another."""

import pytest
from patterns.declaring import behind, own, reconciling

from samples.site import GROUP
from steersman import Kind, MergePatch, ObjectMeta, Unstructured
from steersman.errors import Conflict, Invalid
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import (
    ConfigMap,
    Container,
    PodSpec,
    PodTemplateSpec,
)
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import replace, set_owner

pytestmark = pytest.mark.both_servers("the server merges and detects conflicts")


@pytest.fixture
async def home(client, sites, namespace):
    return await own(client, "home", namespace)


@pytest.fixture
async def other(client, sites, namespace):
    return await own(client, "other", namespace)


def page(name="page", **data):
    return ConfigMap(metadata=ObjectMeta(name=name), data=data or {"text": "hello"})


def web(*, app="web", image="nginx", **spec):
    labels = {"app": app}
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="web", image=image)])
    )
    spec = DeploymentSpec(selector=LabelSelector(match_labels=labels), template=template, **spec)
    return Deployment(metadata=ObjectMeta(name="web"), spec=spec)


def declare(*children, **options):
    def build(site, out):
        for child in children:
            out.apply(child, **options)

    return build


async def test_children_are_made_by_one_request_each_and_then_by_none(client, home, namespace):
    async with reconciling(client, home, (ConfigMap, Deployment)) as stage:
        build = declare(page(), web())
        made = await stage.run(build)
        assert (made.writes, made.reads) == (["PATCH page", "PATCH web"], [])
        assert made.result.changes == (f"created ConfigMap {namespace}/page", f"created Deployment {namespace}/web")
        reference = made[0].object.metadata.owner_references[0]
        assert (reference.uid, reference.controller, reference.kind) == (home.metadata.uid, True, "Site")
        assert made[0].object.metadata.labels is None

        again = await stage.run(build)
        assert (again.writes, again.reads, again.result.changes) == ([], [], ())
        assert again[0].object.data == {"text": "hello"}
        await stage.seen(Deployment, "web")
        assert (await stage.run(build)).writes == []
    async with reconciling(client, home, (ConfigMap, Deployment)) as stage:  # as after a restart
        restarted = await stage.run(build)
        assert (restarted.writes, restarted.reads) == ([], [])


async def test_drift_is_corrected_and_what_is_declared_no_longer_is_removed(client, home, namespace):
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.run(declare(page(text="hello", more="words")))
        drifted = await client.patch(
            ConfigMap, (namespace, "page"), MergePatch({"data": {"text": "bye", "theirs": "1"}})
        )
        await stage.seen(ConfigMap, "page", lambda view: view.resource_version == drifted.metadata.resource_version)
        corrected = await stage.run(declare(page(text="hello")))
        assert corrected.writes == ["PATCH page"]
        assert corrected[0].object.data == {"text": "hello", "theirs": "1"}


async def test_the_object_that_is_declared_stays_as_it_was(client, home):
    shared = page()
    tree = Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tree"}, "data": {"a": "b"}})
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.run(declare(shared, tree), phase="start", labels=True)
    assert shared == page()
    assert tree.tree == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tree"}, "data": {"a": "b"}}


async def test_a_tree_is_a_child_like_any_other(client, home, namespace):
    """Also of a kind without a class."""
    spec = {"image": "a", "routes": [{"path": "/"}], "settings": {"deep": {"er": [1]}}}
    tree = Unstructured({"spec": spec, "apiVersion": f"{GROUP}/v1", "kind": "Site", "metadata": {"name": "inner"}})
    async with reconciling(client, home, (Kind(f"{GROUP}/v1", "Site"),)) as stage:
        made = await stage.run(declare(tree))
        assert made.writes == ["PATCH inner"]
        assert made[0].object.get("metadata", "ownerReferences")[0]["uid"] == home.metadata.uid
        assert made[0].object.key == (namespace, "inner")
        assert (await stage.run(declare(tree))).writes == []
        tree["spec"] = spec | {"routes": []}
        assert (await stage.run(declare(tree))).writes == ["PATCH inner"]


async def test_an_object_without_an_owner_is_refused_unless_adopted(client, home, namespace):
    await client.create(replace(page(text="theirs"), metadata=ObjectMeta(name="page", namespace=namespace)))
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.seen(ConfigMap, "page")
        refused = await stage.run(declare(page()))
        assert refused.writes == []
        assert refused[0].object is None
        assert refused.first_unready == (
            "NotOurs",
            (
                f"ConfigMap {namespace}/page exists and has no owner; delete it, give the child another name, or take it over "
                "with out.apply(..., adopt=True)"
            ),
        )
        adopted = await stage.run(declare(page(), adopt=True))
        assert adopted.result.changes == (f"adopted ConfigMap {namespace}/page",)
        assert adopted[0].object.data == {"text": "hello"}
        assert (await stage.run(declare(page(), adopt=True))).writes == []


async def test_what_another_controls_is_never_taken(client, home, other, namespace):
    theirs = replace(page(text="theirs"), metadata=ObjectMeta(name="page", namespace=namespace))
    set_owner(theirs, other)
    await client.create(theirs)
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.seen(ConfigMap, "page")
        for options in ({}, {"adopt": True}):
            refused = await stage.run(declare(page(), **options))
            assert refused.writes == []
            assert refused.first_unready == (
                "NotOurs",
                (
                    f"ConfigMap {namespace}/page exists and is controlled by Site other; delete it or give the child another name; "
                    "adopt=True takes over only objects without a controller"
                ),
            )
    assert (await client.get(ConfigMap, (namespace, "page"))).data == {"text": "theirs"}


async def test_what_the_cache_does_not_show_yet_is_not_overwritten(client, home, namespace):
    async with reconciling(client, home, (ConfigMap,)) as stage:
        # created between the look at the cache and the request: the request itself refuses
        made = []

        async def view(kind, key):
            if not made:
                late = replace(page(text="late"), metadata=ObjectMeta(name="page", namespace=namespace))
                made.append(await client.create(late))

        late = behind(stage.ctx, look=lambda kind, key: ..., view=view)
        ctx, stage.ctx = stage.ctx, late
        refused = await stage.run(declare(page()), pruning=False)
        assert refused.first_unready[0] == "NotOurs"
        assert (refused.writes, refused.reads) == (["PATCH page"], ["page"])
        adopted = await stage.run(declare(page(), adopt=True), pruning=False)
        assert adopted.result.changes == (f"adopted ConfigMap {namespace}/page",)
        ours = await stage.run(declare(page(text="ours")), pruning=False)
        assert (ours[0].object.data, ours.result.changes) == ({"text": "ours"}, ())
        stage.ctx = ctx


async def test_a_namesake_that_came_since_is_not_overwritten(client, home, namespace):
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.run(declare(page()))
        key = home.key._replace(name="page")
        seen = await stage.client.view(ConfigMap, key)
        await client.delete(ConfigMap, key)
        await client.create(replace(page(text="theirs"), metadata=ObjectMeta(name="page", namespace=namespace)))
        # The cache has not seen yet that another program deleted the child and made another object of its name.
        ctx, stage.ctx = stage.ctx, behind(stage.ctx, look=lambda kind, key: seen)
        with pytest.raises(Conflict):
            await stage.run(declare(page(text="new")), pruning=False)
        assert (await client.get(ConfigMap, key)).data == {"text": "theirs"}
        stage.ctx = ctx
        await stage.seen(ConfigMap, "page", lambda view: view is not None and view.uid != seen.uid)
        assert (await stage.run(declare(page(text="new")))).first_unready[0] == "NotOurs"


async def test_a_child_of_an_earlier_owner_of_the_same_name_is_waited_for(client, home, namespace):
    theirs = replace(page(), metadata=ObjectMeta(name="page", namespace=namespace))
    set_owner(theirs, home)
    await client.create(theirs)
    await client.delete(home)
    again = await own(client, "home", namespace)
    async with reconciling(client, again, (ConfigMap,)) as stage:
        await stage.seen(ConfigMap, "page")
        waiting = await stage.run(declare(page()))
        assert waiting.first_unready == (
            "NotOurs",
            (
                f"ConfigMap {namespace}/page exists and is controlled by an earlier Site home (uid {home.metadata.uid}); "
                "Steersman waits until the garbage collector has deleted it"
            ),
        )


async def test_a_child_that_is_being_deleted_is_waited_for(client, home, namespace):
    held = replace(page(), metadata=ObjectMeta(name="page", namespace=namespace, finalizers=["test.dev/held"]))
    set_owner(held, home)
    held = await client.create(held)
    await client.delete(held)
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.seen(ConfigMap, "page", lambda view: view.deleting)
        waiting = await stage.run(declare(page(text="new")))
        assert (waiting.writes, waiting[0].object) == ([], None)
        assert waiting.first_unready == (
            "Deleting",
            "ConfigMap page: is being deleted, held by test.dev/held; Steersman recreates it when it is gone",
        )
        await client.patch(ConfigMap, (namespace, "page"), MergePatch({"metadata": {"finalizers": None}}))
        await stage.seen(ConfigMap, "page", lambda view: view is None)
        assert (await stage.run(declare(page(text="new"))))[0].object.data == {"text": "new"}


async def test_those_after_others_wait_until_they_are_ready(client, home, namespace):
    def build(site, out):
        first = out.apply(web())
        second = out.apply(page(), after=first)
        out.apply(page("last"), after=(first, second))
        out.apply(page("apart"))

    async with reconciling(client, home, (ConfigMap, Deployment)) as stage:
        held = await stage.run(build)
        assert held.writes == ["PATCH apart", "PATCH web"]
        assert [each.object is None for each in held.result.children] == [False, True, True, False]
        assert held[1].readiness.message == f"waits for Deployment {namespace}/web"
        assert held.first_unready[1].startswith("Deployment web: ")
        await make_ready(client, namespace)
        await stage.seen(Deployment, "web", lambda view: view.object.status.available_replicas == 1)
        done = await stage.run(build)
        assert done.writes == ["PATCH last", "PATCH page"]
        assert done.result.ready
        assert done[1].object.metadata.labels == {"steersman.dev/state": "2"}
        assert done[2].object.metadata.labels == {"steersman.dev/state": "3"}
        assert (await stage.run(build)).writes == []


async def make_ready(client, namespace):
    live = await client.get(Deployment, (namespace, "web"))
    counts = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    status = {"observedGeneration": live.metadata.generation, **counts}
    await client.patch(Deployment, live.key, MergePatch({"status": status}), subresource="status")


async def test_states_of_several_label_their_children(client, home):
    def build(site, out):
        first = out.apply(page("first"))
        out.apply(page("second"), after=first)

    async with reconciling(client, home, (ConfigMap,)) as stage:
        made = await stage.run(build, phase="storage", labels=True)
        phases = [each.object.metadata.labels["steersman.dev/state"] for each in made.result.children]
        assert phases == ["storage", "storage.2"]


async def test_a_child_that_does_not_count_is_not_waited_for_but_its_problem_is_reported(client, home, namespace):
    await client.create(replace(page(), metadata=ObjectMeta(name="page", namespace=namespace)))
    async with reconciling(client, home, (ConfigMap, Deployment)) as stage:
        await stage.seen(ConfigMap, "page")
        assert (await stage.run(declare(web(), wait=False))).result.ready
        assert (await stage.run(declare(page(), web(), wait=False))).first_unready[0] == "NotOurs"


async def test_one_refusal_does_not_keep_the_others_from_being_made(client, home, namespace):
    wrong = ConfigMap(metadata=ObjectMeta(name="wrong", labels={"no label": "x"}))
    async with reconciling(client, home, (ConfigMap,)) as stage:
        with pytest.raises(Invalid, match="wrong"):
            await stage.run(declare(page("a"), wrong, page("b")))
    assert {each.key.name for each in await client.list(ConfigMap, namespace=namespace)} >= {"a", "b"}
