"""What a server serves, by its own word: discovery and OpenAPI."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

Tree = dict[str, Any]
#: Reads a path: the answer's JSON.
Read = Callable[[str], Awaitable[Tree]]


@dataclass(frozen=True)
class Served:
    """One resource."""

    group: str
    version: str
    prefix: str
    name: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    subresources: tuple[str, ...]
    schema: Tree = field(repr=False)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """The path of a collection, an object or a subresource."""
        parts = [self.prefix]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [self.name, *([name] if name else []), *([subresource] if subresource else [])]
        return "/".join(parts)


@dataclass(frozen=True)
class Catalog:
    """All resources, and all paths of the documents."""

    resources: list[Served]
    #: The components of every document, by name.
    schemas: Tree = field(repr=False)
    #: Templates such as ``/api/v1/namespaces/{namespace}/pods/{name}``, with their methods.
    templates: dict[str, list[str]] = field(repr=False)
    #: Paths that are no resource's.
    others: list[str]
    parameters: list[str]


async def read_catalog(read: Read) -> Catalog:  # noqa: C901 - documents nest
    """Ask a server."""
    schemas: Tree = {}
    by_kind: dict[tuple[str, str, str], Tree] = {}
    templates: dict[str, list[str]] = {}
    parameters: set[str] = set()
    index = await read("/openapi/v3")
    for entry in index["paths"].values():
        document = await read(entry["serverRelativeURL"])
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            schemas[name] = schema
            for kind in schema.get("x-kubernetes-group-version-kind", []):
                by_kind[kind["group"], kind["version"], kind["kind"]] = schema
        for path, operations in document["paths"].items():
            templates[path] = [method.upper() for method in operations if method != "parameters"]
            for operation in operations.values():
                for parameter in operation if isinstance(operation, list) else operation.get("parameters", []):
                    if parameter["in"] == "query":
                        parameters.add(parameter["name"])
    prefixes = ["/api/v1"]
    groups = (await read("/apis"))["groups"]
    prefixes += [f"/apis/{version['groupVersion']}" for group in groups for version in group["versions"]]
    resources: list[Served] = []
    for prefix in prefixes:
        listed = (await read(prefix))["resources"]
        group, _, version = prefix.removeprefix("/apis/").removeprefix("/api/").rpartition("/")
        for each in listed:
            if "/" in each["name"]:
                continue
            below = [one["name"].partition("/")[2] for one in listed if one["name"].startswith(each["name"] + "/")]
            resources.append(
                Served(
                    group=group,
                    version=version,
                    prefix=prefix,
                    name=each["name"],
                    kind=each["kind"],
                    namespaced=each["namespaced"],
                    verbs=tuple(each["verbs"]),
                    subresources=tuple(below),
                    schema=by_kind.get((group, version, each["kind"]), {}),
                )
            )
    others = [*(await read("/"))["paths"], *(entry["serverRelativeURL"] for entry in index["paths"].values()), "/"]
    return Catalog(resources, schemas, templates, sorted(set(others)), sorted(parameters))


def reader(handler: Any) -> Read:
    """Reads from a server that is a function."""
    from steersman.wire import HttpRequest, parse_query

    async def read(target: str) -> Tree:
        path, _, query = target.partition("?")
        reply = await handler(HttpRequest("GET", path, parse_query(query)))
        assert reply.status == 200, (target, reply.body)
        return json.loads(reply.body)

    return read
