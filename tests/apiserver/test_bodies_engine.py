"""Bodies on the engine and on ours: the same are refused with the same words, and the rest becomes the same."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest

from steersman.apiserver.decoding import decode_body
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.registry import Definition
from steersman.kinds import definitions
from steersman.objects import GroupVersionKind
from steersman.schemas import admitted
from steersman.testing import Engine

Tree = dict[str, Any]
YAML = "application/yaml"
DIRECTIVES = ("Strict", "Warn", "Ignore")

TEXT = {"type": "string"}
GADGET_SCHEMA: Tree = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "whole": {"type": "integer"},
                "number": {"type": "number"},
                "text": TEXT,
                "items": {"type": "array", "items": {"type": "object", "properties": {"x": TEXT}}},
                "named": {"type": "object", "additionalProperties": {"type": "object", "properties": {"y": TEXT}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "object": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
            },
        }
    },
}


def spec(text: str) -> str:
    return f'{{"metadata":{{"name":"a"}},"spec":{text}}}'


def container(text: str) -> str:
    return spec(f'{{"containers":[{{"name":"a","image":"x",{text}}}]}}')


def metadata(text: str) -> str:
    return f'{{"metadata":{{{text}}}}}'


def config(text: str) -> str:
    return f'{{"metadata":{{"name":"a"}},{text}}}'


BODIES: dict[str, list[str | bytes]] = {
    "deployments": [
        spec(f'{{"replicas":{value}}}') for value in ('"1"', "1.5", "1e3", "1.0", "3000000000", "true", "null", "[]")
    ]
    + [spec('{"template":[]}'), spec('"x"'), spec('{"strategy":{"rollingUpdate":{"maxSurge":true}}}')],
    "pods": [
        *(spec(f'{{"containers":{value}}}') for value in ('"x"', "{}", "[1]", "[null]", '[{"name":1}]', "null")),
        *(container(f'"image":{value}') for value in ("{}", "1", "null", '"y"')),
        *(container(f'"args":{value}') for value in ('"x"', "[1]", "[null]", "[[]]")),
        *(
            container(f'"livenessProbe":{{"httpGet":{{"port":{value}}}}}')
            for value in ("true", "1.5", "{}", "3000000000")
        ),
        *(
            container(f'"resources":{{"limits":{{"memory":{value}}}}}')
            for value in (
                '"x"',
                "true",
                '"1x"',
                '"1ki"',
                '""',
                '"1.2.3"',
                '"-"',
                '"1 "',
                '"1e"',
                '".5"',
                '"5."',
                "1",
                "1.5",
            )
        ),
        container('"resources":{"limits":[]}'),
        container('"imagePullPolicy":1'),
        container('"foo":1,"foo":2,"tty":true,"tty":false'),
        spec('{"containers":[{"name":"a","image":"x"},{"name":"b","image":"y"}],"containers":[{"name":"c"}],"bar":1}'),
        spec('{"containers":[{"name":1,"resources":{"limits":{"cpu":"x"}}}]}'),
        spec('{"nodeSelector":{"a":1}}'),
        spec('{"nodeSelector":[]}'),
        spec('{"volumes":[{"name":"a","emptyDir":"x"}]}'),
        spec('{"volumes":[{"name":"a","emptyDir":{"medium":1}}]}'),
        spec('{"activeDeadlineSeconds":9223372036854775808}'),
        spec('{"tolerations":[{"operator":1}]}'),
        spec('{"securityContext":{"supplementalGroups":["a"],"fsGroupChangePolicy":1}}'),
        spec("1"),
    ],
    "configmaps": [
        *(
            metadata(text)
            for text in ('"name":1', '"labels":{"a":1}', '"finalizers":[1]', '"uid":1', '"generation":"1"')
        ),
        *(
            metadata(f'"name":"a","deletionTimestamp":{value}')
            for value in (
                "1",
                '""',
                '"2020"',
                '"2020-13-01T00:00:00Z"',
                '"2020-02-30T00:00:00Z"',
                '"2020-01-01T25:00:00Z"',
                '"2020-01-01T00:00:00"',
                '"2020-01-01T00:00:00+25:00"',
                '"2020-01-01t00:00:00z"',
                '"2020-01-01T00:00:00Zx"',
                '"\\n\\u0001é\\""',
                '"2020-01-01T00:00:00.5Z"',
            )
        ),
        metadata('"ownerReferences":[{"uid":1}]'),
        '{"metadata":[]}',
        *(
            config(f'"data":{value}')
            for value in ("1", '{"a":1}', '{"a":null}', '{"a":"1","a":"2"}', '{"a":"\\ud800"}')
        ),
        *(
            config(f'"binaryData":{{"a":{value}}}')
            for value in ('"%%"', '"YQ"', '"YQ==x"', '"YR=="', '"Y\\nQ=="', "1", "null", '"YQ=a"')
        ),
        config('"data":{"a":1},"immutable":"x"'),
        config('"data":{"a":":"},"data" :{"b":"\\":"}'),
        config('"Data":{},"foo":1,"bar":{"x":1,"x":2},"f\\"o<\\u0001\\u00e9":1'),
        b'{"metadata":{"name":"a"},"data":{"a":"\xff\xfe\xe2\x82"}}',
        "[]",
        '"x"',
        "null",
        "1",
        "",
        "{",
        '{"a":1}x',
        '{"a":}',
        "{'a':1}",
        '{"a" 1}',
        '{"a":1,}',
        '{"a":tru}',
        '{"a":tru',
        '{"a":-',
        '{"a":1e',
        '{"a":"\\',
        '{"a":"\\u12',
        '{"a":"\x01"}',
        '{"a":"\\x"}',
        '{"a":01}',
        '{"a":1.}',
        '{"a":-}',
        '{"a":1e}',
        '{"a":[1 2]}',
        '{"a":"x',
        '{"a":"\\u12"}',
        "\ufeff{}",
        "[" * 10_001,
        '{"kind":1}',
        '{"apiVersion":{}}',
        '{"KIND":"Foo"}',
        '{"kind":null,"apiVersion":null}',
        '{"kind":"Foo"}',
        '{"kind":"Secret","apiVersion":"v1"}',
        '{"apiVersion":"v2"}',
        '{"apiVersion":"apps/v1","kind":"Deployment"}',
        '{"apiVersion":"apps/v1"}',
        '{"apiVersion":"a/b/c"}',
        '{"kind":"ConfigMap","apiVersion":"v1","apiVersion":"v2"}',
    ],
    "leases": [
        spec(f'{{"renewTime":"{value}"}}')
        for value in ("", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00.5Z", "2020-01-01T00:00:00.123456+01:00")
    ],
    "secrets": [config('"type":1'), config('"data":{"a":null}')],
    "services": [
        spec('{"ports":[{"port":1,"targetPort":{}}]}'),
        spec('{"ports":[{"port":1,"protocol":1}]}'),
        spec('{"type":1,"clusterIP":2}'),
    ],
}
YAML_BODIES = [
    "metadata:\n  name: a\ndata:\n  a: b\n",
    "metadata: {name: a}\nfoo: 1\nbar: 2\ndata:\n  a: b\n  a: c\n  a: d\nfoo: 2\n",
    "metadata: {name: a}\ndata: {a: 1}",
    "metadata: {name: a}\ndata: {a: yes}",
    "metadata: {name: a}\nkind: Y",
    "metadata: {name: a}\ndata: {a: 010}",
    "metadata: {name: a}\ndata: {b: 1:20, c: 2020-01-01, 1.5: x, 1: y, true: z}",
    "metadata: {name: &x a}\ndata: {a: *x, <<: {b: c}}",
    "metadata: {name: a}\n---\nmetadata: {name: b}\n",
    "- a",
    "x",
    "",
    "\t",
    "{",
    "a: b: c",
    "a:\n  - b\n c: d\n",
]


def gadget(text: str, of_metadata: str = '"name":"a"') -> str:
    return f'{{"apiVersion":"GROUP/v1","kind":"Gadget","metadata":{{{of_metadata}}}{text}}}'


GADGETS = [
    gadget(""),
    gadget(
        ',"zoo":1,"bar":{"q":1},"spec":{"z":1,"b":2,"items":[{"w":1,"x":"1"}],"named":{"k":{"v":1}},'
        '"free":{"u":{"d":1,"d":2}},"text":"1","text":"2"}'
    ),
    gadget("", '"name":"a","foo":1,"bar":2,"name":"b"'),
    gadget("", '"name":1'),
    gadget("", '"labels":{"a":1}'),
    gadget("", '"creationTimestamp":"x"'),
    gadget(',"spec":{"whole":1.0,"number":1e3}'),
    gadget(',"spec":null'),
    gadget(',"spec":{"text":"x"},"spec":{"whole":1}'),
    *(
        gadget(f',"spec":{{"object":{{"apiVersion":{version},"kind":"Pod","metadata":{of_metadata}}}}}')
        for version, of_metadata in (('"v1"', '{"name":"x","foo":1}'), ('"v1"', '{"name":1}'), ("1", "{}"))
    ),
    '{"metadata":{"name":"a"}}',
    '{"kind":"Gadget","metadata":{"name":"a"}}',
    '{"apiVersion":"GROUP/v1","metadata":{"name":"a"}}',
    '{"apiVersion":"GROUP/v2","kind":"Gadget","metadata":{"name":"a"}}',
    '{"apiVersion":"GROUP/v1","kind":"Other","metadata":{"name":"a"}}',
    *(f'{{"apiVersion":"GROUP/v1","kind":"Gadget","metadata":{value}}}' for value in ("[]", "null", '"x"')),
    "[]",
    "null",
    "{",
]
FORMS = ["", "application/json; charset=utf-8", "APPLICATION/JSON", "text/plain", "application/json;;", "json", "*/*"]


def built_in(group: str, kind: str, resource: str) -> Definition:
    gvk = GroupVersionKind(group, "v1", kind)
    return Definition(gvk=gvk, resource=resource, schema=lambda: definitions.schema_of(gvk))


DEFINITIONS = {
    "deployments": built_in("apps", "Deployment", "deployments"),
    "pods": built_in("", "Pod", "pods"),
    "configmaps": built_in("", "ConfigMap", "configmaps"),
    "leases": built_in("coordination.k8s.io", "Lease", "leases"),
    "secrets": built_in("", "Secret", "secrets"),
    "services": built_in("", "Service", "services"),
}


class Asking:
    """The engine, asked for trial with what we decode ourselves."""

    def __init__(self, session: aiohttp.ClientSession, namespace: str) -> None:
        self._session = session
        self._namespace = namespace

    async def check(self, definition: Definition, body: bytes, form: str, directive: str) -> None:
        gvk = definition.gvk
        root = f"/apis/{gvk.group}/v1" if gvk.group else "/api/v1"
        path = f"{root}/namespaces/{self._namespace}/{definition.resource}"
        query = {"dryRun": "All", "fieldValidation": directive}
        async with self._session.post(path, params=query, data=body, headers={"Content-Type": form}) as answer:
            status, theirs = answer.status, await answer.json()
            told = [_warning(text) for text in answer.headers.getall("Warning", [])]
        ours = _ours(definition, body, form, directive)
        where = (body[:200], form, directive)
        if isinstance(ours, RequestRejected):
            assert (ours.status.code, ours.status.message) == (status, theirs["message"]), where
            return
        # What was read may still break the rules of its kind.
        assert status in {201, 422}, (where, theirs)
        assert ours[1] == [text for text in told if " field " in text or "already set" in text], where
        if status == 201:
            tree = admitted(GADGET_SCHEMA, ours[0], root=True) if definition.custom else ours[0]
            tree = tree | {"metadata": {"name": tree["metadata"]["name"]}}
            assert _within(tree, theirs), (where, tree, theirs)


def _warning(header: str) -> str:
    """The text of a Warning header."""
    text = re.fullmatch(r'299 - "(.*)"', header, re.DOTALL)
    assert text is not None
    return re.sub(r"\\(.)", r"\1", text[1])


def _ours(definition: Definition, body: bytes, form: str, directive: str) -> Any:
    try:
        return decode_body(body, form, definition, field_validation=directive)
    except RequestRejected as refused:
        return refused


def _within(ours: Any, theirs: Any) -> bool:
    """Whether everything that we read is in the engine's answer, in the same form."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return all(name in theirs and _within(value, theirs[name]) for name, value in ours.items())
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return all(_within(item, other) for item, other in zip(ours, theirs, strict=True))
    return bool(ours == theirs)


