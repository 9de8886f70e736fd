"""Collections: pages, revisions, selectors and forms."""

import base64
import json

import pytest

from samples.embedded import TABLE, Raw
from samples.virtual_time import run_virtual
from steersman.apiserver import ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@pytest.fixture
async def five(raw):
    """Five objects, and the version of each."""
    return [
        (await raw.post(MAPS, {"metadata": {"name": name, "labels": {"l": name}}, "data": {"x": name}})).version
        for name in "abcde"
    ]


def token_of(answer):
    text = answer.body["metadata"]["continue"]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


async def test_pages_show_one_revision_whatever_happens_between(raw, five):
    first = await raw.get(f"{MAPS}?limit=2")
    assert first.body["metadata"]["remainingItemCount"] == 3
    assert token_of(first) == {"v": "meta.k8s.io/v1", "rv": five[-1], "start": "/b\0"}
    await raw.delete(f"{MAPS}/c")
    await raw.put(f"{MAPS}/d", {"metadata": {"name": "d"}, "data": {"x": "changed"}})
    await raw.post(MAPS, {"metadata": {"name": "cc"}})
    second = await raw.get(f"{MAPS}?limit=2&continue={first.body['metadata']['continue']}")
    third = await raw.get(f"{MAPS}?limit=2&continue={second.body['metadata']['continue']}")
    assert (first.names, second.names, third.names) == (["a", "b"], ["c", "d"], ["e"])
    assert second.body["items"][1]["data"] == {"x": "d"}
    assert first.version == second.version == third.version == five[-1]
    assert "continue" not in third.body["metadata"]


async def test_a_page_whose_revision_is_gone_offers_to_go_on(raw, server, five):
    first = await raw.get(f"{MAPS}?limit=2")
    await raw.delete(f"{MAPS}/c")
    await server.storage.compact(await server.storage.revision())
    gone = await raw.get(f"{MAPS}?limit=2&continue={first.body['metadata']['continue']}")
    assert (gone.code, gone.body["reason"]) == (410, "Expired")
    assert token_of(gone) == {"v": "meta.k8s.io/v1", "rv": -1, "start": "b\0"}
    rest = await raw.get(f"{MAPS}?continue={gone.body['metadata']['continue']}")
    assert rest.names == ["d", "e"]
    exact = await raw.get(f"{MAPS}?resourceVersion={five[1]}&resourceVersionMatch=Exact")
    assert (exact.code, exact.body["message"]) == (410, "The resourceVersion for the provided list is too old.")


async def test_pages_across_namespaces(raw, five):
    await raw.post("/api/v1/namespaces/kube-public/configmaps", {"metadata": {"name": "z"}})
    first = await raw.get("/api/v1/configmaps?limit=4")
    assert token_of(first)["start"] == "/default/d\0"
    rest = await raw.get(f"/api/v1/configmaps?continue={first.body['metadata']['continue']}")
    assert rest.names == ["e", "z"]


@pytest.mark.parametrize("token", ["xx", "%25%25", "e30", "W10", "aGVsbG8", "Li4"])
async def test_tokens_that_are_none(raw, five, token):
    assert (await raw.get(f"{MAPS}?continue={token}")).code == 400


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("labelSelector=l in (a,c)", ["a", "c"]),
        ("labelSelector=l!=a&limit=2", ["b", "c"]),
        ("labelSelector=!l", []),
        ("fieldSelector=metadata.name=b", ["b"]),
        ("fieldSelector=metadata.name!=b", ["a", "c", "d", "e"]),
        ("fieldSelector=metadata.namespace=default,metadata.name=e", ["e"]),
        ("fieldSelector=metadata.name=b&labelSelector=l=a", []),
        ("resourceVersion=0&limit=2", ["a", "b", "c", "d", "e"]),
        ("limit=-1", ["a", "b", "c", "d", "e"]),
    ],
)
async def test_selections(raw, five, query, names):
    assert (await raw.get(f"{MAPS}?{query}")).names == names


