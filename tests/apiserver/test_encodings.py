"""Answers in other media types than JSON: the same bytes, whether whole or encoded while they are sent."""

from __future__ import annotations

import json
from random import Random  # noqa: TID251 - seeded here
from typing import Any

import pytest
import yaml

from samples.embedded import TABLE, Raw
from steersman.apiserver import ApiServer
from steersman.apiserver.encodings.yaml_writer import TEXT_MAX, to_yaml
from steersman.apiserver.protobuf import to_protobuf
from steersman.transport import ServerResponse
from steersman.wire import HttpRequest, parse_query

MAPS = "/api/v1/namespaces/default/configmaps"
YAML, PROTOBUF = "application/yaml", "application/vnd.kubernetes.protobuf"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
OLD_TABLE = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
#: How many bytes each object has, and how many there are: more than is encoded at once.
SIZE, NUMBER = 60_000, 20
#: A piece is at most some objects.
PIECE_MAX = 4 * SIZE


def dumped(tree: Any) -> bytes:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(tree, Dumper=dumper, allow_unicode=True, default_flow_style=False).encode()


TEXTS = [
    *(
        "",
        " ",
        "a",
        "yes",
        "No",
        "~",
        "null",
        "1",
        "-1",
        "0x1f",
        "1_000",
        "1.5",
        "1e3",
        ".inf",
        "2020-01-01",
        "<<",
        "=",
    ),
    *(
        "a: b",
        "a #b",
        "#a",
        "- a",
        "?",
        ":",
        "{",
        "[a]",
        "*a",
        "&a",
        "!a",
        "%a",
        "@a",
        "`a",
        "'a'",
        '"a"',
        "a\\b",
        "a'b",
    ),
    *("a\nb", "a\n", "\na", "a\tb", "\t", "a\r\nb", "é", "\u2028", "\ufeff", "\x07", "\x85", "😀", "x" * 200),
    *("word " * 60, " lead", "trail ", "---", "...", "12:30:45", "o", "on", "y", "0o7", "0b1", "1e400", "-.5"),
]


@pytest.mark.parametrize("seed", range(40))
def test_yaml_is_that_of_the_dumper(seed: int):
    random = Random(seed)

    def tree(depth: int) -> Any:
        match random.randrange(9 if depth else 5):
            case 0:
                return random.choice([None, True, False])
            case 1:
                return random.choice([0, -7, 2**62, 1.0, -0.5, 1e-7, 1e20, 1.5e300])
            case 5 | 6:
                return [tree(depth - 1) for _ in range(random.randrange(4))]
            case 7 | 8:
                return {random.choice(TEXTS): tree(depth - 1) for _ in range(random.randrange(5))}
            case _:
                return random.choice(TEXTS)

    for _ in range(50):
        made = tree(6)
        assert to_yaml(made) == dumped(made)


