"""What a server serves."""

import pytest

from samples.site import GROUP, Site
from steersman import Client, ObjectMeta, Resource, Spec
from steersman.apiserver import ApiServer
from steersman.errors import KindNotServed, NotEstablished
from steersman.kinds.apiregistration_v1 import APIService, APIServiceSpec, ServiceReference
from steersman.objects import GroupVersion, GroupVersionKind, GroupVersionResource, Kind, Unstructured
from steersman.testing import eventually


async def test_kinds_and_resources_map_to_each_other(client, sites):
    served = await client.discovery.resource_of(GroupVersionKind("apps", "v1", "Deployment"))
    assert (served.resource, served.namespaced, served.short_names) == ("deployments", True, ("deploy",))
    assert {subresource.name for subresource in served.subresources} == {"status", "scale"}
    assert await client.discovery.kind_of(GroupVersionResource("", "v1", "pods")) == GroupVersionKind("", "v1", "Pod")
    assert (await client.discovery.resource_of(Site.gvk())).resource == "sites"


async def test_both_ways_of_discovery_agree(client, sites):
    """Aggregated discovery and the old way, one group after the other."""
    aggregated = await client.discovery._aggregated()
    one_by_one = await client.discovery._one_by_one()

    def names(result):
        return sorted((r.group, r.version, r.kind, r.resource, r.namespaced, r.verbs) for r in result.resources)

    assert names(aggregated) == names(one_by_one)
    assert aggregated.preferred_versions == one_by_one.preferred_versions


async def test_preferred_versions(client):
    preferred = await client.discovery.preferred()
    assert (preferred[""], preferred["apps"], preferred["autoscaling"]) == ("v1", "v1", "v2")


@pytest.mark.engine_only("aggregation")
async def test_one_broken_group_does_not_hide_the_others(client):
    broken = await client.create(
        APIService(
            metadata=ObjectMeta(name="v1.broken.test.steersman.dev"),
            spec=APIServiceSpec(
                group="broken.test.steersman.dev",
                version="v1",
                group_priority_minimum=100,
                version_priority=100,
                insecure_skip_tls_verify=True,
                service=ServiceReference(name="nobody", namespace="default"),
            ),
        )
    )

    async def known():
        found = await client.discovery._one_by_one()
        assert GroupVersion("broken.test.steersman.dev", "v1") in found.failures
        return found

    try:
        # kube-apiserver lists the group a moment after it has stored the APIService
        one_by_one = await eventually(known)
        client.discovery.invalidate()
        assert any(resource.kind == "Pod" for resource in one_by_one.resources)
        assert any(resource.kind == "Pod" for resource in await client.discovery.resources())
    finally:
        await client.delete(broken)


async def test_server_version_and_openapi(client):
    version = await client.discovery.server_version()
    assert str(version).startswith("v1.")
    document = await client.discovery.openapi(GroupVersion("apps", "v1"))
    assert "io.k8s.api.apps.v1.Deployment" in document["components"]["schemas"]


async def test_a_kind_installed_later_is_found(client, crd_group, install):
    """The first answer is kept, but a miss asks again."""

    class Late(Resource[Spec, None], group=crd_group, version="v1"):
        pass

    with pytest.raises(KindNotServed):
        await client.discovery.resource_of(Late.gvk())
    await install(Late)
    assert (await client.discovery.resource_of(Late.gvk())).resource == "lates"


async def test_installing_twice_changes_nothing(client, sites):
    before = await client.request("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sites.{GROUP}")
    await client.install(Site)
    assert before == await client.request(
        "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sites.{GROUP}"
    )


class Clash(
    Resource[Spec, None],
    group=GROUP,
    version="v1",
    plural="clashes",
    short_names=("st",),
    kind="Site2",
    singular="site",
):
    """Wants the singular name of Site."""


async def test_a_name_that_is_taken_says_so(client, sites):
    with pytest.raises(NotEstablished, match="another definition uses the name"):
        await client.install(Clash)
    await client.request("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clashes.{GROUP}")


def boats(scope, plural):
    schema = {"openAPIV3Schema": {"type": "object"}}
    spec = {"group": GROUP, "scope": scope, "names": {"plural": plural, "kind": "Boat"}}
    spec |= {"versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}]}
    metadata = {"name": f"{plural}.{GROUP}"}
    return Unstructured(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": metadata,
            "spec": spec,
        }
    )


@pytest.mark.parametrize(("scope", "plural"), [("Cluster", "boats"), ("Namespaced", "fleet")])
async def test_a_kind_that_comes_back_otherwise_is_found(scope, plural):
    """With another scope or resource name: without an informer, the client went on to use the old path for ever."""
    kind, definitions = Kind(f"{GROUP}/v1", "Boat"), Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    boat = Unstructured({"apiVersion": f"{GROUP}/v1", "kind": "Boat", "metadata": {"name": "a"}})
    async with ApiServer() as server, Client(server.transport()) as client:
        await client.create(boats("Namespaced", "boats"))
        await client.create(boat)
        await client.delete(definitions, f"boats.{GROUP}")
        await eventually(client, definitions, f"boats.{GROUP}", gone=True)
        await client.create(boats(scope, plural))
        with pytest.raises(KindNotServed):
            await client.get(kind, "a")
        assert not await client.list(kind)
        assert not await client.metadata.list(kind)
        made = await client.create(boat)
        assert made.key.namespace == ("" if scope == "Cluster" else "default")
