"""The options of a child, each as it says: on both servers."""

import pytest
from patterns.declaring import behind, own, reconciling

from samples.site import Site, SiteStatus, site
from steersman import JsonPatch, MergePatch, ObjectMeta, Unstructured
from steersman.cache import KindOptions
from steersman.errors import Conflict, PartialObject
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import (
    ConfigMap,
    Container,
    PodSpec,
    PodTemplateSpec,
    Service,
    ServicePort,
    ServiceSpec,
)
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import decode, encode, owner_reference, replace, to_json
from steersman.patches import json_patch

pytestmark = pytest.mark.both_servers("the server merges and detects conflicts")


@pytest.fixture
async def home(client, sites, namespace):
    return await own(client, "home", namespace)


def page(name="page", **data):
    return ConfigMap(metadata=ObjectMeta(name=name), data=data or {"text": "hello"})


def web(*, app="web", **spec):
    labels = {"app": app}
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="web", image="nginx")])
    )
    spec = DeploymentSpec(selector=LabelSelector(match_labels=labels), template=template, **spec)
    return Deployment(metadata=ObjectMeta(name="web"), spec=spec)


def declare(*children, **options):
    def build(site, out):
        for child in children:
            out.apply(child, **options)

    return build


async def changed(stage, client, kind, name, patch, **options):
    """Change an object as another manager, and wait until the cache shows it."""
    key = stage.site.key._replace(name=name)
    live = await client.patch(kind, key, MergePatch(patch), **options)
    await stage.seen(kind, name, lambda view: view.resource_version == live.metadata.resource_version)


@pytest.mark.parametrize("how", ["merge", "update"])
async def test_patches_and_puts_write_what_differs_and_leave_the_rest(client, home, how):
    service = Service(
        metadata=ObjectMeta(name="web"),
        spec=ServiceSpec(selector={"app": "web"}, ports=[ServicePort(port=80, target_port=8080)]),
    )
    build = declare(page(), service, how=how)
    async with reconciling(client, home, (ConfigMap, Service)) as stage:
        made = await stage.run(build)
        assert made.writes == ["POST configmaps", "POST services"]
        assert made[0].object.metadata.owner_references[0].uid == home.metadata.uid
        assert (await stage.run(build)).writes == []
        await stage.seen(Service, "web")
        await changed(stage, client, ConfigMap, "page", {"data": {"text": "bye", "theirs": "1"}})
        corrected = await stage.run(build)
        assert corrected.writes == [f"{'PATCH' if how == 'merge' else 'PUT'} page"]
        assert corrected[0].object.data == {"text": "hello", "theirs": "1"}
        assert (await stage.run(build)).writes == []
    async with reconciling(client, home, (ConfigMap, Service)) as stage:  # as after a restart
        assert (await stage.run(build)).writes == []


#: What each way leaves of labels, ports and an undeclared field: after a change elsewhere, then after a change of a port.
LEFT = {
    "apply": ("now theirs", "80 99", "ClientIP", "80 99"),
    "merge": ("now old theirs", "80 81 99", "ClientIP", "80"),
    "update": ("now old theirs", "80 81 99", "ClientIP", "80"),
    "replace": ("now", "80", "None", "80"),
    "create": ("now old theirs", "80 81 99", "ClientIP", "80 81 99"),
}


@pytest.mark.parametrize("how", LEFT)
async def test_what_each_way_does_with_what_is_not_declared(client, home, namespace, how):
    """The table in docs/patterns/outputs.md."""

    def service(labels, ports, target):
        ports = [ServicePort(name=f"p{each}", port=each, target_port=target) for each in ports]
        metadata = ObjectMeta(name="web", labels=dict.fromkeys(labels, "1"))
        return Service(metadata=metadata, spec=ServiceSpec(selector={"app": "web"}, ports=ports))

    async with reconciling(client, home, (Service,)) as stage:
        await stage.run(declare(service(["now", "old"], [80, 81], 8080), how=how))
        drift = [json_patch.add("/spec/ports/-", {"name": "theirs", "port": 99, "targetPort": 8080})]
        drift += [json_patch.add("/metadata/labels/theirs", "1"), json_patch.add("/spec/sessionAffinity", "ClientIP")]
        live = await client.patch(Service, (namespace, "web"), JsonPatch.of(*drift))
        await stage.seen(Service, "web", lambda view: view.resource_version == live.metadata.resource_version)
        seen = []
        for target in (8080, 9090):
            left = (await stage.run(declare(service(["now"], [80], target), how=how)))[0].object
            ports = " ".join(str(each.port) for each in left.spec.ports)
            seen.append((" ".join(sorted(left.metadata.labels)), ports, left.spec.session_affinity))
        labels, ports, affinity, ports_then = LEFT[how]
        assert seen == [(" ".join(sorted(labels.split())), ports, affinity), (*seen[0][:1], ports_then, affinity)]


