"""OpenAPI v3: what it tells of every served resource, how it may be kept, and what kubectl makes of it."""

import json
import os

import pytest

from samples.embedded import Raw
from samples.site import GROUP, Site
from steersman.apiserver import ApiServer
from steersman.apiserver.chain import single_user
from steersman.apiserver.discovery.openapi import document
from steersman.apiserver.registry import builtin_definitions
from steersman.testing.engine.environment import Environment
from steersman.testing.engine.existing_cluster import find_kubectl
from steersman.testing.engine.kubectl import run_kubectl
from steersman.transport.listener import HttpListener
from steersman.wire import HttpRequest

ITEM = f"/apis/{GROUP}/v1/namespaces/{{namespace}}/sites/{{name}}"
METHODS = {"get": "get", "update": "put", "patch": "patch", "delete": "delete"}


async def index_of(raw):
    return json.loads((await raw.get("/openapi/v3")).text)["paths"]


def references(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


@pytest.fixture(scope="module")
def documents():
    """The documents of all built-in group-versions, with their definitions."""
    by_version = {}
    for definition in builtin_definitions():
        by_version.setdefault(definition.gvk.group_version, []).append(definition)
    return [(definitions, document(definitions)) for definitions in by_version.values()]


def test_every_reference_leads_somewhere(documents):
    for _, found in documents:
        names = {f"#/components/schemas/{name}" for name in found["components"]["schemas"]}
        assert set(references(found)) <= names


def test_operations_are_those_that_are_served(documents):
    for definitions, found in documents:
        for definition in definitions:
            gvk = definition.gvk
            root = f"/apis/{gvk.group}/{gvk.version}" if gvk.group else f"/api/{gvk.version}"
            scope = "/namespaces/{namespace}" if definition.namespaced else ""
            item = found["paths"].get(f"{root}{scope}/{definition.resource}/{{name}}", {})
            wanted = {method for verb, method in METHODS.items() if verb in definition.verbs}
            assert item.keys() - {"parameters"} == wanted
            for method in wanted:
                told = item[method]["x-kubernetes-group-version-kind"]
                assert told == {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
            if "patch" in wanted:
                assert "fieldValidation" in {each["name"] for each in item["patch"]["parameters"]}


def test_every_kind_has_a_schema_that_names_and_describes_it(documents):
    for definitions, found in documents:
        named = {
            (kind["group"], kind["version"], kind["kind"]): schema
            for schema in found["components"]["schemas"].values()
            for kind in schema.get("x-kubernetes-group-version-kind", ())
        }
        for definition in definitions:
            gvk = definition.gvk
            schema = named[gvk.group, gvk.version, gvk.kind]
            assert schema["description"]
            assert schema["properties"]["kind"]["description"]
            if "list" in definition.verbs:
                assert (gvk.group, gvk.version, f"{gvk.kind}List") in named


def test_descriptions_are_those_of_the_fields(documents):
    for definitions, found in documents:
        if definitions[0].gvk.api_version == "apps/v1":
            spec = found["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]
            assert spec["paused"]["description"] == "Indicates that the deployment is paused."
            assert "\n" not in spec["replicas"]["description"]
            return
    pytest.fail("apps/v1 has no document")


async def test_a_custom_resource_has_its_own_schema_and_no_strategic_merge_patch(raw):
    found = (await raw.get(f"/openapi/v3/apis/{GROUP}/v1")).body
    patch = found["paths"][ITEM]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    schema = found["components"]["schemas"]["dev.steersman.test.web.v1.Site"]
    assert schema["properties"]["spec"]["properties"]["replicas"]["maximum"] == 50
    assert schema["properties"]["metadata"]["allOf"][0]["$ref"].endswith(".ObjectMeta")
    assert schema["x-kubernetes-group-version-kind"] == [{"group": GROUP, "kind": "Site", "version": "v1"}]
    assert {f"{ITEM}/status", f"{ITEM}/scale"} <= found["paths"].keys()
    assert found["paths"][f"{ITEM}/scale"]["get"]["x-kubernetes-group-version-kind"]["kind"] == "Scale"


async def test_a_document_with_its_hash_may_be_kept_for_ever(server, raw):
    address = (await index_of(raw))["apis/apps/v1"]["serverRelativeURL"]
    kept = await raw.get(address)
    assert kept.headers["Cache-Control"] == "public, immutable"
    assert kept.headers["Expires"].endswith(" UTC")
    plain = await raw.get("/openapi/v3/apis/apps/v1")
    assert plain.headers["Cache-Control"] == "no-cache, private"
    assert plain.text == kept.text
    etag = plain.headers["ETag"]
    assert etag.strip('"') in address
    again = await server.handle(HttpRequest("GET", "/openapi/v3/apis/apps/v1", (), (("If-None-Match", etag),)))
    assert (again.status, again.body) == (304, b"")


async def test_an_old_hash_leads_to_the_new_one(raw):
    moved = await raw.get("/openapi/v3/apis/apps/v1?hash=OLD")
    assert moved.code == 301
    assert moved.headers["Location"] == (await index_of(raw))["apis/apps/v1"]["serverRelativeURL"]


async def test_what_has_no_document_or_no_such_form(raw):
    for path in ("/openapi/v3/apis/apps/v9", "/openapi/v3/", "/openapi/v3/api/v1/"):
        found = await raw.get(path)
        assert (found.code, found.text) == (404, b"")
    assert (await raw.get("/openapi/v3/api/v1", accept="application/yaml")).code == 406
    assert (await raw.get("/openapi/v2", accept="application/yaml")).code == 406


async def test_the_older_document_has_the_same_schemas(raw):
    older = (await raw.get("/openapi/v2", accept="application/json")).body["definitions"]
    newer = (await raw.get("/openapi/v3/apis/apps/v1")).body["components"]["schemas"]
    assert newer.keys() <= older.keys()
    assert {name.removeprefix("#/definitions/") for name in references(older)} <= older.keys()
    deployment = older["io.k8s.api.apps.v1.Deployment"]
    assert deployment["x-kubernetes-group-version-kind"][0]["kind"] == "Deployment"
    assert deployment["properties"]["spec"]["$ref"] == "#/definitions/io.k8s.api.apps.v1.DeploymentSpec"


async def test_the_hash_changes_with_the_resources_of_the_group_version_alone(server, raw):
    before = await index_of(raw)
    server.registry.remove("apps", "v1", "controllerrevisions")
    after = await index_of(raw)
    assert {path for path in before if before[path] != after[path]} == {"apis/apps/v1"}


async def test_our_client_reads_it(client):
    found = await client.discovery.openapi(Site.gvk().group_version)
    assert ITEM in found["paths"]


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""


async def test_kubectl_explains_and_applies(tmp_path):
    program = find_kubectl(Environment.read())
    variables = {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none"), "PATH": os.environ["PATH"]}
    open_to_all = ApiServer(kinds=["v1", "apps/v1"], resources=[Site], chain=[single_user()])
    async with open_to_all as server, HttpListener(server.handler) as listener:

        async def kubectl(*arguments, stdin=""):
            options = (f"--server=http://127.0.0.1:{listener.port}", *arguments)
            return await run_kubectl(program, options, stdin=stdin, variables=variables)

        explained = await kubectl("explain", "deployment.spec.paused")
        assert "FIELD: paused <boolean>" in explained
        assert "Indicates that the deployment is paused." in explained
        assert "replicas\t<integer>" in await kubectl("explain", "site.spec")
        assert "created" in await kubectl("apply", "-f", "-", stdin=DEPLOYMENT % 1)
        assert "configured" in await kubectl("apply", "-f", "-", stdin=DEPLOYMENT % 2)
        stored = await Raw(server.handler).get("/apis/apps/v1/namespaces/default/deployments/web")
        assert stored.body["spec"]["replicas"] == 2
        assert "sites" in await kubectl("api-resources", f"--api-group={GROUP}")
