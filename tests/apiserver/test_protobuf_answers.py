"""Answers in protobuf hold what the same answers in JSON hold, for objects, lists and watches of any size."""

import asyncio
import json
from random import Random  # noqa: TID251 - seeded, and the run prints the seed

import pytest
from apiserver.test_protobuf_engine import SEED, creatable, full, path_of
from conformance.protobuf_decoding import ProtobufSplitter, json_of, tree_of
from conformance.protobuf_encoding import PROTOBUF

from samples.embedded import Raw
from samples.random_values import metadata
from samples.round_trips import CLUSTER, RECIPES
from steersman.apiserver import ApiServer
from steersman.apiserver.go_types.shapes import shape_of
from steersman.apiserver.protobuf import read_envelope, read_message, to_protobuf
from steersman.wire import HttpRequest

CMS = "/api/v1/namespaces/default/configmaps"
PARTIALS = f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@pytest.fixture
async def server():
    async with ApiServer(kinds=["v1", "apps/v1"]) as server:
        yield server


@pytest.fixture
def raw(server):
    return Raw(server.handler)


async def test_every_kind_keeps_every_field():
    """A field that the writer skipped or put elsewhere would be lost for every Go client."""
    for kind, _ in creatable():
        shape = shape_of(kind)
        tree = without_types(full(shape, "a")) | {"apiVersion": kind.api_version, "kind": kind.kind}
        sent = to_protobuf(json.dumps(tree).encode())
        api_version, name, message = read_envelope(sent)
        assert (api_version, name) == (kind.api_version, kind.kind)
        found = read_message(message, shape)
        assert without_zeroes(found) == without_zeroes(
            {k: v for k, v in tree.items() if k not in {"apiVersion", "kind"}}
        )


def without_types(tree):
    """An object without the types of objects in it, which have no place in protobuf."""
    for template in tree.get("spec", {}).get("volumeClaimTemplates", ()):
        template.pop("apiVersion", None)
        template.pop("kind", None)
    return tree


def without_zeroes(value):
    """A tree without what protobuf cannot tell from absent."""
    if isinstance(value, dict):
        kept = {name: without_zeroes(inner) for name, inner in value.items()}
        return {name: inner for name, inner in kept.items() if inner not in ({}, [], None, "", 0, False)}
    return [without_zeroes(item) for item in value] if isinstance(value, list) else value


def test_a_status_subresource_is_an_empty_message():
    versions = [{"name": "v1", "subresources": {"status": {}}}]
    tree = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {"versions": versions}}
    assert b"*\x02\n\x00" in to_protobuf(json.dumps(tree).encode())


async def test_lists_of_any_size(raw):
    """Long lists are converted in another thread: they must hold the same."""
    for number in range(30):
        await raw.post(CMS, {"metadata": {"name": f"c{number:02}"}, "data": {"k": "v" * 4000}})
    for path in (CMS, f"{CMS}?limit=1"):
        as_json = await raw.get(path)
        message = await raw.get(path, accept=PROTOBUF)
        assert tree_of(message.text)["metadata"] == as_json.body["metadata"]
        assert tree_of(message.text)["items"] == as_json.body["items"]
    names = [item["metadata"]["name"] for item in tree_of((await raw.get(CMS, accept=PARTIALS)).text)["items"]]
    assert names == [f"c{number:02}" for number in range(30)]


async def test_a_watch_shares_its_frames_with_no_watch_in_json(server, raw):
    """Both media types of one event are printed; a frame of one must never reach a watcher of the other."""
    streams = {}
    for accept in (PROTOBUF, "application/json"):
        query = (("watch", "true"), ("resourceVersion", "1"))
        answer = await server.handle(HttpRequest("GET", CMS, query, (("Accept", accept),)))
        streams[accept] = aiter(answer.body)
    await raw.post(CMS, {"metadata": {"name": "a"}})
    async with asyncio.timeout(30):
        chunks = {accept: await anext(stream) for accept, stream in streams.items()}
    (frame,) = ProtobufSplitter().feed(chunks[PROTOBUF])
    assert json.loads(frame)["object"]["metadata"] == json.loads(chunks["application/json"])["object"]["metadata"]
    for stream in streams.values():
        await stream.aclose()


async def test_who_accepts_only_protobuf_gets_errors_in_it(raw):
    answer = await raw.get(f"{CMS}/missing", accept=PROTOBUF)
    assert answer.code == 404
    assert json.loads(json_of(answer.text))["message"] == 'configmaps "missing" not found'


async def test_objects_of_both_media_types_are_equal():
    async with ApiServer() as server:
        raw = Raw(server.handler)
        for number, recipe in enumerate(RECIPES):
            rng, gvk = Random(SEED + number), recipe.cls.gvk()
            if gvk.kind == "ValidatingWebhookConfiguration":
                continue  # it would be called for everything that follows
            tree = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata(rng, f"a-{number}")}
            namespace = f"n{number}"
            await raw.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
            path = path_of(gvk, "" if recipe.where == CLUSTER else namespace, recipe.cls.__resource__.plural)
            made = await raw.post(path, tree | recipe.make(rng))
            assert made.code == 201, made.body
            one = f"{path}/{made.body['metadata']['name']}"
            as_json, message = await raw.get(one), await raw.get(one, accept=PROTOBUF)
            assert without_zeroes(tree_of(message.text)) == without_zeroes(without_types(as_json.body)), gvk
