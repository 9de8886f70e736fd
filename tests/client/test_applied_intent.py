"""What a manager applied can be taken out of an object, changed, and applied again."""

import json

import pytest

from samples.site import GROUP, Port, Site, SiteSpec, SiteStatus, ThinSite, site
from steersman import Key, Kind, ObjectMeta, Quantity, Unstructured
from steersman.client import extract_applied
from steersman.errors import DecodeError
from steersman.kinds.apps_v1 import Deployment
from steersman.objects import decode, to_json

SITE = Kind(f"{GROUP}/v1", "Site")


def part(namespace, **spec):
    return Site.only(metadata=ObjectMeta(name="home", namespace=namespace), spec=SiteSpec.only(**spec))


async def test_an_intent_comes_back_as_it_was_applied_and_can_be_applied_again(client, namespace, sites):
    mine = {"image": "nginx:1.27", "ports": [Port(name="http", port=80)], "memory": Quantity("64Mi")}
    intent = part(namespace, **mine, settings={"cache": {"size": 3}})
    await client.apply(intent)
    await client.apply(part(namespace, replicas=3, mode="dynamic"), field_manager="scaler")
    live = await client.get(Site, Key(namespace, "home"))

    found = extract_applied(live, manager="tests")
    assert to_json(found) == to_json(intent)
    assert to_json(extract_applied(live, manager="scaler"))["spec"] == {"replicas": 3, "mode": "dynamic"}
    again = await client.apply(found)
    assert again.metadata.resource_version == live.metadata.resource_version

    found.spec.image = "nginx:1.29"
    changed = await client.apply(found)
    assert (changed.spec.image, changed.spec.replicas, changed.spec.mode) == ("nginx:1.29", 3, "dynamic")


async def test_what_was_applied_to_the_status_is_extracted_from_there(client, namespace, sites):
    await client.apply(site("home", namespace))
    status = Site.only(metadata=ObjectMeta(name="home", namespace=namespace), status=SiteStatus(ready_replicas=2))
    live = await client.apply(status, subresource="status")
    found = extract_applied(live, manager="tests", subresource="status")
    assert to_json(found) == to_json(status)


def read(cls, *, owned, **tree):
    entry = {"manager": "ada", "operation": "Apply", "apiVersion": tree["apiVersion"], "fieldsType": "FieldsV1"}
    metadata = {"name": "home", "uid": "1", "managedFields": [entry | {"fieldsV1": owned}]}
    raw = json.dumps({"metadata": metadata, **tree}).encode()
    return Unstructured.decode(raw) if cls is Unstructured else decode(cls, raw)


def test_of_who_applied_nothing_there_is_the_name():
    tree = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2}}
    live = read(Deployment, owned={"f:spec": {"f:replicas": {}}}, **tree)
    assert to_json(extract_applied(live, manager="ada")) == {**tree, "metadata": {"name": "home"}}
    name_alone = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "home"}}
    assert to_json(extract_applied(live, manager="ben")) == name_alone


def test_objects_without_a_type_are_extracted_if_their_kind_is_known():
    owned = {"f:spec": {"f:replicas": {}}}
    live = read(
        Unstructured, owned=owned, apiVersion="apps/v1", kind="Deployment", spec={"replicas": 2, "paused": True}
    )
    assert extract_applied(live, manager="ada").tree["spec"] == {"replicas": 2}
    unknown = read(Unstructured, owned=owned, apiVersion=SITE.api_version, kind="Site", spec={"replicas": 2})
    with pytest.raises(TypeError, match="no known schema"):
        extract_applied(unknown, manager="ada")


def test_a_type_that_knows_less_than_was_applied_is_refused():
    tree = {"apiVersion": SITE.api_version, "kind": "Site", "spec": {"image": "nginx", "replicas": 2}}
    live = read(ThinSite, owned={"f:spec": {"f:image": {}, "f:replicas": {}}}, **tree)
    with pytest.raises(DecodeError, match="ThinSite home: the type cannot hold all fields that ada applied"):
        extract_applied(live, manager="ada")
