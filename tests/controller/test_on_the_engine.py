"""Controllers on an API server, with the real cache."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial

import pytest

from samples.site import Site, site
from steersman import MergePatch, ObjectMeta
from steersman.aio import Supervisor, name_suffix
from steersman.controller import Done, Reconciler, Stores, View, controller_for, owners_through, when
from steersman.errors import NotFound
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec
from steersman.kinds.core_v1 import ConfigMap, Container, Pod, PodSpec, PodTemplateSpec, Secret
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import Key, set_owner

pytestmark = pytest.mark.both_servers("watch frames decide what is queued")


@asynccontextmanager
async def running(plan, cache):
    made = plan.assemble(cache)
    async with Supervisor() as tasks:
        tasks.start(made.run(), name=plan.name)
        yield made
        made.stop()


async def until(condition, *, seconds=60.0):
    """Wait until a condition holds; reconciles do not announce their end, so it polls."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def settled(made, *, seconds=0.5):
    """Wait until a controller made no run for a while; its results."""
    count = None
    while count != (count := sum(made.statistics().results.values())):  # noqa: ASYNC110
        await asyncio.sleep(seconds)
    return made.statistics()


def child_of(owner, **data):
    metadata = ObjectMeta(name=owner.metadata.name, namespace=owner.metadata.namespace)
    return ConfigMap(metadata=metadata, data={"image": owner.spec.image} | data)


class Publisher(Reconciler[Site]):
    """A ConfigMap for each Site, and a status."""

    def __init__(self):
        self.causes = []

    async def reconcile(self, ctx, request):
        self.causes.append((request, ctx.causes))
        try:
            found = await ctx.client.get(Site, request.key)
        except NotFound:
            return Done()
        await ctx.client.apply(child_of(found), owner=found)
        if found.status is None or found.status.replicas != found.spec.replicas:
            patch = MergePatch({"status": {"replicas": found.spec.replicas, "readyReplicas": 0}})
            await ctx.client.patch(Site, request.key, patch, subresource="status")
        return Done()


def in_namespace(namespace):
    return when(lambda event: event.key.namespace == namespace)


def publishing(namespace, reconciler):
    here = in_namespace(namespace)
    return controller_for(Site).when(here).owns(ConfigMap, when=here).run_with(reconciler)


async def test_one_reconcile_and_two_writes_an_object(client, cache, namespace):
    """The echoes of the child and of the status make no further run."""
    reconciler = Publisher()
    async with running(publishing(namespace, reconciler), cache) as made:
        await until(lambda: made.working)
        for number in range(20):
            await client.create(site(f"site-{number}", namespace))
        await until(lambda: len(reconciler.causes) >= 20)
        statistics = await settled(made)
        assert statistics.results == {"success": 20}
        assert {record.writes for record in statistics.keys} == {2}
        assert statistics.echoes == 40
    children = await client.list(ConfigMap, namespace=namespace, labels=None)
    assert {f"site-{number}" for number in range(20)} <= {child.metadata.name for child in children}


async def test_news_of_others_are_reconciled_with_their_causes(client, cache, namespace):
    reconciler = Publisher()
    async with running(publishing(namespace, reconciler), cache) as made:
        await until(lambda: made.working)
        await client.create(site("web", namespace))
        await until(lambda: len(reconciler.causes) == 1)
        await settled(made)
        assert len(reconciler.causes) == 1
        await client.patch(Site, f"{namespace}/web", MergePatch({"spec": {"replicas": 3}}))
        await until(lambda: len(reconciler.causes) == 2)
        assert [str(cause) for cause in reconciler.causes[1][1]] == [f"Site {namespace}/web changed (generation 2)"]
        await settled(made)
        await client.delete(ConfigMap, f"{namespace}/web")
        await until(lambda: len(reconciler.causes) >= 3)
        assert [str(cause) for cause in reconciler.causes[2][1]] == [f"ConfigMap {namespace}/web vanished"]
        await settled(made)
        assert (await client.get(ConfigMap, f"{namespace}/web")).data == {"image": "nginx:1.27"}


async def test_a_reconcile_reads_what_it_wrote(client, cache, namespace):
    """Get and list, right after create, patch and delete, without waiting for the watch."""
    seen = []

    async def reconcile(ctx, request):
        if seen:
            return Done()
        found = await ctx.client.get(Site, request.key)
        await ctx.client.apply(child_of(found, step="one"), owner=found)
        seen.append((await ctx.client.get(ConfigMap, request.key)).data["step"])
        await ctx.client.patch(ConfigMap, request.key, MergePatch({"data": {"step": "two"}}))
        listed = await ctx.client.list(ConfigMap, namespace=namespace)
        seen.extend(each.data["step"] for each in listed if each.key == request.key)
        await ctx.client.delete(ConfigMap, request.key)
        try:
            await ctx.client.get(ConfigMap, request.key)
        except NotFound:
            seen.append("gone")
        return Done()

    async with running(publishing(namespace, type("R", (), {"reconcile": staticmethod(reconcile)})()), cache) as made:
        await until(lambda: made.working)
        await client.create(site("web", namespace))
        await until(lambda: len(seen) == 3)
    assert seen == ["one", "two", "gone"]


