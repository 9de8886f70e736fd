"""Random strategic merge patches: the engine makes of an object what we make of it, and refuses what we refuse."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, Callable
from random import Random  # noqa: TID251 - seeded by the test, which says with what
from typing import Any

import aiohttp
import pytest

from steersman.kinds import definitions
from steersman.objects import GroupVersionKind
from steersman.patches import StrategicMergeError, apply_strategic_merge
from steersman.testing import Engine

Tree = dict[str, Any]
PATCHES = 100
STRATEGIC = "application/strategic-merge-patch+json"

CONTAINERS = [
    {
        "name": name,
        "image": "i",
        "ports": [{"containerPort": 80}, {"containerPort": 81, "name": "p"}],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}],
        "args": ["x", "y"],
        "volumeMounts": [{"name": "v1", "mountPath": "/a"}],
    }
    for name in ("c1", "c2", "c3")
]
POD_SPEC: Tree = {
    "containers": CONTAINERS,
    "volumes": [{"name": "v1", "emptyDir": {}}, {"name": "v2", "configMap": {"name": "z"}}],
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "nodeSelector": {"q": "r"},
    "imagePullSecrets": [{"name": "s1"}, {"name": "s2"}],
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["h"]}],
}
METADATA: Tree = {
    "name": "patched",
    "labels": {"a": "1", "b": "2"},
    "annotations": {"x": "y"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid} for uid in ("u1", "u2")],
}
OBJECTS: dict[str, tuple[str, GroupVersionKind, Tree]] = {
    "pods": ("/api/v1", GroupVersionKind("", "v1", "Pod"), {"spec": POD_SPEC}),
    "deployments": (
        "/apis/apps/v1",
        GroupVersionKind("apps", "v1", "Deployment"),
        {
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "w"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "10%"}},
                "template": {"metadata": {"labels": {"app": "w"}}, "spec": POD_SPEC},
            }
        },
    ),
    "services": (
        "/api/v1",
        GroupVersionKind("", "v1", "Service"),
        {
            "spec": {
                "selector": {"a": "b"},
                "ports": [{"name": name, "port": port} for name, port in (("a", 80), ("b", 81), ("c", 82))],
            }
        },
    ),
}
#: One of these at most is wrong with a patch: of several the engine tells a random one.
WRONG: list[Tree] = [
    {"metadata": {"$patch": "zap"}},
    {"metadata": {"labels": {"$patch": 3}}},
    {"metadata": {"$retainKeys": "x"}},
    {"metadata": {"$retainKeys": ["labels"], "annotations": {}}},
    {"metadata": {"$setElementOrder/foo": []}},
    {"metadata": {"$setElementOrder": []}},
    {"metadata": {"$setElementOrder/ownerReferences": "x"}},
    {"metadata": {"$setElementOrder/ownerReferences": [{"foo": 1}], "ownerReferences": [{"uid": "u1"}]}},
    {"metadata": {"$deleteFromPrimitiveList": ["x"]}},
    {"metadata": {"ownerReferences": [{"foo": "x", "n": [1.5, True, None]}]}},
    {"metadata": {"ownerReferences": [{"uid": "u1", "$patch": "merge"}]}},
    {"metadata": {"ownerReferences": [{"uid": "u1", "$patch": "zap"}]}},
    {"metadata": {"ownerReferences": [{"$patch": "delete"}]}},
    {"metadata": {"ownerReferences": ["x", 1]}},
]


class Patches:
    """Random patches from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._orders = 0

    def one(self, resource: str) -> Tree:
        self._orders = 1
        if self._random.random() < 0.15:
            return self._random.choice(WRONG)
        patch: Tree = {"metadata": self._metadata()} if self._is(0.5) else {}
        patch["spec"] = {
            "pods": self._pod_spec,
            "deployments": self._deployment_spec,
            "services": self._service_spec,
        }[resource]()
        return patch

    def _is(self, chance: float) -> bool:
        return self._random.random() < chance

    def _list(self, patch: Tree, field: str, key: str, values: list[Any], inner: Callable[[], Tree]) -> None:
        """Items that change, go or come, and at times the order of all."""
        choose = self._random
        items: list[Tree] = [
            {key: value, "$patch": "delete"} if self._is(0.3) else {key: value, **inner()}
            for value in choose.sample(values, choose.randint(0, min(3, len(values))))
        ]
        if self._is(0.15):
            items.insert(choose.randint(0, len(items)), {"$patch": "replace"})
        if self._is(0.9):
            patch[field] = items if self._is(0.95) else None
        if self._orders and self._is(0.4):
            self._orders -= 1
            kept = [item[key] for item in patch.get(field) or [] if "$patch" not in item]
            order = [value for value in choose.sample(values, choose.randint(0, len(values))) if value not in kept]
            at = 0
            for value in kept:
                at = choose.randint(at, len(order))
                order.insert(at, value)
                at += 1
            if patch.get(field, []) is not None:
                patch[f"$setElementOrder/{field}"] = [{key: value} for value in order]

    def _metadata(self) -> Tree:
        metadata: Tree = {}
        choose = self._random.choice
        if self._is(0.4):
            replaced = {"$patch": "replace", "z": "1"}
            kept = {"$retainKeys": ["a"], "a": "2"}
            metadata["labels"] = choose([{"a": None, "n": "1"}, replaced, {"$patch": "delete"}, None, kept])
        if self._is(0.3):
            metadata["annotations"] = choose([{"x": None}, {"y": "1", "z": None}])
        if self._is(0.4):
            names = [f"example.com/{letter}" for letter in "abcde"]
            given = self._random.sample(names, self._random.randint(1, 3))
            metadata[choose(["finalizers", "$deleteFromPrimitiveList/finalizers"])] = given
            if self._is(0.3):
                metadata["$setElementOrder/finalizers"] = [*given, *(name for name in names if name not in given)]
        if self._is(0.3):
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "on"}
            self._list(metadata, "ownerReferences", "uid", ["u1", "u2", "u3"], lambda: owner)
        return metadata

    def _container(self) -> Tree:
        container: Tree = {}
        choose = self._random.choice
        if self._is(0.6):
            container["image"] = choose(["j", "k", None])
        if self._is(0.4):
            self._list(container, "env", "name", list("ABCDE"), lambda: {"value": choose(["1", "9", None, ""])})
        if self._is(0.3):
            ports = [{}, {"protocol": "UDP"}, {"name": None}]
            self._list(container, "ports", "containerPort", [80, 81, 82], lambda: choose(ports))
        if self._is(0.2):
            container["args"] = choose([["z"], [], None])
        if self._is(0.2):
            replaced = {"$patch": "replace", "requests": {"cpu": "1"}}
            container["resources"] = choose([{"limits": {"cpu": "1"}}, replaced, {"$patch": "delete"}, None])
        if self._is(0.1):
            container["livenessProbe"] = {"httpGet": {"port": 1, "path": None}, "$retainKeys": ["httpGet"]}
        return container

    def _volume(self) -> Tree:
        sources: Tree = {"emptyDir": {}, "configMap": {"name": "n"}, "hostPath": {"path": "/h"}}
        name = self._random.choice(list(sources))
        if self._is(0.6):
            return {name: sources[name], "$retainKeys": ["name", name]}
        return {name: sources[name], **{other: None for other in sources if other != name}}

    def _pod_spec(self) -> Tree:
        spec: Tree = {}
        choose = self._random.choice
        if self._is(0.7):
            self._list(spec, "containers", "name", ["c1", "c2", "c3", "c4", "c5"], self._container)
        if self._is(0.4):
            self._list(spec, "volumes", "name", ["v1", "v2", "v3"], self._volume)
        if self._is(0.3):
            spec["tolerations"] = choose([[{"key": "z", "operator": "Exists", "value": None}], [], None])
        if self._is(0.2):
            spec["nodeSelector"] = choose([{"q": None}, {"w": "1"}, {"$patch": "replace", "e": "1"}])
        if self._is(0.3):
            self._list(spec, "imagePullSecrets", "name", ["s1", "s2", "s3"], dict)
        if self._is(0.2):
            self._list(spec, "hostAliases", "ip", ["10.0.0.1", "10.0.0.2"], lambda: {"hostnames": ["g"]})
        return spec

    def _deployment_spec(self) -> Tree:
        spec: Tree = {"template": {"spec": self._pod_spec()}} if self._is(0.8) else {}
        if self._is(0.3):
            recreate = {"type": "Recreate"}
            retained, removed = {"$retainKeys": ["type"], **recreate}, {"rollingUpdate": None, **recreate}
            spec["strategy"] = self._random.choice([retained, removed, {"rollingUpdate": {"maxSurge": 3}}])
        if self._is(0.3):
            spec["replicas"] = self._random.choice([1, 5, None])
        return spec

    def _service_spec(self) -> Tree:
        spec: Tree = {}
        self._list(spec, "ports", "port", [80, 81, 82, 83], lambda: {"name": self._random.choice("abcdef")})
        if self._is(0.3):
            spec["selector"] = self._random.choice([{"a": None, "c": "d"}, {"$patch": "replace", "e": "f"}, None])
        return spec


