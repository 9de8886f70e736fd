"""The parameters of a policy: objects of its ``paramKind`` that a binding names or selects."""

from __future__ import annotations

from typing import Any

from steersman.apiserver.documents import decode_served, readable
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.storage import Record, Storage
from steersman.apiserver.webhooks.configurations import read_selector
from steersman.objects import GroupVersionKind


class InvalidParams(Exception):
    """The parameters are missing or wrongly configured; the text is kube-apiserver's."""


def param_definition(registry: ResourceRegistry, kind: Tree) -> Definition:
    """The resource of a policy's ``paramKind``. Raises `InvalidParams`."""
    group, _, version = kind["apiVersion"].rpartition("/")
    gvk = GroupVersionKind(group, version, kind["kind"])
    definition = registry.of_kind(gvk)
    if definition is None:
        words = f"{group}/{version}, Kind={gvk.kind}"
        raise InvalidParams(f"failed to find resource referenced by paramKind: '{words}'")
    return definition


async def collected(storage: Storage, definition: Definition, ref: Tree | None, namespace: str) -> list[Any]:
    """The parameters of a binding; a single None if it has no ``paramRef``. Raises `InvalidParams`."""
    if ref is None:
        return [None]
    own: str = ref.get("namespace") or ""
    if own and not definition.namespaced:
        raise InvalidParams("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    where = own or namespace if definition.namespaced else ""
    if definition.namespaced and not where:
        raise InvalidParams("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    records = await readable(definition, await _records(storage, definition, ref, where))
    found = [decode_served(definition, each) for each in records]
    selector = read_selector(ref.get("selector"))
    if selector is not None:
        found = [each for each in found if selector.matches(each["metadata"].get("labels") or {})]
    if not found and ref.get("parameterNotFoundAction") == "Deny":
        raise InvalidParams("no params found for policy binding with `Deny` parameterNotFoundAction")
    return found


async def _records(storage: Storage, definition: Definition, ref: Tree, namespace: str) -> list[Record]:
    if ref.get("name"):
        record, _ = await storage.get(definition.storage_key(namespace, ref["name"]))
        return [] if record is None else [record]
    return (await storage.list(f"{definition.prefix}{namespace}/" if namespace else definition.prefix)).records
