"""The paths of an OpenAPI document: the operations of each resource and subresource.

Guarantees
- An operation is listed if and only if its verb is served.
- Everything that kubectl reads is there: the kind of every operation, the ``fieldValidation`` parameter of writes, and
  the patch types of a resource.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from steersman.apiserver.discovery.catalog import subresources_of
from steersman.apiserver.discovery.components import DELETE_OPTIONS, PATCH, STATUS, Components, reference
from steersman.apiserver.registry import Definition, Tree
from steersman.apiserver.registry.subresources import CONNECTIONS
from steersman.objects import GroupVersionKind
from steersman.wire import JSON, group_version_path

_PATCHES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC: Final = "application/strategic-merge-patch+json"


def _parameter(name: str, kind: str, description: str, place: str = "query") -> Tree:
    required = {"required": True} if place == "path" else {}
    schema = {"type": kind, "uniqueItems": True}
    return {"name": name, "in": place, "description": description, **required, "schema": schema}


_DRY_RUN: Final = _parameter("dryRun", "string", "All: do everything except storing the result.")
_MANAGER: Final = _parameter("fieldManager", "string", "Who makes the change; at most 128 printable characters.")
_VALIDATION: Final = _parameter(
    "fieldValidation",
    "string",
    "How to treat unknown and duplicate fields: Ignore, Warn (the default) or Strict, which rejects the request.",
)
_FORCE: Final = _parameter("force", "boolean", "Take over fields that others own; only for an apply patch.")
_WRITING: Final = (_DRY_RUN, _MANAGER, _VALIDATION)
_SELECTING: Final = (
    _parameter("continue", "string", "Continues a list where the last page ended."),
    _parameter("fieldSelector", "string", "Only objects with these fields."),
    _parameter("labelSelector", "string", "Only objects with these labels."),
    _parameter("limit", "integer", "The maximum number of objects on one page."),
    _parameter("resourceVersion", "string", "The revision to read; resourceVersionMatch selects how exactly."),
    _parameter("resourceVersionMatch", "string", "Exact or NotOlderThan."),
    _parameter("sendInitialEvents", "boolean", "Begin a watch with the existing objects and a bookmark."),
    _parameter("timeoutSeconds", "integer", "The time limit of a list or a watch, in seconds."),
)
_LISTING: Final = (
    _parameter("allowWatchBookmarks", "boolean", "Send bookmarks with the current revision during a watch."),
    *_SELECTING,
    _parameter("watch", "boolean", "Watch for changes instead of listing."),
)
_DELETING: Final = (
    _DRY_RUN,
    _parameter("gracePeriodSeconds", "integer", "The grace period of the deletion in seconds; 0 is immediate."),
    _parameter("orphanDependents", "boolean", "The old form of propagationPolicy=Orphan."),
    _parameter("propagationPolicy", "string", "How to treat dependents: Orphan, Background or Foreground."),
)
_PRETTY: Final = _parameter("pretty", "string", "Indent the answer for people.")
_PATH: Final = _parameter("path", "string", "The rest of the path, for the target of the connection.", "path")
_NAMESPACE: Final = _parameter("namespace", "string", "The namespace of the object.", "path")


def paths_of(definition: Definition, components: Components) -> dict[str, Tree]:
    """The paths of a resource and its subresources, with their operations."""
    maker = _Operations(definition, components.add(definition))
    root = group_version_path(definition.gvk.group, definition.gvk.version)
    scope = f"{root}/namespaces/{{namespace}}" if definition.namespaced else root
    collection = f"{scope}/{definition.resource}"
    shared = (_NAMESPACE, _PRETTY) if definition.namespaced else (_PRETTY,)
    named = (_parameter("name", "string", f"The name of the {definition.gvk.kind}.", "path"), *shared)
    paths: dict[str, Tree] = {collection: maker.collection(shared), f"{collection}/{{name}}": maker.item(named)}
    if definition.namespaced and "list" in definition.verbs:
        everywhere = maker.operation("list", "get", "ForAllNamespaces", parameters=_LISTING)
        paths[f"{root}/{definition.resource}"] = {"get": everywhere, "parameters": [_PRETTY]}
    connections = CONNECTIONS.get(definition.gvk, {})
    for sub in subresources_of(definition):
        if sub.name in connections:
            path, operations = f"{collection}/{{name}}/{sub.name}", maker.connection(sub.name, sub.gvk, sub.verbs)
            paths[path] = {**operations, "parameters": list(named)}
            if sub.name == "proxy":
                operations = maker.connection(sub.name, sub.gvk, sub.verbs, "WithPath")
                paths[f"{path}/{{path}}"] = {**operations, "parameters": [*named, _PATH]}
            continue
        answered = maker.kind if sub.gvk == definition.gvk else components.add_kind(sub.gvk, maker.kind)
        operations = maker.subresource(sub.name, sub.gvk, answered, sub.verbs)
        paths[f"{collection}/{{name}}/{sub.name}"] = {**operations, "parameters": list(named)}
    return {path: operations for path, operations in paths.items() if operations.keys() - {"parameters"}}


class _Operations:
    """Makes the operations of one resource."""

    def __init__(self, definition: Definition, kind: str) -> None:
        self.kind = kind
        self._definition = definition
        gvk = definition.gvk
        group = (gvk.group or "core").removesuffix(".k8s.io")
        words = re.split(r"[.-]", group)
        self._tag = f"{words[0]}{''.join(map(str.capitalize, words[1:]))}_{gvk.version}"
        self._group = "".join(map(str.capitalize, words)) + gvk.version.capitalize()

    def collection(self, shared: Iterable[Tree]) -> Tree:
        """Operations on the collection."""
        verbs = self._definition.verbs
        operations: Tree = {}
        if "list" in verbs:
            operations["get"] = self.operation("list", "get", parameters=_LISTING)
        if "create" in verbs:
            operations["post"] = self.operation("create", "post", parameters=_WRITING, body=self.kind)
        if "deletecollection" in verbs:
            both = sorted((*_DELETING, *_SELECTING), key=lambda parameter: parameter["name"])
            operations["delete"] = self.operation("deletecollection", "delete", parameters=both, body=DELETE_OPTIONS)
        return {**operations, "parameters": list(shared)}

    def item(self, shared: Iterable[Tree]) -> Tree:
        """Operations on one object."""
        verbs = self._definition.verbs
        operations: Tree = {}
        if "get" in verbs:
            operations["get"] = self.operation("get", "get")
        if "update" in verbs:
            operations["put"] = self.operation("update", "put", parameters=_WRITING, body=self.kind)
        if "delete" in verbs:
            operations["delete"] = self.operation("delete", "delete", parameters=_DELETING, body=DELETE_OPTIONS)
        if "patch" in verbs:
            operations["patch"] = self.operation("patch", "patch", parameters=(*_WRITING, _FORCE), body=PATCH)
        return {**operations, "parameters": list(shared)}

    def subresource(self, name: str, gvk: GroupVersionKind, kind: str, verbs: Iterable[str]) -> Tree:
        """Operations on a subresource, which may have another kind."""
        suffix = name.capitalize()
        operations: Tree = {}
        for verb in verbs:
            method = {"create": "post", "update": "put"}.get(verb, verb)
            writes = verb in {"create", "update", "patch"}
            parameters = (*_WRITING, _FORCE) if verb == "patch" else _WRITING if writes else ()
            body = PATCH if verb == "patch" else kind if writes else ""
            operations[method] = self.operation(
                verb, method, suffix, parameters=parameters, body=body, answered=kind, gvk=gvk
            )
        return operations

    def connection(self, name: str, gvk: GroupVersionKind, verbs: Iterable[str], suffix: str = "") -> Tree:
        """Operations on a subresource that connects a client with an object."""
        operations: Tree = {}
        for verb in verbs:
            method = {"create": "post", "update": "put"}.get(verb, verb)
            operation = self.operation("connect", method, f"{name.capitalize()}{suffix}", gvk=gvk)
            operation["operationId"] = operation["operationId"].replace("connect", f"connect{method.capitalize()}", 1)
            operation["responses"] = {"200": {"description": "OK", "content": {"*/*": {"schema": {"type": "string"}}}}}
            operations[method] = operation
        return operations

    def operation(
        self,
        verb: str,
        method: str,
        suffix: str = "",
        *,
        parameters: Iterable[Tree] = (),
        body: str = "",
        answered: str = "",
        gvk: GroupVersionKind | None = None,
    ) -> Tree:
        """One operation: its parameters, its answer and its kind."""
        gvk = gvk or self._definition.gvk
        scope = "Namespaced" if self._definition.namespaced and suffix != "ForAllNamespaces" else ""
        answer = answered or {"list": f"{self.kind}List", "delete": STATUS, "deletecollection": STATUS}.get(
            verb, self.kind
        )
        content: Any = {JSON: {"schema": reference(answer)}}
        operation: Tree = {
            "tags": [self._tag],
            "description": f"{verb} {self._definition.gvk.kind}{f' ({suffix})' if suffix else ''}",
            "operationId": f"{verb}{self._group}{scope}{self._definition.gvk.kind}{suffix}",
            "responses": {"200": {"description": "OK", "content": content}},
            "x-kubernetes-action": {"create": "post", "update": "put"}.get(verb, verb),
            "x-kubernetes-group-version-kind": {"group": gvk.group, "version": gvk.version, "kind": gvk.kind},
        }
        # Go clients read and write documents without empty values, so lists and flags at their defaults must be absent.
        listed = list(parameters)
        if listed:
            operation["parameters"] = listed
        if method == "post":
            operation["responses"]["201"] = {"description": "Created", "content": content}
        if body:
            required = {"required": True} if body != DELETE_OPTIONS else {}
            operation["requestBody"] = {"content": self._body(body), **required}
        return operation

    def _body(self, name: str) -> Tree:
        if name != PATCH:
            return {"*/*": {"schema": reference(name)}}
        types = _PATCHES if self._definition.custom else (*_PATCHES, _STRATEGIC)
        return {media_type: {"schema": reference(PATCH)} for media_type in types}
