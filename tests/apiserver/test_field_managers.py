"""Managed fields and applies, where the engine cannot be asked: hostile ones, admission, limits, and who may create."""

import gc
import itertools
import json
import weakref

import pytest

from samples.embedded import Raw
from samples.random_intents import Intents
from samples.site import Site
from steersman.apiserver import ApiServer, Limits
from steersman.apiserver.admission import Attributes
from steersman.apiserver.decoding.yaml_text import read_yaml
from steersman.apiserver.identity import Access, Decision
from steersman.apiserver.verbs.apply import read_plain_json

MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SITES = "/apis/web.test.steersman.dev/v1/namespaces/default/sites"
APPLY = "application/apply-patch+yaml"

LABELS = {"app": "a"}
OBJECTS = {
    MAPS: {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}},
    SITES: {"apiVersion": "web.test.steersman.dev/v1", "kind": "Site", "spec": {"image": "i"}},
    DEPLOYMENTS: {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "m", "image": "i"}]}},
        },
    },
}


def nested(depth):
    tree = {}
    for _ in range(depth):
        tree = {"f:a": tree}
    return tree


ODD = [
    "f:",
    "k:",
    "v:",
    "i:",
    "k:{}",
    "k:[]",
    "k:null",
    'k:{"a":1e400}',
    'k:{"a":{"b":[1]}}',
    "v:NaN",
    "v:1e999",
    "v:nul",
]
ODD += [
    "i:99999999999999999999",
    "i:-1",
    "i:x",
    ".",
    "..",
    "",
    "x",
    "f:\0",
    'k:{"a":1,"a":2}',
    'v:{"a":1}',
    'v:"\\ud800"',
]
FIELDS = {
    "deep": [nested(190)],
    "wide": [{"f:data": {f"f:{number}": {} for number in range(2000)}}],
    "many": [{"f:data": {}}] * 500,
    "odd": [{text: {}} for text in ODD],
    "no-fields": [[], "x", 7, True, None, {"f:data": [1]}, {"f:data": None}, {".": 1}],
}


@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: path.rpartition("/")[2])
@pytest.mark.parametrize("fields", FIELDS)
async def test_no_managed_fields_break_the_server(raw, path, fields):
    """Whatever ownership a client claims, later writes succeed or fail as the sender's mistake."""
    version = OBJECTS[path]["apiVersion"]
    entries = [
        {
            "manager": f"m{index}",
            "operation": "Update",
            "apiVersion": version,
            "fieldsType": "FieldsV1",
            "fieldsV1": each,
        }
        for index, each in enumerate(FIELDS[fields])
    ]
    body = {**OBJECTS[path], "metadata": {"name": "a"}}
    claimed = {"metadata": {"name": "a", "managedFields": entries}}
    answers = [
        await raw.post(path, {**body, **claimed}),
        await raw.post(path, body),
        await raw.patch(f"{path}/a", claimed),
        await raw.patch(f"{path}/a", {"metadata": {"labels": {"x": "y"}}}),
        await raw.patch(f"{path}/a/scale", {"spec": {"replicas": 3}}),
        await raw.patch(f"{path}/a?fieldManager=ada&force=true", body, content_type=APPLY),
    ]
    assert [answer.code for answer in answers if answer.code >= 500] == []
    assert answers[-1].code == 200


async def test_a_request_without_a_manager_is_unknown(raw):
    made = await raw.post(MAPS, {"metadata": {"name": "a"}, "data": {"a": "1"}})
    assert [entry["manager"] for entry in made.body["metadata"]["managedFields"]] == ["unknown"]


async def test_field_managers_are_freed_with_their_server():
    """They refer to the registry, so a table of all registries would keep every server that the process has had."""
    async with ApiServer(kinds=["v1"], resources=[Site]) as server:
        for path in (MAPS, SITES):
            made = await Raw(server.handler).post(path, OBJECTS[path] | {"metadata": {"name": "a"}})
            assert made.body["metadata"]["managedFields"]
    registry = weakref.ref(server.registry)
    del server
    gc.collect()
    assert registry() is None


async def test_admission_cannot_spoil_managed_fields():
    """What a plugin leaves there must be readable; else the server restores it and warns the writer."""

    async def spoil(attributes: Attributes) -> None:
        if attributes.obj is not None and attributes.definition.resource == "configmaps":
            attributes.obj["metadata"]["managedFields"] = [{"operation": "Melt"}]

    async with ApiServer(kinds=["v1"], admission=[spoil]) as server:
        made = await Raw(server.handler).post(MAPS, {"metadata": {"name": "a"}, "data": {"a": "1"}})
    assert [entry["fieldsV1"] for entry in made.body["metadata"]["managedFields"]] == [{"f:data": {".": {}, "f:a": {}}}]
    assert "operation must be `Apply` or `Update`" in made.headers["Warning"]


