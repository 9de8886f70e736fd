"""An apply that would change nothing is not sent: the client of a reconcile, on the real API server."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
import pytest
from msgspec.structs import replace

from samples.controllers import NoServer
from samples.informers import commit
from samples.site import Site, SiteStatus, site
from steersman import Client, MergePatch, ObjectMeta
from steersman.cache import Cache, Informer, KindOptions
from steersman.client import Intent
from steersman.controller import WriteLog
from steersman.controller.cached_kinds import CachedKinds
from steersman.controller.writes.applies import Applies
from steersman.errors import Conflict, NotFound
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import ConfigMap, Container, EnvVar, PodSpec, PodTemplateSpec, Secret
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import Key, Kind, Unstructured, encode

pytestmark = pytest.mark.both_servers("compares an intent with what the server made of it")


class Counting:
    """A transport that counts what is sent to change something."""

    def __init__(self, transport):
        self._transport = transport
        self.writes = []

    async def send(self, request, **options):
        if request.method != "GET":
            self.writes.append(f"{request.method} {request.path.rpartition('/')[2]}")
        return await self._transport.send(request, **options)

    async def close(self):
        pass


class Here:
    """A client as a reconcile has it, and a count of what it sends."""

    def __init__(self, cache, client, counting, kinds):
        self.cache, self.counting = cache, counting
        self._made_of = (cache, client, counting, kinds)
        self.watched = CachedKinds(cache)
        self.client = self.watched.client_for(client)(WriteLog())

    async def __aenter__(self):
        async with AsyncExitStack() as stack:
            for kind in self._made_of[-1]:
                listening = self.watched.watched(kind).listen(lambda event: None)
                await (await stack.enter_async_context(listening)).wait_synced()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error):
        await self._stack.aclose()

    def restarted(self):
        """Another one, that remembers nothing."""
        return Here(*self._made_of)

    async def sent(self, *applies):
        """What a few applies send."""
        self.counting.writes.clear()
        for each in applies:
            await each
        return list(self.counting.writes)


@asynccontextmanager
async def watching(client, *kinds, **options):
    counting = []

    def wrap(transport):
        counting.append(Counting(transport))
        return counting[0]

    counted = client.with_transport(wrap)
    async with Cache(counted, **options) as cache, Here(cache, counted, counting[0], kinds) as here:
        yield here


def config(namespace, name="child", **data):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), data=data)


def deployment(namespace, **container):
    labels = {"app": "web"}
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels),
        spec=PodSpec(containers=[Container(name="web", image="nginx", **container)]),
    )
    return Deployment(
        metadata=ObjectMeta(name="web", namespace=namespace),
        spec=DeploymentSpec(selector=LabelSelector(match_labels=labels), template=template),
    )


async def test_an_unchanged_intent_is_sent_once(client, namespace, sites):
    """With an owner, forced or not, remembered or after a restart; what comes back is the object."""
    owner = await client.create(site("owner", namespace))
    async with watching(client, ConfigMap) as here, here.restarted() as restarted:
        first = await here.client.apply(config(namespace, a="1"), owner=owner)
        version = first.metadata.resource_version
        for each in (here, restarted):
            again = await each.client.apply(config(namespace, a="1"), owner=owner)
            forced = await each.client.apply(config(namespace, a="1"), owner=owner, force=True)
            assert again.metadata.resource_version == forced.metadata.resource_version == version
            assert again.metadata.owner_references[0].uid == owner.metadata.uid
            assert isinstance(again, ConfigMap)
        assert here.counting.writes == ["PATCH child"]
        # another value, one value less, another owner: each is a change
        other = await client.create(site("other", namespace))
        for data, by in (({"a": "2"}, owner), ({}, owner), ({}, other)):
            assert await here.sent(here.client.apply(config(namespace, **data), owner=by)) == ["PATCH child"]


async def test_drift_is_corrected_and_the_work_of_others_left_alone(client, namespace):
    async with watching(client, ConfigMap) as here:
        made = await here.client.apply(config(namespace, a="1"))
        seen = here.cache.informer(ConfigMap)

        async def drift(**data):
            changed = await client.patch(ConfigMap, made.key, MergePatch({"data": data}))
            await seen.wait_reached(changed.metadata.resource_version)

        apply = here.client.apply
        await drift(theirs="1")
        assert await here.sent(apply(config(namespace, a="1"))) == []
        await drift(a="2")
        with pytest.raises(Conflict):
            await apply(config(namespace, a="1"))
        assert await here.sent(apply(config(namespace, a="1"), force=True)) == ["PATCH child"]
        await drift(a=None)
        assert await here.sent(apply(config(namespace, a="1"))) == ["PATCH child"]
        assert (await client.get(ConfigMap, made.key)).data == {"a": "1", "theirs": "1"}


async def test_what_the_server_writes_down_otherwise_is_not_sent_again(client, namespace):
    """A value that is dropped makes no loop, also when others write beside it; drift is still seen."""
    async with watching(client, Deployment) as here:
        seen = here.cache.informer(Deployment)

        def intent():
            return deployment(namespace, image_pull_policy="", env=[EnvVar(name="A", value="1")])

        made = await here.client.apply(intent())
        assert await here.sent(here.client.apply(intent())) == []
        status = MergePatch({"status": {"observedGeneration": 1}})
        changed = await client.patch(Deployment, made.key, status, subresource="status")
        await seen.wait_reached(changed.metadata.resource_version)
        assert await here.sent(here.client.apply(intent())) == []
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "httpd"}]}}}}
        changed = await client.patch(Deployment, made.key, MergePatch(patch))
        await seen.wait_reached(changed.metadata.resource_version)
        assert await here.sent(here.client.apply(intent(), force=True)) == ["PATCH web"]


async def test_a_status_is_applied_once(client, namespace, sites):
    made = await client.create(site("web", namespace))
    async with watching(client, Site) as here, here.restarted() as restarted:

        def status(**values):
            intent = site("web", namespace)
            intent.status = SiteStatus(**values)
            return intent

        async def send(where, **values):
            return await where.sent(where.client.apply(status(**values), subresource="status"))

        assert await send(here, replicas=1, ready_replicas=1) == ["PATCH status"]
        assert await send(here, replicas=1, ready_replicas=1) == []
        assert await send(restarted, replicas=1, ready_replicas=1) == []
        assert await send(here, replicas=1, ready_replicas=2) == ["PATCH status"]
        # the main endpoint is another intent, and ignores a status
        assert await here.sent(here.client.apply(status(replicas=7), force=True)) == ["PATCH web"]
        assert await here.sent(restarted.client.apply(status(replicas=8))) == []
        assert (await client.get(Site, made.key)).status.ready_replicas == 2


async def test_another_manager_is_another_intent(client, namespace):
    async with watching(client, ConfigMap) as here, here.restarted() as again:
        intent = config(namespace, a="1")
        assert await here.sent(here.client.apply(intent), here.client.apply(intent, field_manager="second")) == [
            "PATCH child",
            "PATCH child",
        ]
        assert await here.sent(here.client.apply(intent), here.client.apply(intent, field_manager="second")) == []
        # of other managers the cache keeps no entries: after a restart only the server knows
        assert await here.sent(again.client.apply(intent)) == []
        assert await here.sent(again.client.apply(intent, field_manager="second")) == ["PATCH child"]


async def test_what_cannot_be_known_is_sent(client, namespace, sites):
    """Dry runs, live applies, kinds that are not watched, cached in part, or without a schema."""
    intent = config(namespace, a="1")
    async with watching(client, ConfigMap) as here:
        await here.client.apply(intent)
        assert await here.sent(here.client.apply(intent, dry_run=True)) == ["PATCH child"]
        assert await here.sent(here.client.live.apply(intent)) == ["PATCH child"]
        assert await here.sent(here.client.apply(intent)) == []
        locked = config(namespace, a="1")
        locked.metadata.resource_version = "1"
        with pytest.raises(Conflict):
            await here.client.apply(locked)
        secret = Secret(metadata=ObjectMeta(name="child", namespace=namespace), string_data={"a": "1"})
        assert await here.sent(here.client.apply(secret), here.client.apply(secret)) == ["PATCH child"] * 2
        assert len(here.cache.statistics()) == 1, "an apply starts no informer"
    for options in (KindOptions(metadata_only=True), KindOptions(transform=lambda tree: tree)):
        async with watching(client, ConfigMap, kinds={ConfigMap: options}) as here:
            assert await here.sent(here.client.apply(intent), here.client.apply(intent)) == ["PATCH child"] * 2
    untyped = Kind(Site.gvk().api_version, "Site")
    tree = {"apiVersion": untyped.api_version, "kind": "Site", "metadata": {"name": "u", "namespace": namespace}}
    async with watching(client, untyped) as here, here.restarted() as restarted:
        wanted = Unstructured(tree | {"spec": {"image": "nginx"}})
        assert await here.sent(here.client.apply(wanted), here.client.apply(wanted)) == ["PATCH u"]
        assert await here.sent(restarted.client.apply(wanted)) == ["PATCH u"]


async def test_a_deleted_object_is_applied_again(client, namespace):
    """Our own deletion is known at once, one that only began too; so is one of many objects."""
    async with watching(client, ConfigMap) as here:
        intent = config(namespace, a="1")
        made = await here.client.apply(intent)
        assert await here.client.delete(ConfigMap, made.key) is None
        with pytest.raises(NotFound):
            await here.client.get(ConfigMap, made.key)
        assert await here.sent(here.client.apply(intent)) == ["PATCH child"]
        await here.client.delete_collection(ConfigMap, namespace=namespace, fields={"metadata.name": "child"})
        assert await here.sent(here.client.apply(intent)) == ["PATCH child"]
        await here.client.patch(ConfigMap, made.key, MergePatch({"metadata": {"finalizers": ["test.dev/hold"]}}))
        marked = await here.client.delete(ConfigMap, made.key)
        assert (
            marked.metadata.deletion_timestamp
            == (await here.client.get(ConfigMap, made.key)).metadata.deletion_timestamp
        )
        await here.client.patch(ConfigMap, made.key, MergePatch({"metadata": {"finalizers": None}}))


async def test_a_lost_answer_is_not_taken_for_an_apply(client, namespace):
    """The write may or may not have happened: the next apply asks the server."""

    class Losing(Counting):
        lose = False

        async def send(self, request, **options):
            response = await super().send(request, **options)
            if self.lose and request.method != "GET":
                await response.close()
                raise asyncio.CancelledError
            return response

    losing = []
    counted = client.with_transport(lambda transport: losing.append(Losing(transport)) or losing[0])
    async with Cache(counted) as cache, Here(cache, counted, losing[0], (ConfigMap,)) as here:
        await here.client.apply(config(namespace, a="1"))
        losing[0].lose = True
        with pytest.raises(asyncio.CancelledError):
            await here.client.patch(ConfigMap, f"{namespace}/child", MergePatch({"data": {"a": "2"}}))
        losing[0].lose = False
        assert await here.sent(here.client.apply(config(namespace, a="1"), force=True)) == ["PATCH child"]
    assert (await client.get(ConfigMap, f"{namespace}/child")).data == {"a": "1"}


async def test_kubectl_s_name_is_its_own(api_server, namespace):
    """Applies under that name also carry over an annotation, so they are left to the server."""
    async with (
        api_server.client(field_manager="kubectl") as client,
        watching(client, ConfigMap) as here,
    ):
        intent = config(namespace, a="1")
        assert len(await here.sent(here.client.apply(intent), here.client.apply(intent))) == 2


def stored_config(informer, version, **data):
    tree = {
        "metadata": {
            "name": "child",
            "namespace": "n",
            "uid": "u",
            "resourceVersion": version,
            "managedFields": [
                {
                    "manager": "tests",
                    "operation": "Apply",
                    "apiVersion": "v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:data": {"f:a": {}}},
                }
            ],
        },
        "data": data,
    }
    return informer.intake.admit(msgspec.json.encode(tree))


async def test_a_restored_server_may_use_a_version_again():
    """The same version number is another state then, and so nothing is left out on its word."""
    informer = Informer(Client(NoServer(), field_manager="tests"), ConfigMap)
    applies = Applies(lambda kind: informer)
    body = encode(config("n", a="1"))
    intent = Intent(ConfigMap.gvk(), Key("n", "child"), body, "tests", "", ConfigMap)
    first = stored_config(informer, "7", a="1")
    commit(informer, "", {first.key: first}, "7", new_epoch=False)
    assert applies.unchanged(intent) == first.raw
    assert applies.unchanged(intent) == first.raw
    restored = stored_config(informer, "7", a="0")
    commit(informer, "", {}, "5", new_epoch=True)
    commit(informer, "", {first.key: restored}, "7", new_epoch=False)
    assert applies.unchanged(intent) is None


async def test_the_memory_is_bounded_and_forgetting_sends_nothing(monkeypatch):
    monkeypatch.setattr("steersman.controller.writes.applies.MEMORY_LIMIT", 2)
    informer = Informer(Client(NoServer(), field_manager="tests"), ConfigMap)
    applies = Applies(lambda kind: informer)
    stored = stored_config(informer, "7", a="1")
    objects = [replace(stored, key=Key("n", f"child-{number}")) for number in range(4)]
    commit(informer, "", {each.key: each for each in objects}, "7", new_epoch=False)
    for _ in range(2):
        for each in objects:
            body = encode(config("n", each.key.name, a="1"))
            assert applies.unchanged(Intent(ConfigMap.gvk(), each.key, body, "tests", "", ConfigMap)) is not None
    assert len(applies) == 2
    assert applies.unsent == 8


async def test_objects_that_are_gone_are_forgotten(client, namespace, monkeypatch):
    """A program that makes and removes objects for months does not grow."""
    monkeypatch.setattr("steersman.controller.writes.applies._SWEEP_FROM", 4)
    async with watching(client, ConfigMap) as here:
        for number in range(20):
            made = await here.client.apply(config(namespace, name=f"child-{number}"))
            await here.client.delete(made)
        last = await here.client.apply(config(namespace, name="last"))
        await here.cache.informer(ConfigMap).wait_reached(last.metadata.resource_version)
        for number in range(5):
            await here.client.apply(config(namespace, name=f"kept-{number}"))
        assert len(here.watched.applies) <= 8
        assert await here.sent(here.client.apply(config(namespace, name="last"))) == []