async def test_revisions(raw, five):
    exact = await raw.get(f"{MAPS}?resourceVersion={five[1]}&resourceVersionMatch=Exact")
    assert (exact.names, exact.version) == (["a", "b"], five[1])
    limited = await raw.get(f"{MAPS}?resourceVersion={five[1]}&limit=1")
    assert (limited.names, limited.version) == (["a"], five[1])
    newer = await raw.get(f"{MAPS}?resourceVersion={five[1]}")
    assert (len(newer.names), newer.version) == (5, five[-1])


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("resourceVersion=x", 400),
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersionMatch=Exact&resourceVersion=0", 422),
        ("resourceVersionMatch=Perhaps&resourceVersion=1", 422),
        ("sendInitialEvents=true", 422),
        ("limit=x", 400),
        ("labelSelector=a b", 400),
        ("fieldSelector=data.x=a", 400),
        ("fieldSelector=x", 400),
    ],
)
async def test_options_that_cannot_be(raw, query, code):
    assert (await raw.get(f"{MAPS}?{query}")).code == code


def test_a_revision_to_come_is_waited_for_and_then_refused():
    async def ask():
        async with ApiServer(kinds=["v1"]) as server:
            raw = Raw(server.handler)
            return await raw.get(f"{MAPS}?resourceVersion=999"), await raw.get(f"{MAPS}/a?resourceVersion=999")

    (of_list, of_object), seconds = run_virtual(ask())
    assert of_list.code == of_object.code == 504
    assert of_list.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert of_list.headers["Retry-After"] == "1"
    assert seconds == 6.0


# forms


async def test_metadata_alone(raw, five):
    one = await raw.get(f"{MAPS}/a", accept=PARTIAL)
    assert one.body["kind"] == "PartialObjectMetadata"
    assert set(one.body) == {"kind", "apiVersion", "metadata"}
    assert one.version == five[0]
    many = await raw.get(f"{MAPS}?limit=2", accept=PARTIAL_LIST)
    assert (many.body["kind"], many.names) == ("PartialObjectMetadataList", ["a", "b"])
    assert (await raw.get(MAPS, accept=PARTIAL)).code == 406
    assert (await raw.get(f"{MAPS}/a", accept=PARTIAL_LIST)).code == 406


async def test_tables(raw):
    path = "/api/v1/namespaces/default/podtemplates"
    spec = {"containers": [{"name": "c", "image": "i"}]}
    assert (await raw.post(path, {"metadata": {"name": "t"}, "template": {"spec": spec}})).code == 201
    table = await raw.get(path, accept=TABLE)
    assert table.body["kind"] == "Table"
    assert table.body["columnDefinitions"][0]["name"] == "Name"
    assert table.body["rows"][0]["cells"][0] == "t"
    assert table.body["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    whole = await raw.get(f"{path}?includeObject=Object", accept=TABLE)
    assert whole.body["rows"][0]["object"]["kind"] == "PodTemplate"
    none = await raw.get(f"{path}?includeObject=None", accept=TABLE)
    assert none.body["rows"][0]["object"] is None
    assert (await raw.get(f"{path}?includeObject=x", accept=TABLE)).code == 400


async def test_what_the_client_takes_decides(raw, five):
    fallback = await raw.get(f"{MAPS}/a", accept=f"{TABLE.replace('v1;', 'v9;')},application/json")
    assert fallback.body["kind"] == "ConfigMap"
    for accept in ("text/plain", "application/json;as=Picture;v=v1;g=meta.k8s.io"):
        assert (await raw.get(f"{MAPS}/a", accept=accept)).code == 406


async def test_a_page_begins_with_the_key_of_its_token(raw):
    """Clients of other servers may send a key itself; a key after all of them selects nothing, also by a name."""
    for name in "abc":
        await raw.post(MAPS, {"metadata": {"name": name}})

    async def page(start, more=""):
        text = json.dumps({"v": "meta.k8s.io/v1", "rv": -1, "start": start}).encode()
        return await raw.get(f"{MAPS}?continue={base64.urlsafe_b64encode(text).decode()}{more}")

    assert (await page("b")).names == ["b", "c"]
    assert (await page("b\0")).names == ["c"]
    assert (await page("a", "&fieldSelector=metadata.name%3Db")).names == ["b"]
    assert (await page("b\0", "&fieldSelector=metadata.name%3Db")).names == []
    assert (await page("b/")).code == 400