@pytest.fixture
async def asking(engine: Engine, namespace: str) -> AsyncGenerator[Asking]:
    context = ssl.create_default_context(cafile=str(engine.ca_file))
    headers = {"Authorization": f"Bearer {engine.admin_token}"}
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(engine.url, headers=headers, connector=connector) as session:
        yield Asking(session, namespace)


@pytest.mark.parametrize("resource", BODIES)
async def test_json_bodies_of_built_in_kinds(asking: Asking, resource: str):
    for body in BODIES[resource]:
        raw = body if isinstance(body, bytes) else body.encode()
        for directive in DIRECTIVES:
            await asking.check(DEFINITIONS[resource], raw, "application/json", directive)


async def test_yaml_bodies(asking: Asking):
    for body in YAML_BODIES:
        for directive in DIRECTIVES:
            await asking.check(DEFINITIONS["configmaps"], body.encode(), YAML, directive)


async def test_forms(asking: Asking):
    for form in FORMS:
        await asking.check(DEFINITIONS["configmaps"], b'{"metadata":{"name":"a"}}', form, "Strict")


async def test_custom_resources(engine: Engine, asking: Asking, crd_group: str):
    await make_gadgets(engine, crd_group)
    definition = Definition(
        gvk=GroupVersionKind(crd_group, "v1", "Gadget"), resource="gadgets", custom=True, schema=lambda: GADGET_SCHEMA
    )
    for body in GADGETS:
        for directive in DIRECTIVES:
            await asking.check(definition, body.replace("GROUP", crd_group).encode(), "application/json", directive)


async def make_gadgets(engine: Engine, group: str) -> None:
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": GADGET_SCHEMA}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    await engine.kubectl("create", "-f", "-", stdin=json.dumps(crd))
    async with asyncio.timeout(30):
        await engine.kubectl("wait", "--for=condition=Established", f"crd/gadgets.{group}", "--timeout=30s")
