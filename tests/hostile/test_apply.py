"""Managed fields and applies that are made to hurt: answered in time, never with a failure of the server's own."""

from __future__ import annotations

import asyncio
import json
from time import process_time  # noqa: TID251 - how long an answer takes is what is looked at

import pytest
from hostile.judging import Exchange, Judge
from hostile.playing import logged, running_server

from steersman.wire import HttpRequest, parse_query

MAPS = "/api/v1/namespaces/hostile/configmaps"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
#: Seconds of a processor that others may slow down; what is not bounded takes minutes.
SLOWEST = 10.0


@pytest.fixture(scope="module")
async def server():
    async with running_server() as server:
        yield server


async def answered(server, method, target, body=None, form="application/json"):
    """Send a request and judge the answer: its status and its tree."""
    path, _, query = target.partition("?")
    text = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    request = HttpRequest(method, path, parse_query(query), (("Content-Type", form),) if text is not None else (), text)
    with logged() as log:
        begin = process_time()
        async with asyncio.timeout(60):
            reply = await server.handler(request)
        seconds = process_time() - begin
        assert isinstance(reply.body, bytes)
        wrong = Judge().look(Exchange(request, reply.status, tuple(reply.headers), reply.body, 0.0, logged=log.take()))
    assert not wrong
    assert seconds < SLOWEST
    return reply.status, json.loads(reply.body)


def entry(fields, **more):
    return {
        "manager": "a",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


def nested(depth):
    made = {}
    for _ in range(depth):
        made = {"f:a": made}
    return made


MANAGED = {
    "deep": [entry(nested(100))],
    "thousands of updaters": [entry({"f:data": {f"f:{n}": {}}}, manager=f"m{n}") for n in range(4000)],
    "thousands who apply": [entry({"f:data": {f"f:{n}": {}}}, manager=f"m{n}", operation="Apply") for n in range(4000)],
    "wide": [entry({"f:data": {f"f:{n}": {} for n in range(40_000)}})],
    "an endless number": [entry({"f:data": {"v:1e999": {}}})],
    "too many digits": [entry({"f:data": {"v:" + "1" * 6000: {}, "i:" + "9" * 6000: {}}})],
    "half a character": [entry({"f:data": {'v:"\\ud800"': {}, 'k:{"\\ud800":1}': {}}})],
    "deep values": [entry({"f:data": {"v:" + "[" * 3000 + "]" * 3000: {}}})],
    "one index in three forms": [entry({"f:data": {"i:1": {}, "i:+1": {}, "i:01": {}}})],
    "elements of no kind": [entry({"x:1": {}, "": {}, "f": {}})],
    "no set": [entry("abc")],
    "null": [None],
    "unknown version": [entry({"f:data": {}}, apiVersion="a/b/c/d")],
    "no operation": [entry({}, operation="Steal")],
}  # fmt: skip


@pytest.mark.parametrize("name", MANAGED)
async def test_whatever_managed_fields_come_with_an_object_it_can_be_written_and_applied(server, name):
    managed = MANAGED[name]
    tree = {"metadata": {"name": "a", "managedFields": managed}, "data": {"1": "x"}}
    status, made = await answered(server, "POST", MAPS, tree)
    assert status == 201
    assert sum(each["operation"] == "Update" for each in made["metadata"]["managedFields"]) <= 10
    await answered(server, "PUT", f"{MAPS}/a", tree | {"data": {"1": "y"}})
    intent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"1": "z"}}
    status, made = await answered(server, "PATCH", f"{MAPS}/a?fieldManager=z&force=true", intent, APPLY)
    assert status == 200
    assert made["data"]["1"] == "z"
    await answered(server, "PATCH", f"{MAPS}/a", {"metadata": {"managedFields": managed}}, MERGE)
    status, made = await answered(server, "PATCH", f"{MAPS}/a", {"metadata": {"managedFields": [{}]}}, MERGE)
    assert "managedFields" not in made["metadata"]
    assert (await answered(server, "DELETE", f"{MAPS}/a"))[0] == 200


async def test_thousands_of_conflicts_are_all_told(server):
    def pod(value):
        environment = [{"name": f"e{n}", "value": value} for n in range(3000)]
        container = {"name": "c", "image": "i", "env": environment}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}

    path = "/api/v1/namespaces/hostile/pods/p"
    assert (await answered(server, "PATCH", f"{path}?fieldManager=a", pod("x"), APPLY))[0] == 201
    status, refused = await answered(server, "PATCH", f"{path}?fieldManager=b", pod("y"), APPLY)
    assert status == 409
    assert len(refused["details"]["causes"]) == 3000


BODIES = {
    "a list": b"[]",
    "nothing": b"",
    "brackets": b"[" * 5000,
    "objects": b'{"a":' * 900 + b"1" + b"}" * 900,
    "a tag": b"!!python/object/apply:os.system ['true']",
    "no text": b"\xff\xfe\x00",
    "metadata that is a text": b"apiVersion: v1\nkind: ConfigMap\nmetadata: abc",
    "keys of every type": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {1: a, 1.5: b, null: c, true: d}",
    "too many digits": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, generation: " + b"9" * 5000 + b"}",
    "values of every type": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {a: [1], b: {c: d}}",
    "two owners of one uid": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, ownerReferences: [{uid: a}, {uid: a}]}",
}


@pytest.mark.parametrize("name", BODIES)
async def test_an_apply_of_anything_else_than_an_object_is_refused(server, name):
    status, _ = await answered(server, "PATCH", f"{MAPS}/b?fieldManager=a&force=true", BODIES[name], APPLY)
    assert status in {400, 500}, "what has the wrong types is kube-apiserver's own 500"
    assert (await answered(server, "GET", f"{MAPS}/b"))[0] == 404