async def test_a_write_that_changes_nothing_does_not_hide_the_news_of_another(api_server, client, cache, namespace):
    """The answer to an apply without effect has the version of another client's write; that write is news."""
    runs = []

    async def reconcile(ctx, request):
        found = await ctx.client.get(Site, request.key)
        seen = (await ctx.client.get(ConfigMap, request.key)).data if runs else {}
        runs.append(seen.get("theirs"))
        if len(runs) == 2:
            # before the watch can tell of it
            async with api_server.client(field_manager="another") as another:
                await another.patch(ConfigMap, request.key, MergePatch({"data": {"theirs": "1"}}))
        await ctx.client.apply(child_of(found), owner=found)
        return Done()

    async with running(publishing(namespace, type("R", (), {"reconcile": staticmethod(reconcile)})()), cache) as made:
        await until(lambda: made.working)
        await client.create(site("web", namespace))
        await settled(made)
        assert runs == [None]
        await client.patch(Site, f"{namespace}/web", MergePatch({"spec": {"replicas": 3}}))
        await until(lambda: len(runs) == 3)
        await settled(made)
    assert runs == [None, None, "1"]


async def test_marking_a_child_for_deletion_is_an_echo_and_its_end_is_news(client, cache, namespace):
    """The answer to a deletion shows the marked object, so that its event is known to be ours."""
    runs = []

    def emitted():
        return sum(source.emitted for source in made.statistics().sources)

    async def reconcile(ctx, request):
        found = await ctx.client.get(Site, request.key)
        if not runs:
            held = child_of(found)
            held.metadata.finalizers = ["test.dev/hold"]
            told = emitted()
            await ctx.client.apply(held, owner=found)
            # two events that are delivered as one are no echo: each is to come by itself
            await until(lambda: emitted() > told)
            marked = await ctx.client.delete(ConfigMap, request.key)
            seen = await ctx.client.get(ConfigMap, request.key)
            assert seen.metadata.deletion_timestamp == marked.metadata.deletion_timestamp
        runs.append([str(cause) for cause in ctx.causes])
        return Done()

    async with running(publishing(namespace, type("R", (), {"reconcile": staticmethod(reconcile)})()), cache) as made:
        await until(lambda: made.working)
        await client.create(site("web", namespace))
        await until(lambda: runs and made.statistics().echoes == 2)
        await settled(made)
        assert len(runs) == 1
        await client.patch(ConfigMap, f"{namespace}/web", MergePatch({"metadata": {"finalizers": None}}))
        await until(lambda: any(f"ConfigMap {namespace}/web vanished" in causes for causes in runs))


async def test_adding_a_finalizer_calls_again(client, cache, namespace):
    """A write to the reconciled object's own metadata is not suppressed: people return after it."""
    runs = []

    async def reconcile(ctx, request):
        found = await ctx.client.get(Site, request.key)
        runs.append(list(found.metadata.finalizers or ()))
        if found.metadata.deletion_timestamp:
            await ctx.client.patch(Site, request.key, MergePatch({"metadata": {"finalizers": None}}))
        elif not found.metadata.finalizers:
            await ctx.client.patch(Site, request.key, MergePatch({"metadata": {"finalizers": ["test.dev/clean"]}}))
        return Done()

    plan = controller_for(Site).when(in_namespace(namespace)).run_with(reconcile)
    async with running(plan, cache) as made:
        await until(lambda: made.working)
        await client.create(site("web", namespace))
        await until(lambda: len(runs) == 2)
        assert runs == [[], ["test.dev/clean"]]
        await client.delete(Site, f"{namespace}/web")
        await until(lambda: len(runs) >= 3)


async def test_a_mapper_looks_objects_up_by_label(client, cache, namespace):
    """A Secret names a label; the Sites with it are queued, in its own namespace."""
    runs = []

    def users(secret: View[Secret], stores: Stores):
        app = secret.labels.get("app")
        return [each.key for each in stores.list(Site, namespace=namespace, labels={"app": app})] if app else []

    async def reconcile(ctx, request):
        runs.append((request.key.name, str(ctx.causes)))
        return Done()

    plan = controller_for(Site).when(in_namespace(namespace)).watches(Secret, map=users).run_with(reconcile)
    async with running(plan, cache) as made:
        await until(lambda: made.working)
        for name, app in (("one", "web"), ("two", "mail"), ("three", "web")):
            each = site(name, namespace)
            each.metadata.labels = {"app": app}
            await client.create(each)
        await until(lambda: len(runs) == 3)
        await client.create(Secret(metadata=ObjectMeta(name="password", namespace=namespace, labels={"app": "web"})))
        await until(lambda: len(runs) == 5)
    why = f"Secret {namespace}/password appeared"
    assert sorted(runs[3:]) == [("one", why), ("three", why)]


