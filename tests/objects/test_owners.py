"""Owner references: what is refused would be refused, or misread, by Kubernetes."""

import pytest

from samples.site import Site, site
from steersman import ObjectMeta
from steersman.errors import OwnershipError
from steersman.kinds.core_v1 import ConfigMap
from steersman.kinds.rbac_v1 import ClusterRole
from steersman.objects import (
    PartialObjectMetadata,
    Unstructured,
    controller_of,
    decode,
    is_owned_by,
    owner_reference,
    set_owner,
    to_json,
)


def owner(name: str = "home", namespace: str = "web", uid: str = "u-1") -> Site:
    made = site(name, namespace)
    made.metadata.uid = uid
    return made


def config(namespace: str | None = "web") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="child", namespace=namespace))


def test_a_controller_reference():
    child = config()
    set_owner(child, owner())
    reference = controller_of(child)
    assert reference is not None
    assert (reference.kind, reference.name, reference.uid) == ("Site", "home", "u-1")
    assert reference.block_owner_deletion
    assert reference.group == "web.test.steersman.dev"
    assert is_owned_by(child, owner())
    assert not is_owned_by(child, owner(uid="u-2"))


def test_an_owner_needs_a_uid():
    with pytest.raises(OwnershipError, match="create or read it before"):
        owner_reference(site("home", "web"))


def test_an_owner_that_does_not_name_its_kind_is_refused():
    """The garbage collector would look for a kind that no server has."""
    raw = b'{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"home","uid":"u-1"}}'
    for read in (decode(PartialObjectMetadata, raw), Unstructured.decode(raw)):
        with pytest.raises(OwnershipError, match="home was read as metadata alone"):
            owner_reference(read)


def test_a_second_controller_is_refused_a_second_owner_is_not():
    child = config()
    set_owner(child, owner())
    with pytest.raises(OwnershipError, match="already controlled by Site home"):
        set_owner(child, owner("other", uid="u-2"))
    set_owner(child, owner("other", uid="u-2"), controller=False)
    assert [reference.uid for reference in child.metadata.owner_references or ()] == ["u-1", "u-2"]


def test_owning_twice_is_owning_once():
    child = config()
    set_owner(child, owner())
    set_owner(child, owner())
    assert len(child.metadata.owner_references or ()) == 1


def test_an_owner_in_another_namespace_is_refused():
    with pytest.raises(OwnershipError, match="same namespace or cluster-scoped"):
        set_owner(config("elsewhere"), owner())


def test_a_namespaced_owner_cannot_own_a_cluster_scoped_object():
    """The garbage collector would look for the owner in no namespace, not find it, and delete the object."""
    role = ClusterRole(metadata=ObjectMeta(name="reader"))
    with pytest.raises(OwnershipError, match="cluster-scoped"):
        set_owner(role, owner())


def test_trees_have_owners_as_typed_objects_do():
    """An object without a class is as good an owner, and as good a child."""
    tree = {"metadata": {"name": "child", "namespace": "web", "ownerReferences": [{"uid": "u-0", "note": "theirs"}]}}
    child = Unstructured({"apiVersion": "v1", "kind": "ConfigMap"} | tree)
    by = Unstructured(to_json(owner()))
    set_owner(child, by)
    reference = controller_of(child)
    assert reference == owner_reference(owner())
    assert child.metadata["ownerReferences"] == [{"uid": "u-0", "note": "theirs"}, to_json(owner_reference(by))]
    assert is_owned_by(child, by)
    assert is_owned_by(child, owner())
    with pytest.raises(OwnershipError, match="already controlled by Site home"):
        set_owner(child, owner("other", uid="u-2"))
    with pytest.raises(OwnershipError, match="same namespace or cluster-scoped"):
        set_owner(Unstructured({"metadata": {"name": "c", "namespace": "elsewhere"}}), by)
