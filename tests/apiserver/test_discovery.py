"""What the server says about itself: groups, resources, version, health and paths."""

import asyncio
import json

import pytest

from samples.embedded import Raw
from samples.site import GROUP, Site
from steersman.apiserver import ApiServer
from steersman.apiserver.custom_resources import definitions_of
from steersman.apiserver.discovery import Health, ServerHealthCheck
from steersman.apiserver.discovery.catalog import version_order
from steersman.objects import GroupVersionResource
from steersman.schemas import crd_for
from steersman.wire import HttpRequest
from steersman.wire.discovery import parse_aggregated_discovery, parse_group_list, parse_resource_list
from steersman.wire.version import parse_version

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
BETA = AGGREGATED.replace("v=v2", "v=v2beta1")


async def aggregated(raw):
    return parse_aggregated_discovery(
        (await raw.get("/api", accept=AGGREGATED)).text, (await raw.get("/apis", accept=AGGREGATED)).text
    )


async def test_both_forms_tell_the_same(raw):
    whole = await aggregated(raw)
    groups = parse_group_list((await raw.get("/api")).text, (await raw.get("/apis")).text)
    assert groups.preferred_versions == whole.preferred_versions
    listed = []
    for served in groups.versions:
        path = f"/apis/{served.group}/{served.version}" if served.group else f"/api/{served.version}"
        listed += parse_resource_list((await raw.get(path)).text)
    assert listed == whole.resources


async def test_discovery_shows_the_registry(server, raw):
    told = {found.gvr: found for found in (await aggregated(raw)).resources}
    assert len(told) == len(server.registry)
    for definition in server.registry:
        found = told[GroupVersionResource(definition.gvk.group, definition.gvk.version, definition.resource)]
        assert set(found.verbs) == set(definition.verbs)
        assert found.namespaced == definition.namespaced
        below = {sub.name for sub in found.subresources}
        assert ("status" in below, "scale" in below) == (definition.has_status, definition.scale is not None)
        assert below - {"status", "scale"} == set(definition.subresources)


async def test_discovery_shows_a_custom_resource_as_its_crd(raw):
    listed = (await raw.get(f"/apis/{GROUP}/v1")).body["resources"]
    verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    assert listed[0]["verbs"] == verbs
    assert listed[0]["storageVersionHash"] == "HOcSnSS+UX8="
    assert [entry["name"] for entry in listed] == ["sites", "sites/status", "sites/scale"]
    groups = (await raw.get("/apis", accept=AGGREGATED)).body["items"]
    (resource,) = groups[-1]["versions"][0]["resources"]
    assert resource["responseKind"] == {"group": GROUP, "version": "v1", "kind": "Site"}


async def test_discovery_shows_a_change_of_the_registry_at_once():
    async with ApiServer(kinds=["v1", "apps/v1"]) as server:
        raw = Raw(server.handler)
        before = await raw.get("/apis", accept=AGGREGATED)
        assert (await raw.get(f"/apis/{GROUP}")).code == 404
        server.registry.add(definitions_of(crd_for(Site))[0])
        after = await raw.get("/apis", accept=AGGREGATED)
        assert before.headers["ETag"] != after.headers["ETag"]
        assert [item["metadata"]["name"] for item in after.body["items"]] == ["apps", GROUP]
        assert (await raw.get(f"/apis/{GROUP}")).body["versions"][0]["version"] == "v1"
        assert f"apis/{GROUP}/v1" in json.loads((await raw.get("/openapi/v3")).text)["paths"]
        assert f"/apis/{GROUP}/v1" in (await raw.get("/")).body["paths"]
        server.registry.remove(GROUP, "v1", "sites")
        assert (await raw.get("/apis", accept=AGGREGATED)).text == before.text
        assert (await raw.get(f"/apis/{GROUP}/v1")).code == 404


async def test_who_has_the_newest_document_gets_no_other(server, raw):
    etag = (await raw.get("/apis", accept=AGGREGATED)).headers["ETag"]

    async def asked(tag):
        headers = (("Accept", AGGREGATED), ("If-None-Match", tag))
        return await server.handle(HttpRequest("GET", "/apis", (), headers))

    same = await asked(etag)
    assert (same.status, same.body, dict(same.headers)["ETag"]) == (304, b"", etag)
    assert dict(same.headers)["Cache-Control"] == "public"
    assert (await asked('"another"')).status == 200
    assert (await asked(f"W/{etag}")).status == 200


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (AGGREGATED, "APIGroupDiscoveryList"),
        (f"application/json, {AGGREGATED}", "APIGroupDiscoveryList"),
        (f"{BETA},{AGGREGATED},application/json", "APIGroupDiscoveryList"),
        (f"{BETA},application/json", "APIGroupList"),
        ("application/*", "APIGroupList"),
        (BETA, "Status"),
        ("text/html", "Status"),
        ("application/json;as=Table;g=meta.k8s.io;v=v1", "Status"),
    ],
)
async def test_the_form_is_the_one_that_the_client_takes(raw, accept, kind):
    found = await raw.get("/apis", accept=accept)
    assert found.body["kind"] == kind
    assert found.code == (406 if kind == "Status" else 200)
    if kind == "APIGroupDiscoveryList":
        assert found.headers["Content-Type"] == AGGREGATED


