"""The engine owns, patches and compares as we do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.patches import (
    STATUS_FIELDS,
    FieldSet,
    JsonPatch,
    JsonPatchError,
    MergeSchema,
    SchemaMismatch,
    applied_set,
    difference,
    format_path,
)
from steersman.testing import Engine, KubectlError

MANAGER = "steersman-test"

CONTAINER = {
    "name": "web",
    "image": "nginx",
    "command": ["serve"],
    "ports": [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP", "name": "other"}],
    "env": [{"name": "A", "value": "1"}],
    "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    "securityContext": {},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "labels": {"app": "web"},
        "annotations": {},
        "finalizers": ["example.com/hold"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "a-b-c"}],
    },
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"rollingUpdate": {"maxSurge": "25%"}},
        "template": {
            "metadata": {"labels": {"app": "web"}, "creationTimestamp": None},
            "spec": {
                "containers": [CONTAINER],
                "volumes": [{"name": "data", "emptyDir": {}}],
                "imagePullSecrets": [{"name": "pull"}],
                "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["a"]}],
                "tolerations": [{"key": "x", "operator": "Exists"}],
            },
        },
    },
}
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "c"},
    "data": {"a.b": "1", "c": ""},
    "binaryData": {},
    "immutable": None,
}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s"},
    "data": {"a": "YQ=="},
    "stringData": {"b": "x"},
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "svc"},
    "spec": {
        "selector": {"app": "web"},
        "externalIPs": ["10.9.8.7"],
        "ports": [
            {"port": 80, "name": "http", "targetPort": "http"},
            {"port": 80, "protocol": "UDP", "name": "quic", "targetPort": 8080},
        ],
    },
}


async def applied(engine: Engine, namespace: str, intent: dict[str, Any], *, manager: str = MANAGER) -> dict[str, Any]:
    """Apply an object and return what the server then holds, in the server's own order of fields."""
    options = ("apply", "-n", namespace, "--server-side", f"--field-manager={manager}", "--validate=ignore")
    await engine.kubectl(*options, "-f", "-", stdin=json.dumps(intent))
    group, _, version = intent["apiVersion"].rpartition("/")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    plural = {
        "Deployment": "deployments",
        "ConfigMap": "configmaps",
        "Secret": "secrets",
        "Service": "services",
        "Sample": "samples",
    }
    name = intent["metadata"]["name"]
    return json.loads(
        await engine.kubectl("get", "--raw", f"{root}/namespaces/{namespace}/{plural[intent['kind']]}/{name}")
    )


def recorded(live: dict[str, Any], manager: str = MANAGER) -> dict[str, Any]:
    return next(
        (entry["fieldsV1"] for entry in live["metadata"].get("managedFields", []) if entry["manager"] == manager), {}
    )


def check_ownership(intent: dict[str, Any], live: dict[str, Any], schema: MergeSchema) -> None:
    ours, theirs = applied_set(intent, schema, ignored=STATUS_FIELDS), FieldSet.parse(recorded(live))
    assert str(ours) == str(theirs)
    assert ours == theirs


@pytest.mark.parametrize("intent", [DEPLOYMENT, CONFIG_MAP, SECRET, SERVICE], ids=lambda intent: intent["kind"])
async def test_built_in_kinds_are_owned_and_compared_as_the_engine_does(
    engine: Engine, namespace: str, intent: dict[str, Any]
) -> None:
    group, _, version = intent["apiVersion"].rpartition("/")
    document = json.loads(
        await engine.kubectl("get", "--raw", f"/openapi/v3/{f'apis/{group}' if group else 'api'}/{version}")
    )
    schema = MergeSchema.from_openapi(document, group=group, version=version, kind=intent["kind"])
    live = await applied(engine, namespace, intent)
    check_ownership(intent, live, schema)
    # The order of members is kept by json, and for built-in kinds by the server.
    assert json.dumps(applied_set(intent, schema).to_json()) == json.dumps(recorded(live))
    assert difference(intent, live, schema) is None, "the engine changed the meaning of a value"


async def test_conflicts_name_the_paths_that_we_name(engine: Engine, namespace: str) -> None:
    await applied(engine, namespace, SERVICE)
    other = {**SERVICE, "spec": {"ports": [{"port": 80, "name": "web"}]}}
    with pytest.raises(KubectlError) as refusal:
        await applied(engine, namespace, other, manager="another")
    fields = FieldSet.parse('{"f:spec":{"f:ports":{"k:{\\"port\\":80,\\"protocol\\":\\"TCP\\"}":{"f:name":{}}}}}')
    (path,) = fields
    assert format_path(path) in str(refusal.value)


