"""What lies between deciding to apply and sending it: only where nothing is, only if something changed, looked at undecoded."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from samples.site import Site, site
from steersman import MergePatch, ObjectMeta, Unstructured
from steersman.aio import Supervisor
from steersman.client.stages.prepared_apply import NO_VERSION
from steersman.controller import Done, InternalClient, internal_client, reconcile_pipeline
from steersman.errors import Conflict
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import Manager
from steersman.objects import set_owner

pytestmark = pytest.mark.both_servers("the server's answer to a conditional apply decides")


@pytest.fixture
async def home(client, sites, namespace):
    return await client.create(site("home", namespace))


@asynccontextmanager
async def reconciling(client, home):
    """The client of a reconcile that lasts as long as the block."""
    begun, ended = asyncio.get_running_loop().create_future(), asyncio.Event()

    async def reconcile(ctx, request):
        if request.key == home.key and not begun.done():
            begun.set_result(internal_client(ctx))
            await ended.wait()
        return Done()

    manager = Manager(client)
    manager.controller(Site).owns(ConfigMap).options(timeout=None).run_with(reconcile)
    async with Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        async with asyncio.timeout(60):
            yield await begun
        ended.set()
        manager.stop()


def page(home, name="page", text="hello"):
    made = ConfigMap(
        metadata=ObjectMeta(name=name, namespace=home.key.namespace, labels={"by": "us"}), data={"t": text}
    )
    set_owner(made, home)
    return made


@pytest.mark.parametrize("metadata_first", [True, False])
async def test_an_apply_of_what_is_absent_cannot_overwrite(client, namespace, metadata_first):
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    metadata, data = {"metadata": {"name": "page", "namespace": namespace}}, {"data": {"metadata": "x"}}
    tree = head | (metadata | data if metadata_first else data | metadata)
    prepared = await InternalClient(reconcile_pipeline(client)).prepare_apply(Unstructured(tree), force=True)
    made = await InternalClient(reconcile_pipeline(client)).send_apply(prepared, resource_version=NO_VERSION)
    assert made["data"] == {"metadata": "x"}
    with pytest.raises(Conflict):
        await InternalClient(reconcile_pipeline(client)).send_apply(prepared, resource_version=NO_VERSION)
    again = await InternalClient(reconcile_pipeline(client)).send_apply(
        prepared, resource_version=made["metadata"]["resourceVersion"]
    )
    assert again.uid == made.uid


async def test_an_apply_to_one_object_does_not_reach_its_namesake(client, namespace):
    tree = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "page", "namespace": namespace},
        "data": {"a": "b"},
    }
    prepared = await InternalClient(reconcile_pipeline(client)).prepare_apply(Unstructured(tree), force=True)
    made = await InternalClient(reconcile_pipeline(client)).send_apply(prepared)
    assert (await InternalClient(reconcile_pipeline(client)).send_apply(prepared, uid=made.uid)).uid == made.uid
    await client.delete(made)
    with pytest.raises(Conflict):  # it is gone, and not made anew
        await InternalClient(reconcile_pipeline(client)).send_apply(prepared, uid=made.uid)
    await client.create(Unstructured(tree | {"data": {"theirs": "1"}}))
    with pytest.raises(Conflict, match=f"another object than the one with uid {made.uid}"):
        await InternalClient(reconcile_pipeline(client)).send_apply(prepared, uid=made.uid)


async def test_own_writes_are_looked_at_at_once_and_undecoded(client, home):
    async with reconciling(client, home) as writer:
        uid, key = home.metadata.uid, home.key._replace(name="page")
        assert await writer.view(ConfigMap, key) is None
        for name in ("page", "other"):
            await writer.apply(page(home, name), force=True)
        view = await writer.view(ConfigMap, key)
        assert (view.controller_uid, view.labels, view.deleting) == (uid, {"by": "us"}, False)
        assert view.object.data == {"t": "hello"}

        async def owned(**options):
            return sorted(each.key.name for each in await writer.views_owned_by(ConfigMap, uid, **options))

        async def labeled(value):
            found = await writer.views_labeled(ConfigMap, "by", value)
            return sorted(each.key.name for each in found if each.key.namespace == home.key.namespace)

        assert (await owned(), await owned(but={key})) == (["other", "page"], ["other"])
        assert (await labeled("us"), await labeled("them")) == (["other", "page"], [])
        await writer.delete(ConfigMap, key)
        assert (await owned(), await labeled("us")) == (["other"], ["other"])


async def test_what_an_apply_was_made_from_is_known_again_until_something_changes(client, home):
    async with reconciling(client, home) as writer:
        gvk, key, token = ConfigMap.gvk(), home.key._replace(name="page"), b"token"
        await writer.send_apply(await writer.prepare_apply(page(home), force=True))
        assert writer.recall_apply(gvk, key, token) is None  # applied without a token
        assert writer.is_known_apply(await writer.prepare_apply(page(home), force=True, token=token))
        assert writer.recall_apply(gvk, key, token).object.data == {"t": "hello"}
        assert writer.recall_apply(gvk, key, b"another") is None
        assert writer.live.recall_apply(gvk, key, token) is None
        await writer.patch(ConfigMap, key, MergePatch({"data": {"t": "drift"}}))
        assert writer.recall_apply(gvk, key, token) is None
        await writer.send_apply(await writer.prepare_apply(page(home), force=True, token=token))
        assert writer.recall_apply(gvk, key, token).object.data == {"t": "hello"}