async def test_an_overwrite_leaves_nothing_that_is_not_declared(client, home, namespace):
    """Keys, list items and labels of another writer go; its owner reference, its finalizer and the status stay."""
    ports = [ServicePort(name="web", port=80, target_port=8080)]
    service = Service(metadata=ObjectMeta(name="web"), spec=ServiceSpec(selector={"app": "web"}, ports=ports))
    build = declare(page(), service, how="replace")
    other = await own(client, "other", namespace)
    async with reconciling(client, home, (ConfigMap, Service)) as stage:
        made = await stage.run(build)
        assert made.writes == ["POST configmaps", "POST services"]
        assert (await stage.run(build)).writes == []
        await stage.seen(Service, "web")
        theirs = to_json(owner_reference(other, controller=False))
        references = [*(to_json(each) for each in made[0].object.metadata.owner_references), theirs]
        finalizer = "test.steersman.dev/theirs"
        metadata = {"labels": {"theirs": "1"}, "ownerReferences": references, "finalizers": [finalizer]}
        await changed(stage, client, ConfigMap, "page", {"data": {"theirs": "1"}, "metadata": metadata})
        drift = [{"name": "web", "port": 80, "targetPort": 8080}, {"name": "theirs", "port": 81}]
        await changed(stage, client, Service, "web", {"spec": {"ports": drift, "sessionAffinity": "ClientIP"}})
        corrected = await stage.run(build)
        assert corrected.writes == ["PUT page", "PUT web"]
        config, web_now = corrected[0].object, corrected[1].object
        assert (config.data, config.metadata.labels, config.metadata.finalizers) == (
            {"text": "hello"},
            None,
            [finalizer],
        )
        assert {each.uid for each in config.metadata.owner_references} == {home.metadata.uid, other.metadata.uid}
        assert [each.name for each in web_now.spec.ports] == ["web"]
        assert web_now.spec.session_affinity == "None"
        assert web_now.spec.cluster_ip == made[1].object.spec.cluster_ip
        assert (await stage.run(build)).writes == []
    async with reconciling(client, home, (ConfigMap, Service)) as stage:  # as after a restart
        again = await stage.run(build)
        # Only the server knows its defaults: the Service is sent once, and the server changes nothing.
        assert again.writes == ["PUT web"]
        assert again[1].object.metadata.resource_version == web_now.metadata.resource_version
        assert (await stage.run(build)).writes == []
    await client.patch(ConfigMap, config.key, MergePatch({"metadata": {"finalizers": None}}))


@pytest.mark.parametrize("how", ["update", "replace"])
async def test_a_put_of_an_object_that_is_cached_in_part_is_refused(client, home, how):
    """A cache that drops fields does not know what a put would delete."""

    def without_data(tree):
        return {name: value for name, value in tree.items() if name != "data"}

    kinds = {ConfigMap: KindOptions(transform=without_data)}
    async with reconciling(client, home, (ConfigMap,), cached=kinds) as stage:
        await stage.run(declare(page(), how=how))
        await stage.seen(ConfigMap, "page", lambda view: b"hello" not in view.stored.raw)
        with pytest.raises(PartialObject, match="an update would delete the rest"):
            await stage.run(declare(page(text="new"), how=how), pruning=False)


async def test_what_is_only_created_is_never_changed(client, home):
    async with reconciling(client, home, (ConfigMap,)) as stage:
        assert (await stage.run(declare(page(), how="create"))).writes == ["POST configmaps"]
        await changed(stage, client, ConfigMap, "page", {"data": {"text": "drift"}})
        left = await stage.run(declare(page(text="new"), how="create"))
        assert (left.writes, left[0].object.data) == ([], {"text": "drift"})
        gone = await stage.run(lambda site, out: None)
        assert [str(each.identity.key.name) for each in gone.pruned] == ["page"]


