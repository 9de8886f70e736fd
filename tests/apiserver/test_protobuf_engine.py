"""Protobuf on the engine: it makes the same of an object's protobuf as of its JSON. That holds our numbers to its own."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections import Counter
from random import Random  # noqa: TID251 - seeded, and the run prints the seed

import aiohttp
import pytest
from conformance.protobuf_decoding import tree_of
from conformance.protobuf_encoding import PROTOBUF, encode, envelope, shape_for

from samples.random_values import metadata
from samples.round_trips import CLUSTER, LIMITED, RECIPES
from steersman.apiserver.go_types.shapes import Shape, shape_of
from steersman.apiserver.protobuf import to_protobuf
from steersman.kinds.definitions import resources_of
from steersman.kinds.registry import all_group_versions
from steersman.objects import GroupVersionKind

SEED = 20260401
TIMES = 3
#: What the server makes up, of its own or of where the body came from.
MADE_UP = ("creationTimestamp", "managedFields", "resourceVersion")
UID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Its answer comes in another order each time.
UNORDERED = "SelfSubjectRulesReview"
#: Its data are bytes: kube-apiserver keeps them as a client wrote them, and answers them without spaces in JSON.
FREE_TEXT = "ControllerRevision"


@pytest.fixture
async def ask(engine):
    """Sends an object, in either form, and gives the code and the answer."""
    trust = ssl.create_default_context(cafile=str(engine.ca_file))
    trust.load_cert_chain(engine.admin_cert_file, engine.admin_key_file)
    async with aiohttp.ClientSession(engine.url, connector=aiohttp.TCPConnector(ssl=trust)) as session:

        async def send(path, body, content):
            headers = {"Content-Type": content}
            async with session.post(f"{path}?dryRun=All", data=body, headers=headers) as answer:
                return answer.status, tidy(json.loads(UID.sub("uid", await answer.text())))

        async def both(path, tree):
            api_version, kind = tree["apiVersion"], tree["kind"]
            message = encode(tree, shape_for(api_version, kind))
            return await asyncio.gather(
                send(path, json.dumps(tree), "application/json"),
                send(path, envelope(api_version, kind, message), PROTOBUF),
            )

        yield both


def tidy(tree):
    if tree["kind"] == "Status":
        # Causes come in another order each time.
        causes = tree.get("details", {}).get("causes")
        return sorted(json.dumps(cause) for cause in causes) if causes else tree["message"]
    for name in MADE_UP:
        tree.get("metadata", {}).pop(name, None)
    if tree["kind"] == "Service":
        for name in ("clusterIP", "clusterIPs", "healthCheckNodePort"):
            tree["spec"].pop(name, None)
        for port in tree["spec"]["ports"]:
            port.pop("nodePort", None)
    return tree


def path_of(gvk, namespace, plural):
    prefix = f"/apis/{gvk.group}/{gvk.version}" if gvk.group else f"/api/{gvk.version}"
    return f"{prefix}/namespaces/{namespace}/{plural}" if namespace else f"{prefix}/{plural}"


async def test_valid_objects(ask, namespace):
    for seed in range(SEED, SEED + TIMES * len(RECIPES)):
        rng = Random(seed)
        recipe = RECIPES[seed % len(RECIPES)]
        gvk = recipe.cls.gvk()
        tree = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata(rng, "a")} | recipe.make(rng)
        path = path_of(gvk, "" if recipe.where == CLUSTER else namespace, recipe.cls.__resource__.plural)
        from_json, from_protobuf = await ask(path, tree)
        assert from_json[0] == 201, f"seed {seed}: {from_json[1]}"
        assert from_protobuf == from_json, f"seed {seed}"


#: A value by kind; what is not there is a text that says where it is.
VALUES = {
    "int": 7,
    "float": 1.5,
    "bool": True,
    "bytes": "AP8=",
    "time": "2024-01-02T03:04:05Z",
    "micro": "2024-01-02T03:04:05.000006Z",
    "quantity": "1500m",
}
FREE = {
    "CustomResourceSubresourceStatus": {},
    "JSONSchemaPropsOrBool": True,
    "JSONSchemaPropsOrArray": {},
    "JSONSchemaPropsOrStringArray": ["a"],
}


def full(shape: Shape, path: str, within: tuple[str, ...] = ()):
    """A value of a shape with every field that it has, but none within itself."""
    match shape.kind:
        case "struct":
            fields = shape.fields if shape.definition not in within else {}
            within = (*within, shape.definition)
            return {name: full(place.shape, f"{path}.{name}", within) for name, place in fields.items()}
        case "list":
            return [full(shape.inner, path, within)]
        case "map":
            return {"k": full(shape.inner, path, within)}
        case "any":
            return FREE.get(shape.name, {"a": path})
        case kind:
            return VALUES.get(kind, path)


def creatable():
    """The kinds that can be created, with their resources."""
    for group_version in all_group_versions():
        for resource in resources_of(group_version):
            if "/" not in resource["name"] and "create" in resource["verbs"] and resource["kind"] != UNORDERED:
                yield GroupVersionKind(group_version.group, group_version.version, resource["kind"]), resource


async def test_every_field_of_every_kind(ask, namespace):
    """Objects with all their fields are refused, in words that quote them: the same in both forms."""
    codes = Counter()
    for kind, resource in creatable():
        shape = shape_of(kind)
        assert shape is not None
        tree = full(shape, "a") | {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}}
        path = path_of(kind, namespace if resource["namespaced"] else "", resource["name"])
        from_json, from_protobuf = await ask(path, tree)
        assert from_protobuf == from_json, kind
        codes[from_json[0]] += 1
    assert codes[400] == 0
    assert codes[422] > 50


@pytest.fixture
async def session(engine):
    trust = ssl.create_default_context(cafile=str(engine.ca_file))
    trust.load_cert_chain(engine.admin_cert_file, engine.admin_key_file)
    async with aiohttp.ClientSession(engine.url, connector=aiohttp.TCPConnector(ssl=trust)) as session:
        yield session


async def read(session, path, accept, **query):
    async with session.get(path, params=query, headers={"Accept": accept}) as answer:
        assert answer.status == 200, f"{path}: {await answer.text()}"
        return await answer.read()


async def test_our_bytes_of_objects_are_the_engines(session, namespace):
    """What the engine answers as JSON, our writer turns into the bytes that the engine answers as protobuf."""
    # Limits of a namespace would refuse what comes after them.
    recipes = sorted(RECIPES, key=lambda recipe: recipe.where == LIMITED)
    for number, recipe in enumerate(recipes):
        rng, gvk = Random(SEED + number), recipe.cls.gvk()
        if gvk.kind == "ValidatingWebhookConfiguration":
            # It would be called for everything that other tests write.
            continue
        made = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata(rng, f"bytes-{number}")}
        made |= recipe.make(rng)
        made["metadata"].pop("finalizers", None)
        path = path_of(gvk, "" if recipe.where == CLUSTER else namespace, recipe.cls.__resource__.plural)
        async with session.post(path, json=made) as answer:
            assert answer.status == 201, f"seed {SEED + number}: {await answer.text()}"
            one = f"{path}/{(await answer.json())['metadata']['name']}"
        printed = message = b""
        # The server may write the status in between.
        while printed != (again := await read(session, one, "application/json")):
            printed, message = again, await read(session, one, PROTOBUF)
        async with session.delete(one, json={"gracePeriodSeconds": 0}):
            pass
        if to_protobuf(printed) != message:
            assert tree_of(to_protobuf(printed)) == tree_of(message), gvk


async def test_our_bytes_of_lists_are_the_engines(session):
    compared = 0
    for kind, resource in creatable():
        if "list" not in resource["verbs"] or kind.kind == FREE_TEXT:
            continue
        path = path_of(kind, "", resource["name"])
        version = json.loads(await read(session, path, "application/json"))["metadata"]["resourceVersion"]
        exact = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
        for form in ("", ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"):
            printed = await read(session, path, f"application/json{form}", **exact)
            if b"\\ufffd" in printed or "\ufffd" in printed.decode():
                # Another test stored what is not UTF-8, and JSON does not say what that was.
                continue
            assert to_protobuf(printed) == await read(session, path, f"{PROTOBUF}{form}", **exact), kind
            compared += len(json.loads(printed)["items"] or ())
    assert compared > 100


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/apis/policy/v1"])
async def test_our_bytes_of_discovery_are_the_engines(session, path):
    assert to_protobuf(await read(session, path, "application/json")) == await read(session, path, PROTOBUF)
