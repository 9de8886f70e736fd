"""Bodies: objects that may be good, mutated in shape, type, size, depth and encoding; and patches of every form."""

from __future__ import annotations

import gzip
import inspect
import json
from copy import deepcopy
from random import Random  # noqa: TID251 - seeded by the test, which says with what
from typing import Any

from hostile import strange
from hostile.catalog import Catalog, Served

from samples import random_objects

Tree = dict[str, Any]
JSON = "application/json"
JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"

#: Kind -> a function that makes a good object of it.
GOOD = {
    name.title().replace("_", ""): function
    for name, function in inspect.getmembers(random_objects, inspect.isfunction)
    if function.__module__ == random_objects.__name__ and list(inspect.signature(function).parameters) == ["rng"]
} | {"PersistentVolumeClaim": random_objects.claim, "PodDisruptionBudget": random_objects.disruption_budget}


def good_object(rng: Random, served: Served, catalog: Catalog, namespace: str, name: str) -> Tree:
    """An object of a kind that is good, or has at least the right types."""
    make = GOOD.get(served.kind)
    if make is not None and rng.random() < 0.7:
        tree = make(rng)
    else:
        tree = _by_schema(rng, served.schema, catalog, 0)
        tree = tree if isinstance(tree, dict) else {}
    tree |= {"apiVersion": served.api_version, "kind": served.kind}
    metadata: Tree = {"name": name} if rng.random() < 0.9 else {"generateName": f"{name}-"}
    if served.namespaced and rng.random() < 0.5:
        metadata["namespace"] = namespace
    if rng.random() < 0.3:
        metadata["labels"] = {rng.choice(["a", "b"]): rng.choice(["b", "c", ""])}
    if rng.random() < 0.05:
        metadata["finalizers"] = [rng.choice(["example.com/x", "kubernetes", "foregroundDeletion", "orphan"])]
    tree["metadata"] = metadata
    return tree


def _by_schema(rng: Random, schema: Tree, catalog: Catalog, depth: int) -> Any:  # noqa: PLR0911 - one a type
    """A value of the right type, as far as a schema says it."""
    schema = _resolved(schema, catalog)
    if rng.random() < 0.03:
        return strange.value(rng)
    if "enum" in schema and rng.random() < 0.8:
        return rng.choice(schema["enum"])
    kind = schema.get("type", "object" if "properties" in schema else "")
    if kind == "object":
        return _object_by_schema(rng, schema, catalog, depth)
    if kind == "array":
        items = schema.get("items", {})
        return [_by_schema(rng, items, catalog, depth + 1) for _ in range(rng.randrange(3) if depth < 8 else 0)]
    if kind in {"integer", "number"}:
        return rng.choice([0, 1, 2, 5, 80, 1000, -1] if rng.random() < 0.8 else strange.NUMBERS)
    if kind == "boolean":
        return rng.random() < 0.5
    formats = {"date-time": "2026-01-01T00:00:00Z", "byte": "MTIz", "int-or-string": 5, "duration": "1s"}
    if schema.get("format") in formats and rng.random() < 0.8:
        return formats[schema["format"]]
    return rng.choice(["a", "b", "example.com/a", "1", "100m"]) if rng.random() < 0.8 else rng.choice(strange.TEXTS)


def _resolved(schema: Tree, catalog: Catalog) -> Tree:
    for _ in range(5):
        reference = schema.get("$ref") or next((each["$ref"] for each in schema.get("allOf", []) if "$ref" in each), "")
        if not reference:
            break
        schema = catalog.schemas.get(reference.rpartition("/")[2], {})
    return schema


def _object_by_schema(rng: Random, schema: Tree, catalog: Catalog, depth: int) -> Tree:
    properties: Tree = schema.get("properties", {})
    if not properties:
        inner = schema.get("additionalProperties", {})
        inner = inner if isinstance(inner, dict) else {}
        return {name: _by_schema(rng, inner, catalog, depth + 1) for name in ("a", "b")[: rng.randrange(3)]}
    required = set(schema.get("required", []))
    chance = max(0.08, 0.5 - depth * 0.12)
    return {
        name: _by_schema(rng, inner, catalog, depth + 1)
        for name, inner in properties.items()
        if depth < 9 and name != "status" and (name in required or rng.random() < chance)
    }


# shapes


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every container of a tree with a key or index in it."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, inner in members:
            found.append((node, key))
            waiting.append(inner)
    return found