async def test_with_a_lock_another_writers_change_is_a_conflict(client, home, namespace):
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.run(declare(page()))
        await stage.seen(ConfigMap, "page")
        seen = await stage.client.view(ConfigMap, home.key._replace(name="page"))

        async def view(kind, key):
            return seen

        await client.patch(ConfigMap, (namespace, "page"), MergePatch({"data": {"theirs": "1"}}))
        # The cache has not seen the change of another yet.
        stage.ctx = behind(stage.ctx, look=lambda kind, key: ..., view=view)
        with pytest.raises(Conflict):
            await stage.run(declare(page(text="new"), lock=True), pruning=False)
        assert (await stage.run(declare(page(text="new")), pruning=False))[0].object.data["text"] == "new"


async def test_what_is_shared_has_no_owner_and_is_never_pruned(client, home, namespace):
    await client.create(replace(page("shared", theirs="1"), metadata=ObjectMeta(name="shared", namespace=namespace)))
    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.seen(ConfigMap, "shared")
        build = declare(page("shared", ours="1"), page("new", ours="1"), owner=False)
        made = await stage.run(build)
        assert [each.object.metadata.owner_references for each in made.result.children] == [None, None]
        assert made[0].object.data == {"theirs": "1", "ours": "1"}
        assert (await stage.run(build)).writes == []
        # a change of it wakes who declared it, although nothing on it names him
        assert [*stage.memory.subscriptions.owners(made[0].output.identity)] == [home.key]
        assert (await stage.run(lambda site, out: None)).pruned == ()


async def test_a_status_is_applied_too(client, home):
    inner = site("inner", home.key.namespace)
    inner.status = SiteStatus(replicas=2)
    async with reconciling(client, home, (Site,)) as stage:
        made = await stage.run(declare(inner, status=True))
        assert made.writes == ["PATCH inner", "PATCH status"]
        assert (made[0].object.status.replicas, made[0].object.spec.image) == (2, "nginx:1.27")
        assert (await stage.run(declare(inner, status=True))).writes == []
        await changed(stage, client, Site, "inner", {"status": {"replicas": 5}}, subresource="status")
        corrected = await stage.run(declare(inner, status=True))
        assert (corrected.writes, corrected[0].object.status.replicas) == (["PATCH status"], 2)


async def test_a_change_that_cannot_be_made_is_reported_with_what_to_do(client, home, namespace):
    async with reconciling(client, home, (Deployment,)) as stage:
        await stage.run(declare(web()))
        refused = await stage.run(declare(web(app="other")))
        assert refused.first_unready == (
            "Immutable",
            (
                f"Deployment {namespace}/web cannot be changed this way: spec.selector: field is immutable. Declare the current"
                " value, give the child another name, or delete and recreate it with out.apply(..., recreate=True)"
            ),
        )
        assert refused[0].problem.terminal
        assert (await client.get(Deployment, (namespace, "web"))).spec.selector.match_labels == {"app": "web"}


async def test_a_change_that_cannot_be_made_is_made_by_another_object_where_allowed(client, home, namespace):
    async with reconciling(client, home, (Deployment,)) as stage:
        first = await stage.run(declare(web()))
        again = await stage.run(declare(web(app="other"), recreate=True))
        assert again.writes == ["DELETE web", "PATCH web", "PATCH web", "POST deployments"]
        assert again.result.changes == (f"recreated Deployment {namespace}/web",)
        assert again[0].object.spec.selector.match_labels == {"app": "other"}
        assert again[0].object.metadata.uid != first[0].object.metadata.uid
        assert (await stage.run(declare(web(app="other"), recreate=True))).writes == []

        await changed(stage, client, Deployment, "web", {"metadata": {"finalizers": ["test.dev/held"]}})
        waits = await stage.run(declare(web(app="third"), recreate=True))
        assert waits.first_unready == (
            "Recreating",
            f"Deployment {namespace}/web was deleted and is recreated when it is gone: spec.selector: field is immutable",
        )
        assert not waits[0].problem.terminal
        assert (await stage.run(declare(web(app="third"), recreate=True))).first_unready[0] == "Deleting"
        await client.patch(Deployment, (namespace, "web"), MergePatch({"metadata": {"finalizers": None}}))
        await stage.seen(Deployment, "web", lambda view: view is None)
        assert (await stage.run(declare(web(app="third"), recreate=True))).writes == ["PATCH web"]