@pytest.fixture
async def server():
    async with ApiServer(kinds=["v1"]) as server:
        raw = Raw(server.handler)
        for number in range(NUMBER):
            data = {f"k{at}": f"v{at} <\u00e9>" for at in range(SIZE // 50)}
            await raw.post(MAPS, {"metadata": {"name": f"m{number:02}", "labels": {"n": str(number)}}, "data": data})
        yield server


async def asked(server: ApiServer, accept: str, query: str = "") -> ServerResponse:
    return await server.handler(HttpRequest("GET", MAPS, parse_query(query), (("Accept", accept),)))


def ageless(tree: Any) -> Any:
    """A table without the ages in its rows, which change."""
    for row in tree.get("rows", ()):
        row["cells"].pop()
    return tree


async def pieces_of(reply: ServerResponse) -> list[bytes]:
    assert not isinstance(reply.body, bytes)
    return [piece async for piece in reply.body]


async def test_a_long_list_in_each_media_type_has_the_bytes_of_the_whole(server):
    tree = json.loads(b"".join(await pieces_of(await asked(server, "application/json"))))
    assert [item["metadata"]["name"] for item in tree["items"]] == [f"m{number:02}" for number in range(NUMBER)]
    for accept, expected in ((YAML, dumped(tree)), (PROTOBUF, to_protobuf(json.dumps(tree).encode()))):
        reply = await asked(server, accept)
        assert dict(reply.headers)["Content-Type"] == accept
        assert b"".join(await pieces_of(reply)) == expected


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
@pytest.mark.parametrize("accept", [TABLE, OLD_TABLE, PARTIAL])
async def test_a_long_list_in_each_form_has_the_items_of_its_pages(server, accept, include):
    whole = b"".join(await pieces_of(await asked(server, accept, f"includeObject={include}")))
    tree = ageless(json.loads(whole))
    field = "items" if accept == PARTIAL else "rows"
    pages: list[Any] = []
    more = ""
    while not pages or more:
        reply = await asked(server, accept, f"includeObject={include}&limit=3&continue={more}")
        assert isinstance(reply.body, bytes)
        page = ageless(json.loads(reply.body))
        more = page["metadata"].get("continue", "")
        pages += page.pop(field)
    as_yaml = accept.replace("json", "yaml", 1)
    printed = b"".join(await pieces_of(await asked(server, as_yaml, f"includeObject={include}")))
    assert ageless(yaml.load(printed, getattr(yaml, "CSafeLoader", yaml.SafeLoader))) == tree
    assert tree.pop(field) == pages
    assert tree == page


@pytest.mark.parametrize(
    "accept", ["application/json", YAML, PROTOBUF, TABLE, f"{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"]
)
async def test_a_long_list_is_sent_in_pieces_of_some_objects(server, accept):
    pieces = await pieces_of(await asked(server, accept, "includeObject=Object"))
    assert len(pieces) > 1
    assert max(map(len, pieces)) < PIECE_MAX


async def test_a_long_list_as_protobuf_is_kept_within_the_memory_for_answers(server):
    """The list begins with its length: its pieces are kept, or encoded again."""
    workers = server.backend.workers
    free = workers._memory
    stream = aiter((await asked(server, PROTOBUF)).body)
    first = await anext(stream)
    assert workers._memory < free
    rest = [piece async for piece in stream]
    assert workers._memory == free
    workers._memory = 2 * SIZE
    again = await pieces_of(await asked(server, PROTOBUF))
    assert [first, *rest] == again
    assert workers._memory == 2 * SIZE
    left = aiter((await asked(server, PROTOBUF)).body)
    await anext(left)
    await left.aclose()
    assert workers._memory == 2 * SIZE


async def test_a_list_of_no_objects_and_a_short_one_are_whole(server):
    for accept in (YAML, PROTOBUF, TABLE, PARTIAL):
        for query in ("labelSelector=n=none", "labelSelector=n=1"):
            assert isinstance((await asked(server, accept, query)).body, bytes)


async def test_an_object_whose_yaml_is_too_long_is_refused():
    """Each level of nesting indents all lines below it."""
    definition = {
        "metadata": {"name": "deeps.work.io"},
        "spec": {
            "group": "work.io",
            "scope": "Cluster",
            "names": {"plural": "deeps", "kind": "Deep"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    },
                }
            ],
        },
    }
    deep: Any = [0] * (TEXT_MAX // 200)
    for _ in range(100):
        deep = {"a": deep}
    async with ApiServer() as server:
        raw = Raw(server.handler)
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert (await raw.post(crds, definition)).code == 201
        made = await raw.post(
            "/apis/work.io/v1/deeps",
            {"apiVersion": "work.io/v1", "kind": "Deep", "metadata": {"name": "x"}, "spec": deep},
        )
        assert made.code == 201, made.body
        refused = await raw.get("/apis/work.io/v1/deeps/x", accept=YAML)
        assert refused.code == 406
        assert b"request JSON" in refused.text
        assert (await raw.get("/apis/work.io/v1/deeps/x")).code == 200
