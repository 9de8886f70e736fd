"""Children and owners of writes: with and without a class, and an owner that is being deleted."""

import pytest

from samples.site import GROUP, Site, site
from steersman import Client, Key, Kind, MergePatch, ObjectMeta, Unstructured
from steersman.errors import OwnershipError
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.objects import controller_of, owner_reference

SITE = Kind(f"{GROUP}/v1", "Site")


@pytest.mark.parametrize("verb", ["create", "apply"])
@pytest.mark.parametrize("typed_owner", [True, False], ids=["typed owner", "untyped owner"])
async def test_a_child_without_a_class_may_have_an_owner_of_either_form(client, namespace, sites, verb, typed_owner):
    made = await client.create(site(f"owner-{verb}-{typed_owner}".lower(), namespace))
    owner = made if typed_owner else await client.get(SITE, made.key)
    metadata = {"name": f"child-of-{made.key.name}", "namespace": namespace}
    child = Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    written = await getattr(client, verb)(child, owner=owner)
    (reference,) = written["metadata"]["ownerReferences"]
    assert reference == {
        "apiVersion": made.api_version,
        "kind": "Site",
        "name": made.key.name,
        "uid": made.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert "ownerReferences" not in child.metadata


async def test_an_owner_without_a_class_owns_a_typed_child(client, namespace, sites):
    made = await client.create(site("untyped-owner", namespace))
    owner = await client.get(SITE, made.key)
    child = ConfigMap(metadata=ObjectMeta(name="of-untyped", namespace=namespace))
    applied = await client.apply(child, owner=owner)
    assert controller_of(applied) == owner_reference(made)


@pytest.mark.parametrize("verb", ["create", "apply"])
async def test_a_key_is_no_owner(client, namespace, verb):
    """A reconcile gets a key, so it is near at hand."""
    child = ConfigMap(metadata=ObjectMeta(name="of-key", namespace=namespace))
    with pytest.raises(TypeError, match="home is not an object, and cannot be an owner; pass the object that you read"):
        await getattr(client, verb)(child, owner=Key(namespace, "home"))


async def test_a_namespaced_owner_of_a_cluster_scoped_tree_is_refused(client, namespace, sites):
    """Only the server knows the scope of a kind without a class, and the garbage collector would delete the object."""
    owner = await client.create(site("far-owner", namespace))
    role = Unstructured(
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
    )
    with pytest.raises(OwnershipError, match="cannot own ClusterRole r, which is cluster-scoped"):
        await client.apply(role, owner=owner)


async def test_a_child_of_an_owner_that_ends_is_warned_of_once_for_each_kind(api_server, namespace, sites):
    """The server accepts the child, and the garbage collector deletes it: without a warning, the work is done for nothing."""
    seen = []
    connecting = Client.connect(kubeconfig=api_server.kubeconfig, field_manager="late", on_warning=seen.append)
    async with connecting as client:
        made = site("ending", namespace)
        made.metadata.finalizers = ["test.steersman.dev/held"]
        made = await client.create(made)
        await client.apply(ConfigMap(metadata=ObjectMeta(name="early", namespace=namespace)), owner=made)
        assert seen == []
        ending = await client.delete(made)
        assert ending is not None
        for name in ("late", "later"):
            await client.apply(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace)), owner=ending)
        tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "latest", "namespace": namespace}}
        await client.create(Unstructured(tree), owner=await client.get(SITE, made.key))
        await client.create(Secret(metadata=ObjectMeta(name="late", namespace=namespace)), owner=ending)
        assert [str(each) for each in seen] == [
            f"{tried}: Site {made.key} is being deleted, and the garbage collector deletes this object with it: look at"
            " .deleting first"
            for tried in (f"apply ConfigMap {namespace}/late", f"create Secret {namespace}/late")
        ]
        await client.patch(Site, made.key, MergePatch({"metadata": {"finalizers": None}}))