async def test_nothing_is_deleted_for_an_object_that_would_be_refused(client, home, namespace):
    wrong = web(app="other")
    wrong.spec.template.metadata.labels = {"app": "third"}
    async with reconciling(client, home, (Deployment,)) as stage:
        await stage.run(declare(web()))
        refused = await stage.run(declare(wrong, recreate=True))
        assert refused.first_unready == (
            "Immutable",
            (
                f"Deployment {namespace}/web cannot be changed this way, and was not deleted because the server would reject its "
                'replacement: spec.template.metadata.labels: Invalid value: {"app":"third"}: `selector` does not match template `labels`'
            ),
        )
        assert "DELETE web" not in refused.writes


async def test_a_null_removes_a_field_of_any_manager(client, home, namespace):
    def tree(**data):
        return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}, "data": data})

    async with reconciling(client, home, (ConfigMap,)) as stage:
        await stage.run(declare(tree(text="hello")))
        await changed(stage, client, ConfigMap, "page", {"data": {"theirs": "1", "other": "2"}})
        removed = await stage.run(declare(tree(text="hello", theirs=None)))
        assert removed.writes == ["PATCH page"]
        assert data_of(removed[0].object) == {"text": "hello", "other": "2"}
        assert (await stage.run(declare(tree(text="hello", theirs=None)))).writes == []
    async with reconciling(client, home, (ConfigMap,)) as stage:  # as after a restart
        assert (await stage.run(declare(tree(text="hello", theirs=None)))).writes == []


async def test_a_null_inside_of_a_list_item_removes_too_and_the_servers_own_fields_are_left(client, home):
    def tree(**container):
        labels = {"app": "web"}
        pods = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "web", "image": "nginx", **container}]},
        }
        spec = {"selector": {"matchLabels": labels}, "template": pods}
        metadata = {"name": "web", "creationTimestamp": None}
        return Unstructured(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec, "status": None}
        )

    async with reconciling(client, home, (Deployment,)) as stage:
        assert (await stage.run(declare(tree()))).writes == ["PATCH web"]
        assert (await stage.run(declare(tree()))).writes == []
        containers = [{"name": "web", "image": "nginx", "workingDir": "/theirs", "stdin": True}]
        await changed(stage, client, Deployment, "web", {"spec": {"template": {"spec": {"containers": containers}}}})
        await stage.run(declare(tree(workingDir=None)))
        container = (await client.get(Deployment, home.key._replace(name="web"))).spec.template.spec.containers[0]
        assert (container.working_dir, container.stdin) == (None, True)
        assert (await stage.run(declare(tree(workingDir=None)))).writes == []


def data_of(obj):
    return obj["data"] if isinstance(obj, Unstructured) else obj.data


async def test_fields_that_must_not_be_there_can_be_named(client, home):
    remove = ("spec.paused", "/metadata/annotations/test.dev~1note")
    async with reconciling(client, home, (Deployment,)) as stage:
        await stage.run(declare(web()))
        drift = {"spec": {"paused": True}, "metadata": {"annotations": {"test.dev/note": "x", "other": "y"}}}
        await changed(stage, client, Deployment, "web", drift)
        removed = await stage.run(declare(web(), remove=remove))
        assert removed.writes == ["PATCH web"]
        assert removed[0].object.spec.paused is None
        assert removed[0].object.metadata.annotations == {"other": "y"}
        assert (await stage.run(declare(web(), remove=remove))).writes == []
        # what the server puts there by itself is asked for once
        defaulted = ("spec.revisionHistoryLimit",)
        assert (await stage.run(declare(web(), remove=defaulted))).writes == ["PATCH web"]
        assert (await stage.run(declare(web(), remove=defaulted))).writes == []


async def test_a_child_is_looked_up_as_the_cluster_holds_it(client, home):
    found = []
    async with reconciling(client, home, (ConfigMap,)) as stage:
        from steersman.patterns import Outputs

        out = Outputs(home, stage.memory.children, ctx=stage.ctx)
        found.append(await out.current(page()))
        await stage.run(declare(page()))
        found.append(await out.current(page()))
    assert found[0] is None
    assert found[1].data == {"text": "hello"}
    assert decode(ConfigMap, encode(found[1])).metadata.uid