@pytest.fixture
async def session(engine: Engine) -> AsyncGenerator[aiohttp.ClientSession]:
    context = ssl.create_default_context(cafile=str(engine.ca_file))
    headers = {"Authorization": f"Bearer {engine.admin_token}"}
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(engine.url, headers=headers, connector=connector) as session:
        yield session


async def ask(
    session: aiohttp.ClientSession, method: str, path: str, body: Any, kind: str = "application/json"
) -> tuple[int, Tree]:
    async with session.request(method, path, data=json.dumps(body), headers={"Content-Type": kind}) as answer:
        return answer.status, await answer.json()


def outcome(status: int, answer: Tree) -> Any:
    """What an answer says of the object, without what counts and names writes."""
    if status != 200:
        # What is wrong is listed in no order.
        causes = (answer.get("details") or {}).get("causes") or []
        return status, sorted(cause["field"] for cause in causes)
    for name in ("managedFields", "resourceVersion", "generation"):
        answer["metadata"].pop(name, None)
    return {name: value for name, value in answer.items() if name != "status"}


def merged(live: Tree, patch: Tree, schema: Tree) -> Tree | tuple[int, str]:
    """What we make of a patch: an object, or a code and a message."""
    try:
        return apply_strategic_merge(live, patch, schema)
    except StrategicMergeError as error:
        return error.code, str(error)


@pytest.mark.parametrize("resource", OBJECTS)
async def test_the_engine_merges_as_we_do(session: aiohttp.ClientSession, namespace: str, resource: str):
    """What we make of a patch is sent as an update: the engine answers both alike."""
    root, kind, body = OBJECTS[resource]
    collection = f"{root}/namespaces/{namespace}/{resource}"
    status, live = await ask(session, "POST", collection, {"metadata": METADATA, **body})
    assert status == 201, live
    path = f"{collection}/patched?dryRun=All&fieldValidation=Ignore"
    patches, schema = Patches(len(resource)), definitions.schema_of(kind)
    made = refused = 0
    for _ in range(PATCHES):
        patch = patches.one(resource)
        status, answer = await ask(session, "PATCH", path, patch, STRATEGIC)
        ours = merged(live, patch, schema)
        if isinstance(ours, tuple):
            refused += 1
            assert (status, answer.get("message")) == ours, patch
            continue
        made += status == 200
        assert outcome(status, answer) == outcome(*await ask(session, "PUT", path, ours)), patch
    assert made > PATCHES // 10
    assert refused
