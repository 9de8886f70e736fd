"""Requests of every sort over all paths of a server, by chance alone: the same seed gives the same requests."""

from __future__ import annotations

import json
from random import Random  # noqa: TID251 - seeded by the test, which says with what
from typing import Any
from urllib.parse import quote

from hostile import bodies, protobuf, strange
from hostile.catalog import Catalog, Served

from steersman.wire import HttpRequest

NAMESPACES = ["default", "default", "default", "hostile", "hostile", "other", "absent", "kube-system"]
METHODS = [
    "GET",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "get",
    "X",
    "PROPFIND",
    "PRI",
]
_PROTOBUF = "application/vnd.kubernetes.protobuf"
#: How many objects are remembered.
_REMEMBERED = 200


class Requests:
    """Makes requests, and learns from answers what there is: ``requests.make()``, ``requests.learn(...)``."""

    def __init__(self, catalog: Catalog, seed: int) -> None:
        self._catalog = catalog
        self._rng = Random(seed)
        self._tokens: list[str] = []
        self._versions: list[str] = []
        #: Objects that there were, by path.
        self._objects: dict[str, dict[str, Any]] = {}
        self._names = sorted({*strange.QUERY, *catalog.parameters})

    def make(self) -> HttpRequest:  # noqa: PLR0911 - one a sort
        """The next request."""
        rng = self._rng
        sort = rng.random()
        if sort < 0.04:
            return self._of_other_path()
        served = rng.choice(self._catalog.resources)
        if sort < 0.10:
            return self._by_template()
        if sort < 0.30:
            return self._read(served)
        if sort < 0.58:
            return self._create(served)
        if sort < 0.80:
            return self._patch(served)
        if sort < 0.92:
            return self._update(served)
        return self._delete(served)

    def learn(self, request: HttpRequest, status: int, body: bytes) -> None:
        """Note what an answer tells about what there is."""
        if status not in {200, 201} or not body.startswith(b"{") or len(body) > 200_000:
            return
        try:
            tree = json.loads(body)
        except ValueError:
            return
        metadata = tree.get("metadata")
        if not isinstance(metadata, dict):
            return
        if metadata.get("continue"):
            self._tokens = [*self._tokens[-20:], metadata["continue"]]
        if metadata.get("resourceVersion"):
            self._versions = [*self._versions[-20:], metadata["resourceVersion"]]
        if metadata.get("name") and request.method in {"POST", "PUT", "PATCH", "GET"}:
            path = request.path if request.method != "POST" else f"{request.path}/{metadata['name']}"
            self._objects[path] = tree
            if len(self._objects) > _REMEMBERED:
                del self._objects[next(iter(self._objects))]

    def forget(self) -> None:
        """Drop the objects that answers told of: after a sweep none of them exists."""
        self._objects = {}

    # sorts of requests

    def _read(self, served: Served) -> HttpRequest:
        rng = self._rng
        path = self._path(served, name=rng.random() < 0.35)
        return HttpRequest("GET", path, self._query("GET"), self._headers())

    def _create(self, served: Served) -> HttpRequest:
        rng = self._rng
        namespace = rng.choice(NAMESPACES)
        subresource = rng.choice(served.subresources) if served.subresources and rng.random() < 0.1 else ""
        name = strange.name(rng)
        path = served.path(namespace, quote(name, safe="") if subresource else "", subresource)
        tree = bodies.good_object(rng, served, self._catalog, namespace, name)
        return self._written("POST", path, tree, served)

    def _update(self, served: Served) -> HttpRequest:
        rng = self._rng
        if self._objects and rng.random() < 0.7:
            path, tree = rng.choice(list(self._objects.items()))
        else:
            namespace, name = rng.choice(NAMESPACES), strange.name(rng)
            path = served.path(namespace, quote(name, safe="") or "a", self._subresource(served))
            tree = bodies.good_object(rng, served, self._catalog, namespace, name)
        return self._written("PUT", path, tree, served)

    def _patch(self, served: Served) -> HttpRequest:
        rng = self._rng
        if self._objects and rng.random() < 0.85:
            path, tree = rng.choice(list(self._objects.items()))
            if rng.random() < 0.15:
                path += rng.choice(["/status", "/scale", "/ephemeralcontainers", "/resize"])
        else:
            path = self._path(served, name=True)
            tree = bodies.good_object(rng, served, self._catalog, "default", "a")
        form, body = bodies.patch(rng, tree)
        return HttpRequest("PATCH", path, self._query("PATCH"), (*self._headers(), ("Content-Type", form)), body)

    def _delete(self, served: Served) -> HttpRequest:
        rng = self._rng
        path = self._path(served, name=rng.random() < 0.9)
        if self._objects and rng.random() < 0.6:
            path = rng.choice(list(self._objects))
        if rng.random() < 0.6:
            return HttpRequest("DELETE", path, self._query("DELETE"), self._headers())
        options = {
            "apiVersion": rng.choice(["v1", "meta.k8s.io/v1", "x"]),
            "kind": "DeleteOptions",
            "gracePeriodSeconds": rng.choice([0, 1, None, *strange.NUMBERS]),
            "propagationPolicy": rng.choice(["Orphan", "Background", "Foreground", "x", None]),
            "preconditions": rng.choice([None, {"uid": "x"}, {"resourceVersion": rng.choice(["1", "x"])}, 1]),
        }
        return self._written("DELETE", path, options, served)

    def _by_template(self) -> HttpRequest:
        """Any method on any path that a document tells of."""
        rng = self._rng
        template = rng.choice(list(self._catalog.templates))
        for part in ("namespace", "name", "path", "logpath"):
            value = rng.choice(NAMESPACES) if part == "namespace" else quote(strange.name(rng), safe="") or "a"
            template = template.replace(f"{{{part}}}", value)
        method = rng.choice(METHODS)
        body = bodies.encoded(rng, strange.value(rng)) if rng.random() < 0.5 else None
        return HttpRequest(method, self._strange_path(template), self._query(method), self._headers(), body)

    def _of_other_path(self) -> HttpRequest:
        rng = self._rng
        path = rng.choice(
            [*self._catalog.others, "/metrics", "/logs/", "/swagger.json", "/openapi/v2", "/.well-known/x"]
        )
        path = self._strange_path(path) if rng.random() < 0.5 else path
        return HttpRequest(rng.choice([*["GET"] * 20, *METHODS]), path, self._query("GET"), self._headers())

    # parts of requests

    def _written(self, method: str, path: str, tree: dict[str, Any], served: Served) -> HttpRequest:
        rng = self._rng
        changed: Any = bodies.mutated(rng, tree) if rng.random() < 0.45 else tree
        if rng.random() < 0.002:
            changed = {**tree, "data": {"a": "x" * rng.choice([1_000_000, 1_600_000, 3_200_000])}}
        content_type = bodies.JSON if rng.random() < 0.92 else rng.choice(strange.CONTENT_TYPES)
        content_type = _PROTOBUF if rng.random() < 0.04 else content_type
        body = bodies.yaml_text(rng, changed) if "yaml" in content_type else bodies.encoded(rng, changed)
        if "protobuf" in content_type and rng.random() < 0.9:
            body = protobuf.body(rng, served, strange.name(rng))
        headers = (*self._headers(), ("Content-Type", content_type)) if rng.random() < 0.97 else self._headers()
        return HttpRequest(method, self._strange_path(path), self._query(method), headers, body)

    def _subresource(self, served: Served) -> str:
        return self._rng.choice(served.subresources) if served.subresources and self._rng.random() < 0.3 else ""

    def _path(self, served: Served, *, name: bool) -> str:
        rng = self._rng
        namespace = rng.choice([*NAMESPACES, ""])
        named = (quote(strange.name(rng), safe="") or "a") if name else ""
        path = served.path(namespace, named, self._subresource(served) if name else "")
        return self._strange_path(path)

    def _strange_path(self, path: str) -> str:
        rng = self._rng
        if rng.random() > 0.08:
            return path
        parts = path.split("/")
        at = rng.randrange(1, len(parts) + 1)
        kind = rng.randrange(6)
        if kind < 2:
            parts.insert(at, rng.choice(strange.STRANGE_SEGMENTS))
        elif kind < 4:
            parts[min(at, len(parts) - 1)] = rng.choice(strange.STRANGE_SEGMENTS)
        elif kind == 4:
            del parts[min(at, len(parts) - 1)]
        else:
            parts[min(3, len(parts)) : min(3, len(parts))] = ["watch"]
        return "/" + "/".join(parts).removeprefix("/")

    def _query(self, method: str) -> tuple[tuple[str, str], ...]:
        rng = self._rng
        if rng.random() < 0.6:
            return ()
        pairs: list[tuple[str, str]] = []
        for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
            if method == "GET":
                usual = ["limit", "continue", "resourceVersion", "labelSelector", "fieldSelector", "watch"]
            else:
                usual = ["dryRun", "fieldManager", "fieldValidation", "gracePeriodSeconds", "propagationPolicy"]
            name = rng.choice(usual) if rng.random() < 0.7 else rng.choice(self._names)
            pairs.append((name, self._value(name)))
        if rng.random() < 0.01:
            pairs += [("x" * 50, "y")] * 500
        return tuple(pairs)

    def _value(self, name: str) -> str:
        rng = self._rng
        if name == "continue" and self._tokens and rng.random() < 0.6:
            token = rng.choice(self._tokens)
            at = rng.randrange(len(token))
            return token if rng.random() < 0.6 else token[:at] + rng.choice("aA0_-=.") + token[at + 1 :]
        if name == "resourceVersion" and self._versions and rng.random() < 0.6:
            return rng.choice(self._versions)
        if name in strange.QUERY and rng.random() < 0.9:
            return rng.choice(strange.QUERY[name])
        return rng.choice(strange.TEXTS)[:8000]

    def _headers(self) -> tuple[tuple[str, str], ...]:
        rng = self._rng
        headers: list[tuple[str, str]] = []
        if rng.random() < 0.12:
            headers.append(("Accept", rng.choice(strange.ACCEPTS)))
        if rng.random() < 0.08:
            headers += rng.sample(strange.HEADERS, rng.choice([1, 1, 2, 4]))
        return tuple(headers)