def mutated(rng: Random, tree: Tree) -> Any:
    """A tree with something wrong in it, mostly."""
    tree = deepcopy(tree)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        found = places(tree)
        if not found:
            return strange.value(rng)
        node, key = rng.choice(found)
        kind = rng.randrange(10)
        if kind < 4:
            node[key] = strange.value(rng)
        elif kind == 4 and isinstance(node, dict):
            node[rng.choice(strange.STRANGE_NAMES)] = node.pop(key)
        elif kind == 5 and isinstance(node, dict):
            del node[key]
        elif kind == 6:
            node[key] = rng.choice([[node[key]], {"a": node[key]}, [node[key]] * rng.choice([2, 20]), str(node[key])])
        elif kind == 7 and isinstance(node, dict):
            node[rng.choice(["unknown", "status", "metadata", "spec", ""])] = strange.value(rng)
        elif kind == 8:
            other, where = rng.choice(found)
            node[key] = deepcopy(other[where]) if where in other or isinstance(other, list) else None
        elif isinstance(tree, dict) and isinstance(tree.get("metadata"), dict):
            tree["metadata"] |= _strange_metadata(rng)
    return tree


def _strange_metadata(rng: Random) -> Tree:
    name = rng.choice(
        [
            "name",
            "generateName",
            "namespace",
            "selfLink",
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "labels",
            "annotations",
            "ownerReferences",
            "finalizers",
            "managedFields",
        ]
    )
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u", "controller": True}
    shaped: Tree = {
        "labels": {strange.name(rng): rng.choice(strange.TEXTS)},
        "annotations": {strange.name(rng): rng.choice(strange.TEXTS), "a": "x" * rng.choice([1, 300_000])},
        "ownerReferences": [owner | {rng.choice(list(owner)): strange.value(rng)} for _ in range(rng.randrange(3))],
        "finalizers": [strange.name(rng) for _ in range(rng.randrange(4))],
        "managedFields": [{"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}}],
    }
    return {name: shaped[name] if name in shaped and rng.random() < 0.6 else strange.value(rng)}


# texts


def encoded(rng: Random, tree: Any) -> bytes:
    """The text of a tree, broken now and then."""
    body = json.dumps(tree, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    if rng.random() < 0.85:
        return body
    at = rng.randrange(len(body) + 1)
    broken: list[Any] = [
        lambda: body[:at],
        lambda: body[:at] + rng.randbytes(rng.randrange(1, 4)) + body[at:],
        lambda: body[:at] + rng.choice([b"\xff", b"\xc0\xae", b"\xed\xa0\x80", b"\x00", b"\xf5\x80\x80\x80"]) + body[at:],
        lambda: b"\xef\xbb\xbf" + body,
        lambda: body.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-32", "utf-16-be"])),
        lambda: body + rng.choice([b"{}", b"\x00", b",", b"\n\n", b"]", b"//x", b"---\n", b" " * 5000]),
        lambda: b"" if rng.random() < 0.5 else b" \n",
        lambda: body.replace(b'"a"', rng.choice([b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0000"', b'"\\x"', b'"\\']), 1),
        lambda: body.replace(b"{", b'{"kind":"x","metadata":{"name":"twice"},"kind":"y",', 1),
        lambda: body.replace(b": ", b": " + rng.choice([b"NaN", b"Infinity", b"1e400", b"-1E999", b"01", b"+1", b".5", b"0x1"]) + b" , ", 1),
        lambda: body.replace(b"0", rng.choice([b"NaN", b"1e400", b"9" * 5000, b"1e-400", b"-0", b"0.1e1", b"1" + b"0" * 400]), 1),
        lambda: body.replace(b"{}", strange.deep(rng).encode(), 1) if b"{}" in body else strange.deep(rng).encode(),
        lambda: strange.deep(rng).encode(),
        lambda: gzip.compress(body),
        lambda: rng.choice([b"null", b"[]", b"1", b'"a"', b"true", b"{}", b"[{}]", b"k8s\x00\x0a\x04", b"\x00" * 50]),
        lambda: rng.randbytes(rng.randrange(200)),
        lambda: body.replace(b" ", b"\n" * 3),
        lambda: json.dumps({"a": [tree] * 3}).encode("utf-8", "surrogatepass"),
    ]  # fmt: skip
    return rng.choice(broken)()


def yaml_text(rng: Random, tree: Any) -> bytes:
    """The same as YAML, or what YAML allows beside."""
    bombs = [
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9)) for i in range(9)),
        b"&a [*a]",
        b"<<: {kind: x}\nkind: y\n",
        b"!!python/object/apply:os.system ['true']",
        b"a: !!binary ////\n? [a, b]\n: c\n",
        b"%YAML 9.9\n---\na: b\n",
        b"--- {}\n--- {}\n",
        b"a: 1_000\nb: 0o17\nc: 1:30\nd: .nan\ne: -.inf\nf: 2026-01-01\ng: ~\n",
        b"[" * 5000,
        b"{" * 5000,
        b"- " * 3000,
        b"a:\n" + b" " * 100_000 + b"b",
        b"\ta: b",
        b"'" + b"x" * 5000,
        b"&" * 3000,
        b"*x",
        b"? " * 2000,
        b"| \n" * 100,
    ]
    return rng.choice(bombs) if rng.random() < 0.4 else encoded(rng, tree)


# patches


def pointer(rng: Random, tree: Any) -> str:
    """A pointer into a tree, or nearly."""
    parts: list[str] = []
    node = tree
    while isinstance(node, dict | list) and node and rng.random() < 0.8:
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        parts.append(str(key).replace("~", "~0").replace("/", "~1"))
        node = node[key]
    if rng.random() < 0.3:
        parts.append(
            rng.choice(["-", "-1", "0", "01", "1", "99999999999999999999", "1e3", "+1", "", "~2", "~", "a", "ü"])
        )
    if rng.random() < 0.03:
        return rng.choice(["", "/", "a", "a/b", "//", "/a" * 5000, "/metadata/annotations/" + "~1" * 3000, "#/a"])
    return "".join(f"/{part}" for part in parts)


def json_patch(rng: Random, tree: Tree) -> Any:
    """A JSON patch that may be good."""
    kind = rng.random()
    if kind < 0.02:
        doubling = [{"op": "copy", "from": "/metadata", "path": f"/metadata/annotations/a{i}"} for i in range(60)]
        return [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 1000}}, *doubling]
    if kind < 0.03:
        grown = [{"op": "copy", "from": "/data", "path": f"/data/a{i}"} for i in range(rng.choice([5, 30, 500]))]
        return [{"op": "add", "path": "/data", "value": {"a": "x" * 1000}}, *grown]
    if kind < 0.035:
        return [{"op": "test", "path": "/kind", "value": tree.get("kind")}] * rng.choice([9_999, 10_000, 10_001])
    if kind < 0.05:
        return strange.value(rng)
    operations: list[Any] = []
    for _ in range(rng.choice([0, 1, 1, 2, 3, 10])):
        operation: Tree = {
            "op": rng.choice(["add", "remove", "replace", "move", "copy", "test", "test"]),
            "path": pointer(rng, tree),
        }
        if rng.random() < 0.8:
            operation["value"] = strange.value(rng)
        if operation["op"] in {"move", "copy"} or rng.random() < 0.1:
            operation["from"] = pointer(rng, tree)
        if rng.random() < 0.05:
            operation[rng.choice(["op", "path", "from", "value", "x"])] = strange.value(rng)
        operations.append(operation)
    return operations


def _directives(rng: Random, tree: Any) -> None:
    """Put what strategic merge patches mean specially into a tree."""
    for _ in range(rng.randrange(3)):
        found = [node for node, _ in places(tree) if isinstance(node, dict)] or [tree]
        node = rng.choice(found)
        field = rng.choice([*list(node), "containers", "ports", "finalizers", "env", "x"])
        directive = rng.choice(
            [
                "$patch",
                "$retainKeys",
                f"$deleteFromPrimitiveList/{field}",
                f"$setElementOrder/{field}",
                "$x",
                "$patch/x",
            ]
        )
        node[directive] = rng.choice(
            [
                "delete",
                "replace",
                "merge",
                "x",
                [],
                ["a"],
                [{"name": "a"}],
                [{}],
                None,
                1,
                {},
                [1, "a", None],
                strange.value(rng),
            ]
        )


def patch(rng: Random, tree: Tree) -> tuple[str, bytes]:
    """A patch of some form: its content type and text."""
    form = rng.choice([JSON_PATCH, JSON_PATCH, MERGE_PATCH, MERGE_PATCH, STRATEGIC, STRATEGIC, APPLY])
    if rng.random() < 0.03:
        form = rng.choice(strange.CONTENT_TYPES)
    if form == JSON_PATCH:
        return form, encoded(rng, json_patch(rng, tree))
    change: Any = mutated(rng, tree) if rng.random() < 0.7 else deepcopy(tree)
    if isinstance(change, dict):
        for name in list(change):
            if rng.random() < 0.3:
                del change[name]
        if form == STRATEGIC:
            _directives(rng, change)
    return form, yaml_text(rng, change) if form == APPLY else encoded(rng, change)