async def test_a_mapper_crosses_namespaces_through_an_index(client, cache, namespace):
    """A Secret somewhere else names no Site; an index over Sites does."""
    runs, name = [], f"password-{name_suffix()}"
    cache.add_index(Site, "secret", lambda each: [(each.metadata.annotations or {}).get("secret")])

    def users(secret, stores):
        return [each.key for each in stores.by_index(Site, "secret", str(secret.key))]

    async def reconcile(ctx, request):
        runs.append([str(cause) for cause in ctx.causes])
        return Done()

    wanted = site("web", namespace)
    wanted.metadata.annotations = {"secret": f"default/{name}"}
    plan = controller_for(Site).when(in_namespace(namespace)).watches(Secret, map=users).run_with(reconcile)
    async with running(plan, cache) as made:
        await until(lambda: made.working)
        await client.create(wanted)
        await until(lambda: len(runs) == 1)
        secret = Secret(metadata=ObjectMeta(name=name, namespace="default"))
        await client.create(secret)
        await until(lambda: len(runs) == 2)
        await client.delete(Secret, f"default/{name}")
        await until(lambda: len(runs) == 3)
    assert runs[1:] == [[f"Secret default/{name} appeared"], [f"Secret default/{name} vanished"]]


def pod_template():
    containers = [Container(name="web", image="nginx:1.27")]
    return PodTemplateSpec(metadata=ObjectMeta(labels={"app": "web"}), spec=PodSpec(containers=containers))


async def test_owners_are_found_through_a_chain(client, cache, namespace):
    """A Pod concerns the Site above its ReplicaSet and Deployment, whatever appears first and whatever goes first."""
    runs = []

    async def reconcile(ctx, request):
        runs.append([str(cause) for cause in ctx.causes])
        return Done()

    here = in_namespace(namespace)
    plan = (
        controller_for(Site)
        .when(here)
        .watches(Pod, map=owners_through(ReplicaSet, Deployment), when=here)
        .run_with(reconcile)
    )
    selector, meta = LabelSelector(match_labels={"app": "web"}), partial(ObjectMeta, namespace=namespace)
    async with running(plan, cache) as made:
        await until(lambda: made.working)
        top = await client.create(site("web", namespace))
        deployment = Deployment(
            metadata=meta(name="dep"), spec=DeploymentSpec(selector=selector, template=pod_template())
        )
        set_owner(deployment, top)
        deployment = await client.create(deployment)
        await settled(made)
        replicas = ReplicaSet(metadata=meta(name="rs"), spec=ReplicaSetSpec(selector=selector, template=pod_template()))
        set_owner(replicas, deployment)
        replicas = await client.create(replicas)
        await until(lambda: runs[-1] == [f"ReplicaSet {namespace}/rs appeared (generation 1)"])
        pod = Pod(metadata=meta(name="pod"), spec=pod_template().spec)
        set_owner(pod, replicas)
        await client.create(pod)
        await until(lambda: any(f"Pod {namespace}/pod appeared" in cause for causes in runs for cause in causes))
        await client.delete(Deployment, deployment.key, propagation="Orphan")
        await client.delete(ReplicaSet, replicas.key, propagation="Background")
        await until(lambda: made.statistics().sources[2].events >= 2)
        await client.delete(Pod, f"{namespace}/pod", grace_period_seconds=0)
        await until(lambda: f"Pod {namespace}/pod vanished" in str(runs[-1]))


async def test_what_was_there_is_reconciled_and_a_converged_world_is_quiet(client, cache, namespace):
    """A restart looks at every object once, sends no write, and then nothing happens."""
    for number in range(5):
        await client.create(site(f"site-{number}", namespace))
    async with running(publishing(namespace, Publisher()), cache) as made:
        first = await settled(made)
    again = Publisher()
    async with running(publishing(namespace, again), cache) as made:
        await until(lambda: len(again.causes) >= 5)
        second = await settled(made)
    assert first.results == second.results == {"success": 5}
    assert {cause.what for _, causes in again.causes for cause in causes} == {"initial"}
    assert {record.writes for record in first.keys} == {2}
    assert {record.writes for record in second.keys} == {0}
    assert {request.key for request, _ in again.causes} == {Key(namespace, f"site-{number}") for number in range(5)}
