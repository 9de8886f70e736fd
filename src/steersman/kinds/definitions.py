"""The OpenAPI schemas of the built-in kinds, as data.

Guarantees
- A schema is what kube-apiserver publishes, without descriptions (those are in the modules): types, required fields,
  defaults, list types with their map keys, map types, patch strategies and patch merge keys.
- A file is read once, on the first use of a schema of its group-version. Returned schemas are shared: do not change
  them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec

from steersman.kinds import index
from steersman.kinds.registry import module_of
from steersman.objects import GroupVersion, GroupVersionKind

_PACKAGE_OF = {module: package for package, module in reversed(index.PACKAGES.items())}


class _Document(msgspec.Struct):
    resources: list[dict[str, Any]]
    #: Decoded on demand: most are never used, and a server reads all documents when it starts.
    definitions: dict[str, msgspec.Raw]


@cache
def _document(module: str) -> _Document:
    raw = (Path(__file__).parent / "data" / f"{module}.json").read_bytes()
    return msgspec.json.decode(raw, type=_Document)


@cache
def definition(name: str) -> dict[str, Any]:
    """A definition by its full name, such as ``io.k8s.api.core.v1.Container``; LookupError if it does not exist."""
    module = index.PACKAGES.get(name.rpartition(".")[0])
    found = _document(module).definitions.get(name) if module else None
    if found is None:
        raise LookupError(f"Kubernetes {index.KUBERNETES} has no definition {name} in its stable group-versions")
    return msgspec.json.decode(found)


def schema_of(kind: GroupVersionKind) -> dict[str, Any]:
    """The schema of a built-in kind; LookupError for any other. Its parts may be references: see `resolve`."""
    package = _PACKAGE_OF[module_of(kind.group_version)]
    try:
        return definition(f"{package}.{kind.kind}")
    except LookupError:
        raise LookupError(f"{kind.api_version} of Kubernetes {index.KUBERNETES} has no kind {kind.kind}") from None


def resolve(node: dict[str, Any]) -> dict[str, Any]:
    """Follow the reference of a schema node, if it has one; fields beside the reference win."""
    reference = node.get("$ref")
    parts = cast("list[dict[str, Any]]", node.get("allOf") or [])
    if reference is None and len(parts) == 1:
        reference = parts[0].get("$ref")
    if not isinstance(reference, str):
        return node
    beside = {name: value for name, value in node.items() if name not in {"$ref", "allOf"}}
    return definition(reference.rpartition("/")[2]) | beside


def resources_of(group_version: GroupVersion) -> list[dict[str, Any]]:
    """The resources of a group-version, including subresources, as kube-apiserver's discovery lists them."""
    return _document(module_of(group_version)).resources
