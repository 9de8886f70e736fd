"""Bodies that are allowed, or nearly, and as expensive as their size lets them be."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

from samples import portions

Tree = dict[str, Any]

#: The long form is of full size; the short one shows as well what grows with the square.
SHARE = 1 if portions.ALL else 10
LIMIT = 3 * 1024 * 1024 // SHARE
OBJECT = 1_400_000 // SHARE
NAMESPACE = "/api/v1/namespaces/default"
MAPS, PODS, SERVICES = f"{NAMESPACE}/configmaps", f"{NAMESPACE}/pods", f"{NAMESPACE}/services"
SECRETS, ROLES = f"{NAMESPACE}/secrets", "/apis/rbac.authorization.k8s.io/v1/clusterroles"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
YAML = "application/yaml"


def filled(make: Any, size: int, start: int = 0) -> list[Any]:
    """As many things as fit."""
    things: list[Any] = []
    left, each = size, 0
    while left > 0:
        things.append(make(start + len(things)))
        if len(things) % 16 == 1:  # neighbors have nearly the same length
            each = len(json.dumps(things[-1])) + 2
        left -= each
    return things


def named(**fields: Any) -> Tree:
    return {"metadata": {"name": "heavy"}, **fields}


def pod(**spec: Any) -> Tree:
    return named(spec={"containers": [{"name": "c", "image": "i"}], **spec})


def container(**fields: Any) -> Tree:
    return pod(containers=[{"name": "c", "image": "i", **fields}])


def _trees(size: int) -> dict[str, tuple[str, Tree]]:
    def env(count: int) -> Tree:
        return {"name": f"a{count}", "value": f"$(a{count + 1})"}

    volumes = filled(lambda n: {"name": f"v{n}", "emptyDir": {}}, size // 2)
    mounts = [{"name": f"v{n}", "mountPath": f"/{n}"} for n in range(len(volumes))]
    owners = filled(lambda n: {"apiVersion": "v1", "kind": "Pod", "name": f"p{n}", "uid": str(n)}, size)
    return {
        "keys": (MAPS, named(data=dict.fromkeys(map(str, range(size // 14)), "v"))),
        "labels": (MAPS, {"metadata": {"name": "heavy", "labels": {f"k{n}": "v" for n in range(size // 16)}}}),
        "bad labels": (MAPS, {"metadata": {"name": "heavy", "labels": {f"-{n}": "v" for n in range(size // 16)}}}),
        "annotations": (MAPS, {"metadata": {"name": "heavy", "annotations": {f"k{n}": "" for n in range(size // 14)}}}),
        "finalizers": (MAPS, {"metadata": {"name": "heavy", "finalizers": filled(lambda n: f"a.b/{n}", size)}}),
        "owners": (MAPS, {"metadata": {"name": "heavy", "ownerReferences": owners}}),
        "managed fields": (MAPS, {"metadata": {"name": "heavy", "managedFields": [{"manager": "m"}] * (size // 20)}}),
        "containers": (PODS, pod(containers=filled(lambda n: {"name": f"c{n}", "image": "i"}, size))),
        "containers of one name": (PODS, pod(containers=filled(lambda n: {"name": "c", "image": "i"}, size))),
        "environment": (PODS, container(env=filled(env, size))),
        "environment of one name": (PODS, container(env=filled(lambda n: {"name": "a"}, size))),
        "ports": (PODS, container(ports=filled(lambda n: {"containerPort": n % 60_000 + 1}, size))),
        "arguments": (PODS, container(args=filled(lambda n: "$(a)", size))),
        "volumes": (PODS, pod(volumes=volumes, containers=[{"name": "c", "image": "i", "volumeMounts": mounts}])),
        "tolerations": (PODS, pod(tolerations=filled(lambda n: {"key": f"k{n}", "operator": "Exists"}, size))),
        "host aliases": (PODS, pod(hostAliases=filled(lambda n: {"ip": "10.0.0.1", "hostnames": ["a"]}, size))),
        "service ports": (SERVICES, named(spec={"ports": filled(lambda n: {"name": f"p{n}", "port": n % 60_000 + 1}, size)})),
        "rules": (ROLES, named(rules=filled(lambda n: {"verbs": ["get"], "resources": ["a"], "apiGroups": [""]}, size))),
        "expressions": (
            POLICIES,
            named(spec={"podSelector": {"matchExpressions": filled(lambda n: {"key": f"k{n}", "operator": "Exists"}, size)}}),
        ),
        "columns": (CRDS, named(spec={"versions": [{"name": "v1", "additionalPrinterColumns": [None] * (size // 6)}]})),
        "a big value": (MAPS, named(data={"a": "x" * size})),
        "a secret": (SECRETS, named(data={"a": base64.b64encode(b"x" * (size * 3 // 4)).decode()})),
        "text of a secret": (SECRETS, named(stringData={"a": "ü" * (size // 6)})),
        "unknown fields": (PODS, pod(**{f"x{n}": 1 for n in range(size // 12)})),
        "an image": (PODS, container(image="a/" * (size // 2))),
        "a command of dollars": (PODS, container(command=["$(" * (size // 2)])),
    }  # fmt: skip


@cache
def texts() -> dict[str, tuple[str, str, bytes]]:
    """Bodies of creations: a path, a content type and a text each."""
    found = {
        name: (path, "application/json", json.dumps(tree).encode()) for name, (path, tree) in _trees(OBJECT).items()
    }
    head = '{"metadata":{"name":"heavy"},"data":'
    found |= {
        f"{name}, as YAML": (path, YAML, json.dumps(tree).encode())
        for name, (path, tree) in _trees(OBJECT // 2).items()
        if name in {"keys", "environment", "labels"}
    }
    plain = {
        "brackets": "[" * LIMIT,
        "braces": '{"a":' * (LIMIT // 5),
        "whole brackets": "[" * (LIMIT // 2) + "]" * (LIMIT // 2),
        "empty lists": f"{head}[{'[],' * (LIMIT // 3 - 40)}[]]}}",
        "empty objects": f"{head}[{'{},' * (LIMIT // 3 - 40)}{{}}]}}",
        "one key many times": "{" + '"a":1,' * (LIMIT // 6 - 40) + '"a":1}',
        "one label many times": '{"metadata":{"labels":{' + '"a":"1",' * (LIMIT // 8 - 40) + '"a":"1"}}}',
        "a text without an end": f'{head}{{"a":"{"x" * (LIMIT - 60)}',
        "a mistake at the end": f"{head}[{'1,' * (LIMIT // 2 - 40)}]}}",
        "a mistake after many keys": '{"data":{' + ",".join(f'"k{n}":"v"' for n in range(LIMIT // 15)) + "},}",
        "escapes": head + '{"a":"' + r"\u0041" * (LIMIT // 6 - 20) + '"}}',
        "half pairs": head + '{"a":"' + r"\ud800" * (LIMIT // 6 - 20) + '"}}',
        "a long number": f'{head}{{"a":{"9" * (LIMIT - 60)}}}}}',
        "a long fraction": f'{head}{{"a":0.{"9" * (LIMIT - 60)}}}}}',
        "numbers": f"{head}[{'1e9,' * (LIMIT // 4 - 40)}1]}}",
        "spaces": f"{head}{' ' * (LIMIT - 60)}{{}}}}",
        "zeroes": "\0" * LIMIT,
    }
    found |= {name: (MAPS, "application/json", text.encode()[:LIMIT]) for name, text in plain.items()}
    found["no UTF-8"] = (MAPS, "application/json", f'{head}{{"a":"'.encode() + b"\xff" * (LIMIT - 60) + b'"}}')
    bad = base64.b64encode(b"x" * (LIMIT * 3 // 4 - 90)).decode()[:-2] + "!"
    found["no base64"] = (SECRETS, "application/json", f'{head}{{"a":"{bad}"}}}}'.encode())
    anchors = b"a: &a [" + b"x," * 1000 + b"x]\n" + b"".join(b"b%d: *a\n" % n for n in range(100_000 // SHARE))
    yaml = {
        "items": b"- a\n" * (LIMIT // 4),
        "keys": b"".join(b"k%d: v\n" % n for n in range(200_000 // SHARE)),
        "one key": b"a: b\n" * (LIMIT // 5),
        "flow": b"[" + b"a," * (LIMIT // 2 - 5) + b"a]",
        "brackets": b"[" * LIMIT,
        "dashes": b"- " * (LIMIT // 2),
        "anchors": b"".join(b"- &a%d x\n" % n for n in range(200_000 // SHARE)),
        "aliases": anchors,
        "merges": b"a: &a {x: 1}\nb:\n" + b"".join(b"  - <<: *a\n" for _ in range(200_000 // SHARE)),
        "a comment": b"#" + b"x" * (LIMIT - 5) + b"\na: b\n",
        "documents": b"--- a\n" * (LIMIT // 6),
        "a text": b"a: |\n" + b"  x\n" * (LIMIT // 4 - 10),
        "a quoted text": b'a: "' + b"\\x41" * (LIMIT // 4 - 10) + b'"',
        "spaces": b" " * (LIMIT - 3) + b"a",
        "percents": b"%" * LIMIT,
        "tags": b"!a " * (LIMIT // 3),
    }
    return found | {f"YAML: {name}": (MAPS, YAML, text[:LIMIT]) for name, text in yaml.items()}


def patches() -> dict[str, tuple[str, Tree, str, bytes]]:
    """An object to be, where it is made, and a patch of it: its content type and text."""
    strategic, json_patch = "application/strategic-merge-patch+json", "application/json-patch+json"
    env = filled(lambda n: {"name": f"a{n}"}, OBJECT)
    other = filled(lambda n: {"name": f"b{n}", "value": ""}, OBJECT)
    maps = {"metadata": {"name": "heavy"}, "data": {"a": "x" * 1000}}
    many = named(data={str(n): "" for n in range(60_000 // SHARE)})
    finalizers = filled(lambda n: f"a.b/{n}", OBJECT)
    arguments = container(args=[""] * (100_000 // SHARE))

    def operations(count: int, **operation: Any) -> bytes:
        return json.dumps([operation] * count).encode()

    def of_env(items: list[Any], **more: Any) -> bytes:
        return json.dumps({"spec": {"containers": [{"name": "c", "env": items, **more}]}}).encode()

    doubling = [{"op": "copy", "from": "/data", "path": f"/data/{n}"} for n in range(64)]
    wide = [{"op": "copy", "from": "/data/a", "path": f"/data/b{n}"} for n in range(9_999 // SHARE)]
    deep = "/a" * 190
    order = {"$setElementOrder/env": [{"name": each["name"]} for each in reversed(env)]}
    return {
        "the same environment": (PODS, container(env=env), strategic, of_env(env)),
        "another environment": (PODS, container(env=env), strategic, of_env(other)),
        "another order": (PODS, container(env=env), strategic, of_env([], **order)),
        "deleted one by one": (PODS, container(env=env), strategic, of_env([{"$patch": "delete", **e} for e in env])),
        "finalizers": (MAPS, {"metadata": {"name": "heavy", "finalizers": finalizers}}, strategic,
                       json.dumps({"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers}}).encode()),
        "other finalizers": (MAPS, {"metadata": {"name": "heavy", "finalizers": finalizers}}, strategic,
                             json.dumps({"metadata": {"finalizers": [f"{e}x" for e in finalizers]}}).encode()),
        "copies that double": (MAPS, maps, json_patch, json.dumps(doubling).encode()),
        "copies that add": (MAPS, maps, json_patch, json.dumps(wide).encode()),
        "tests": (MAPS, many, json_patch, operations(10_000 // SHARE, op="test", path="/data/1", value="")),
        "tests of everything": (MAPS, many, json_patch, operations(3, op="test", path="", value=many)),
        "moves to the front": (PODS, arguments, json_patch,
                               operations(10_000 // SHARE, op="move", path="/spec/containers/0/args/0", **{"from": f"/spec/containers/0/args/{100_000 // SHARE - 1}"})),
        "insertions at the front": (PODS, arguments, json_patch,
                                    operations(10_000 // SHARE, op="add", path="/spec/containers/0/args/0", value="")),
        "long pointers": (MAPS, maps, json_patch, operations(5_000 // SHARE, op="test", path=deep, value=None)),
        "pointers of escapes": (MAPS, maps, json_patch, operations(10_000 // SHARE, op="test", path="/data/" + "~1" * 100, value=None)),
        "too many operations": (MAPS, maps, json_patch, operations(50_000 // SHARE, op="test", path="/kind", value="ConfigMap")),
        "a merge of keys": (MAPS, many, "application/merge-patch+json",
                            json.dumps({"data": {f"x{n}": None for n in range(180_000 // SHARE)}}).encode()),
    }  # fmt: skip
