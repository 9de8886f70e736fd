"""The server as a whole: our own client on it, the chain, routes, admission, and how it fails."""

import asyncio

import pytest

from samples.embedded import Raw
from samples.site import Site, site
from steersman import Client
from steersman.apiserver import ApiServer, Plugin, RequestRejected
from steersman.apiserver.errors import forbidden
from steersman.errors import AlreadyExists, Conflict, NotFound
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import ObjectMeta
from steersman.transport import InProcessTransport, ServerResponse

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data={"k": "v"})


async def test_our_own_client_works_on_it(client):
    made = await client.create(config_map("a"))
    assert made.metadata.uid
    with pytest.raises(AlreadyExists):
        await client.create(config_map("a"))
    made.data = {"k": "2"}
    changed = await client.update(made)
    with pytest.raises(Conflict):
        await client.update(made)
    assert (await client.get(ConfigMap, "default/a")).data == {"k": "2"}
    assert [found.metadata.name for found in await client.list(ConfigMap, namespace="default")] == ["a"]
    await client.delete(changed)
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "default/a")


async def test_a_class_of_ours_is_served(client):
    made = await client.create(site("web", "default"))
    assert made.metadata.generation == 1
    assert (await client.get(Site, "default/web")).spec.image == "nginx:1.27"


async def test_every_request_passes_the_chain_in_order():
    passed = []

    async def outer(request, next_):
        passed.append("outer")
        request.warn("mind the gap")
        return await next_(request)

    async def inner(request, next_):
        passed.append(f"inner {request.info.verb} {request.info.resource}")
        if request.info.verb == "delete":
            raise forbidden(None, "", "deletes are denied here")
        return await next_(request)

    async with ApiServer(kinds=["v1"], chain=[outer, inner]) as server:
        raw = Raw(server.handler)
        made = await raw.post(MAPS, {"metadata": {"name": "a"}})
        refused = await raw.delete(f"{MAPS}/a")
    assert passed == ["outer", "inner create configmaps", "outer", "inner delete configmaps"]
    assert made.headers["Warning"] == '299 - "mind the gap"'
    assert refused.code == 403


async def test_routes_answer_what_is_no_resource():
    async def version(request):
        return ServerResponse(status=200, body=b"{}\n") if request.info.path == "/version" else None

    async with ApiServer(kinds=["v1"], routes=[version]) as server:
        raw = Raw(server.handler)
        assert (await raw.get("/version")).code == 200
        assert (await raw.get("/other")).code == 404


async def test_plugins_change_and_refuse_what_is_stored():
    class Stamp(Plugin):
        async def admit(self, attributes):
            if attributes.obj is not None:
                attributes.obj["metadata"].setdefault("annotations", {})["stamp"] = attributes.operation

        async def validate(self, attributes):
            if attributes.name == "forbidden":
                raise forbidden(attributes.definition.named, attributes.name, "so says the plugin")

    async with ApiServer(kinds=["v1"], admission=[Stamp()]) as server:
        raw = Raw(server.handler)
        made = await raw.post(MAPS, {"metadata": {"name": "a"}})
        changed = await raw.patch(f"{MAPS}/a", {"data": {"k": "v"}})
        refused = await raw.post(MAPS, {"metadata": {"name": "forbidden"}})
        kept = await raw.get(MAPS)
    assert made.body["metadata"]["annotations"] == {"stamp": "CREATE"}
    assert changed.body["metadata"]["annotations"] == {"stamp": "UPDATE"}
    assert refused.code == 403
    assert kept.names == ["a"]


async def test_our_own_mistake_is_one_answer(caplog):
    async def broken(request, next_):
        if request.info.name == "a":
            raise KeyError("a mistake")
        return await next_(request)

    async with ApiServer(kinds=["v1"], chain=[broken]) as server:
        raw = Raw(server.handler)
        failed = await raw.get(f"{MAPS}/a")
        assert (failed.code, failed.body["reason"]) == (500, "InternalError")
        assert "a mistake" not in failed.body["message"]
        assert (await raw.get(f"{MAPS}/b")).code == 404
    assert "failed to answer GET" in caplog.text


async def test_a_server_that_has_ended_says_so_and_leaves_nothing():
    before = asyncio.all_tasks()
    server = ApiServer(kinds=["v1"])
    async with server, Client(InProcessTransport(server.handler)) as client:
        await client.create(config_map("a"))
    assert asyncio.all_tasks() == before
    assert (await Raw(server.handler).get(MAPS)).code == 500


def test_a_class_without_a_kind_is_refused():
    class Nothing(ObjectMeta):
        pass

    with pytest.raises(TypeError, match="declares no kind"):
        ApiServer(kinds=[], resources=[Nothing])


def test_refused_carries_its_status():
    refused = forbidden(None, "", "no")
    assert isinstance(refused, RequestRejected)
    assert refused.status.code == 403