async def test_plain_documents_are_yaml_on_request(raw):
    found = await raw.get("/apis/apps", accept="application/yaml")
    assert found.headers["Content-Type"] == "application/yaml"
    assert found.text.startswith(b"apiVersion: v1\nkind: APIGroup\nname: apps\n")


async def test_refusals_of_media_types_have_the_words_of_their_path(raw):
    offers = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    only = f"only the following media types are accepted: {offers}"
    available = f"406: Not Acceptable\n\nAvailable representations: {offers}"
    for path, words in {
        "/apis": only,
        "/apis/apps": only,
        f"/apis/{GROUP}/v1": only,
        "/apis/apps/v1": available,
    }.items():
        assert (await raw.get(path, accept="text/html")).body["message"] == words
    refused = await raw.get("/version", accept="application/yaml")
    assert refused.body["message"] == "406: Not Acceptable\n\nAvailable representations: application/json"


async def test_methods_that_only_some_paths_know(raw):
    for path in ("/api", "/api/v1", "/apis/apps/v1", "/version"):
        assert (await raw.send("POST", path)).body["reason"] == "MethodNotAllowed"
    for path in ("/apis", "/apis/apps", f"/apis/{GROUP}/v1", "/healthz"):
        assert (await raw.send("POST", path)).code == 200
    head = await raw.send("HEAD", "/apis")
    assert (head.code, head.text) == (200, b"")


async def test_versions_that_are_not_there(raw):
    for path in ("/apis/apps/v9", "/apis/apps/v9/deployments", "/api/v9", "/api/v9/pods", "/version/x"):
        assert (await raw.get(path)).body["message"] == "the server could not find the requested resource"
    for path in (f"/apis/{GROUP}/v9", "/apis/nothing.example.com", "/apis//", "/healthz/", "/openapi"):
        assert (await raw.get(path)).text == b"404 page not found\n"


async def test_a_server_without_the_core_group_says_so():
    async with ApiServer(kinds=["apps/v1"]) as server:
        raw = Raw(server.handler)
        assert (await raw.get("/api")).body["versions"] == []
        assert (await raw.get("/api", accept=AGGREGATED)).body["items"] == []


def test_released_versions_come_first_and_newer_before_older():
    versions = ["v1alpha1", "foo", "v1", "v2beta1", "v10", "v2", "v1beta2", "v2beta2", "bar"]
    assert sorted(versions, key=version_order) == [
        "v10", "v2", "v1", "v2beta2", "v2beta1", "v1beta2", "v1alpha1", "bar", "foo",
    ]  # fmt: skip


async def test_the_newest_version_of_a_group_is_preferred():
    async with ApiServer(kinds=["autoscaling/v1", "autoscaling/v2"]) as server:
        found = (await Raw(server.handler).get("/apis/autoscaling")).body
        assert [entry["version"] for entry in found["versions"]] == ["v2", "v1"]
        assert found["preferredVersion"]["version"] == "v2"


async def test_the_version_is_one_that_clients_read(raw):
    version = parse_version((await raw.get("/version")).text)
    assert version.at_least(1, 30)
    assert "+steersman." in version.git_version


async def test_our_client_finds_resources_by_it(client):
    found = await client.discovery.resource_of(Site.gvk())
    assert (found.resource, found.short_names) == ("sites", ("st",))
    assert not await client.discovery.failures()


async def test_health_check_by_check(raw):
    assert (await raw.get("/livez")).text == b"ok"
    assert (await raw.get("/readyz/etcd")).text == b"ok"
    told = (await raw.get("/readyz?verbose&exclude=etcd&exclude=b&exclude=a")).text.decode()
    assert told.startswith("[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n")
    assert "[+]informer-sync ok\n[+]poststarthook/start-apiserver-admission-initializer ok\n" in told
    assert told.endswith(
        '[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for "a","b"\nreadyz check passed\n'
    )
    assert (await raw.get("/livez/informer-sync")).code == 404


async def test_a_check_that_fails_is_shown_without_its_reason():
    async def broken():
        raise OSError("the disk is full")

    route = Health("readyz", [ServerHealthCheck("disk", broken)])
    async with ApiServer(kinds=["v1"], routes=[route]) as server:
        raw = Raw(server.handler)
        found = await raw.get("/readyz")
        assert (found.code, found.text) == (500, b"[-]disk failed: reason withheld\nreadyz check failed\n")
        assert (await raw.get("/readyz/disk")).text == b"internal server error: the disk is full\n"
        assert (await raw.get("/readyz?exclude=disk")).text == b"ok"


async def test_a_check_that_hangs_has_failed(monkeypatch):
    monkeypatch.setattr("steersman.apiserver.discovery.health.PATIENCE", 0.01)
    route = Health("livez", [ServerHealthCheck("slow", asyncio.Event().wait)])
    async with ApiServer(kinds=["v1"], routes=[route]) as server:
        assert (await Raw(server.handler).get("/livez")).code == 500


async def test_the_root_lists_paths_that_are_answered(raw):
    paths = (await raw.get("/")).body["paths"]
    assert paths == sorted(paths)
    assert {"/api/v1", "/apis/apps", f"/apis/{GROUP}/v1", "/livez/ping", "/version"} <= set(paths)
    for path in paths:
        if not path.endswith("/v3/"):
            assert (await raw.get(path)).code == 200, path