ANYTHING: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT = {"type": "string"}
PORT = {
    "type": "object",
    "required": ["port"],
    "properties": {
        "port": {"type": "integer"},
        "protocol": {"type": "string", "default": "TCP"},
        "name": TEXT,
        "nested": {"type": "object", "properties": {"x": {"type": "integer"}}},
    },
}
SPEC: dict[str, Any] = {
    "text": TEXT,
    "plainList": {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}},
    "atomicList": {"type": "array", "x-kubernetes-list-type": "atomic", "items": TEXT},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
    "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
    "ports": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": PORT,
    },
    "map": {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {"x": TEXT, "y": {"type": "object", "additionalProperties": {"type": "integer"}}},
        },
    },
    "atomicMap": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": TEXT},
    "atomicStruct": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": TEXT}},
    "free": ANYTHING,
    "half": {**ANYTHING, "properties": {"known": {"type": "object", "properties": {"x": TEXT}}}},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "amount": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    "template": {**ANYTHING, "x-kubernetes-embedded-resource": True},
    "nullable": {"type": "object", "nullable": True, "properties": {"x": TEXT}},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": SPEC},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
    },
}
FULL = {
    "text": "t",
    "plainList": [{"a": "x"}],
    "atomicList": ["x"],
    "set": ["b", "a", "<&>"],
    "numbers": [30, 4],
    "ports": [{"port": 80, "name": "h", "nested": {"x": 1}}, {"port": 80, "protocol": "UDP", "nested": {}}],
    "map": {"k": {"x": "1", "y": {"z": 1}}, "e": {}},
    "atomicMap": {"a": "b"},
    "atomicStruct": {"x": "y"},
    "free": {"a": {"b": [1, {"c": 2}]}, "d": 1},
    "half": {"known": {"x": "1"}, "other": {"z": {"q": 1}}},
    "any": {"x": {"y": 1}, "l": [1]},
    "amount": "5",
    "template": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "b"}, "finalizers": ["x"]},
        "spec": {"z": [1]},
    },
    "nullable": None,
}
EMPTY = {
    "plainList": [],
    "atomicList": [],
    "set": [],
    "ports": [],
    "map": {},
    "atomicMap": {},
    "atomicStruct": {},
    "free": {},
    "half": {},
    "any": [1, 2],
    "amount": 5,
    "nullable": {},
}
REFUSED: list[dict[str, Any]] = [
    {"unknown": 1},
    {"set": ["a", "a"]},
    {"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]},
    {"set": {"a": 1}},
    {"map": [1]},
]
PATCHES: list[list[dict[str, Any]]] = [
    [{"op": "replace", "path": "/spec/free/missing", "value": 5}],
    [{"op": "test", "path": "/spec/free/missing", "value": None}],
    [{"op": "test", "path": "/spec/free/missing/deeper", "value": None}],
    [{"op": "test", "path": "/spec/free/a", "value": True}],
    [{"op": "remove", "path": "/spec/free/missing"}],
    [{"op": "add", "path": "/spec/free/l/-1", "value": 9}],
    [
        {"op": "add", "path": "/spec/free/l/-", "value": 9},
        {"op": "move", "from": "/spec/free/l/3", "path": "/spec/free/l/0"},
    ],
    [{"op": "remove", "path": "/spec/free/l/-1"}],
    [{"op": "add", "path": "/spec/free/l/7", "value": 9}],
    [{"op": "copy", "from": "/spec/free/missing", "path": "/spec/free/c"}],
    [{"op": "copy", "from": "/spec/free/o", "path": "/spec/free/c~1d~0"}, {"op": "remove", "path": "/spec/free/o/x"}],
    [{"op": "move", "from": "/spec/free/o", "path": "/spec/free/o/y"}],
    [{"op": "add", "path": "/spec/free/a/b", "value": 1}],
]


async def install(engine: Engine, group: str) -> None:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {"status": {}},
    }
    names = {"plural": "samples", "singular": "sample", "kind": "Sample"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"samples.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    await engine.kubectl("create", "-f", "-", stdin=json.dumps(definition))
    await engine.kubectl("wait", "--for=condition=Established", f"crd/samples.{group}", "--timeout=30s")


async def test_custom_resources_are_owned_and_compared_as_the_engine_does(
    engine: Engine, namespace: str, crd_group: str
) -> None:
    await install(engine, crd_group)
    schema = MergeSchema(SCHEMA)
    for name, spec in {"full": FULL, "empty": EMPTY}.items():
        metadata = {"name": name, "labels": {"l": "1"}, "annotations": {"k": "v"}, "finalizers": []}
        intent = {
            "apiVersion": f"{crd_group}/v1",
            "kind": "Sample",
            "metadata": metadata,
            "spec": spec,
            "status": {"ready": True},
        }
        live = await applied(engine, namespace, intent)
        check_ownership(intent, live, schema)
        assert difference({**intent, "status": None}, live, schema) is None
    for spec in REFUSED:
        intent = {"apiVersion": f"{crd_group}/v1", "kind": "Sample", "metadata": {"name": "refused"}, "spec": spec}
        with pytest.raises(SchemaMismatch):
            applied_set(intent, schema)
        with pytest.raises(KubectlError):
            await applied(engine, namespace, intent)


async def test_json_patches_apply_as_the_engine_does(engine: Engine, namespace: str, crd_group: str) -> None:
    await install(engine, crd_group)
    spec = {"free": {"a": 1, "l": [1, 2, 3], "o": {"x": 1}}}
    live = await applied(
        engine, namespace, {"apiVersion": f"{crd_group}/v1", "kind": "Sample", "metadata": {"name": "p"}, "spec": spec}
    )
    for operations in PATCHES:
        patch = ("patch", f"samples.{crd_group}", "p", "-n", namespace, "--type=json", "--dry-run=server", "-o", "json")
        try:
            ours = JsonPatch.parse(operations).apply(live)["spec"]
        except JsonPatchError:
            with pytest.raises(KubectlError):
                await engine.kubectl(*patch, "-p", json.dumps(operations))
        else:
            assert json.loads(await engine.kubectl(*patch, "-p", json.dumps(operations)))["spec"] == ours, operations