async def test_managed_fields_are_no_reason_to_refuse_a_large_object():
    """An object that is too large with them is stored without; an apply needs them."""
    data = {f"key-{number}": "" for number in range(60)}
    async with ApiServer(kinds=["v1"], limits=Limits(object=1500)) as server:
        raw = Raw(server.handler)
        made = await raw.post(MAPS, {"metadata": {"name": "a"}, "data": data})
        assert (made.code, "managedFields" in made.body["metadata"]) == (201, False)
        changed = await raw.patch(f"{MAPS}/a", {"data": {"key-0": "x"}})
        assert (changed.code, "managedFields" in changed.body["metadata"]) == (200, False)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": data}
        refused = await raw.patch(f"{MAPS}/b?fieldManager=ada", body, content_type=APPLY)
        assert refused.code == 413


async def test_an_apply_creates_only_for_those_who_may_create():
    async def no_creations(access: Access) -> Decision:
        return Decision(allowed=access.verb != "create", reason="creates are denied")

    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    async with ApiServer(kinds=["v1"], authorizer=no_creations) as server:
        raw = Raw(server.handler)
        refused = await raw.patch(f"{MAPS}/a?fieldManager=ada", body, content_type=APPLY)
        assert (refused.code, (await raw.get(f"{MAPS}/a")).code) == (403, 404)
    assert "cannot create resource" in refused.body["message"]
    assert "creates are denied" in refused.body["message"]


def test_plain_json_is_what_yaml_reads():
    """Most applies are JSON; reading them as such gives what reading them as YAML does."""
    intents = Intents(7)
    for _ in range(50):
        body = json.dumps({"metadata": intents.metadata("a"), **intents.of("Deployment")}).encode()
        assert read_plain_json(body) in (None, read_yaml(body))
    assert read_plain_json(b'{"a": [1, true, null, "x"], "b": {}}') == ({"a": [1, True, None, "x"], "b": {}}, [])


def test_a_script_is_plain_json():
    """The command of a service has line breaks and quotes: YAML would read it far slower."""
    pieces = ["\n", "\r", "\t", '"', "\\", "\\n", "\\u0041", "a", " ", ": ", "#", "'"]
    for first, second, third in itertools.product(pieces, repeat=3):
        body = json.dumps({f"{first}{second}{third}": f"{third}{first}{second}"}).encode()
        assert read_plain_json(body) in (None, read_yaml(body))
    assert read_plain_json(b'{"a": "x\\n\\t\\"y\\" \\\\\\r"}') == ({"a": 'x\n\t"y" \\\r'}, [])


NOT_PLAIN = [b"a: 1", b"[]", b"", b'{"a": }', b'{"a": 1', b'{"a":\t1}', b'{"a": NaN}', b'{"a": 1.0}', b'{"a": 1e3}']
NOT_PLAIN += [
    b'{"a": "\\u00e4"}',
    b'{"a": "\\\\\\/"}',
    '{"a": "ä"}'.encode(),
    b'{"a": 1, "a": 2}',
    b'{"a": 12345678901234567890}',
    b'{"a":' * 5000,
]


@pytest.mark.parametrize("body", NOT_PLAIN, ids=lambda body: repr(body[:20]))
def test_what_is_not_plain_json_is_left_to_yaml(body):
    assert read_plain_json(body) is None


@pytest.mark.parametrize("metadata", [{}, {"metadata": None}, {"metadata": {}}])
@pytest.mark.parametrize("path", OBJECTS)
@pytest.mark.parametrize("live", [False, True])
async def test_an_apply_may_lack_metadata(raw, path, metadata, live):
    """It is a mistake of the client for a new object; an existing one keeps its own."""
    made = await raw.post(path, OBJECTS[path] | {"metadata": {"name": "a"}}) if live else None
    intent = {name: OBJECTS[path][name] for name in ("apiVersion", "kind")} | metadata
    answer = await raw.send("PATCH", f"{path}/a?fieldManager=x", intent, content_type=APPLY)
    if made is not None:
        assert (answer.code, answer.body["metadata"]["uid"]) == (200, made.body["metadata"]["uid"])
    else:
        assert answer.code == 400
        assert answer.body["message"].endswith("name must be provided")
