"""What CustomResourceDefinitions lose: between two versions of one, and between an installed and a new one. Pure.

Guarantees
- The functions read JSON trees, so they judge a definition from a server and one from classes alike.
- A field below ``x-kubernetes-preserve-unknown-fields`` is never lost, whether or not a schema declares it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

Tree = dict[str, Any]

#: Fields of one version that a message names.
_NAMED = 4


def version_differences(definition: Tree) -> list[str]:
    """The fields that one version has and another one lacks or types differently, such as ``v2 spec.backup, not in v1``.

    Without a conversion, a client that reads and replaces an object in the one version removes these fields.
    """
    schemas = {version["name"]: schema_of(version) for version in definition["spec"]["versions"]}
    found: list[str] = []
    for one, other in permutations(schemas, 2):
        lost = [*lost_fields(schemas[one], schemas[other], typed=True)]
        if lost:
            found.append(f"{one} {_listed(lost)}, not in {other}")
    return found


def removed_parts(installed: Tree, wanted: Tree) -> list[str]:
    """What a definition would remove from the installed one: versions, stored versions, their being served, fields.

    Empty if the definition only adds. Each text is a part of a sentence, such as ``version v1``.
    """
    now = {version["name"]: version for version in installed.get("spec", {}).get("versions") or ()}
    then = {each["name"]: each for each in wanted["spec"]["versions"]}
    status: Tree = installed.get("status") or {}
    stored: list[str] = status.get("storedVersions") or []
    found = [
        f"version {name}{', in which objects are stored' if name in stored else ''}"
        for name in dict.fromkeys((*now, *stored))
        if name not in then
    ]
    for name in now.keys() & then.keys():
        if now[name].get("served") and not then[name].get("served"):
            found.append(f"the serving of version {name}")
        if lost := [*lost_fields(schema_of(now[name]), schema_of(then[name]))]:
            found.append(f"{_listed(lost)} of version {name}")
    return sorted(found)


def schema_of(version: Tree) -> Tree:
    """The schema of one version of a definition."""
    schema: Tree = version.get("schema") or {}
    return schema.get("openAPIV3Schema") or {}


def lost_fields(schema: Tree, other: Tree, path: str = "", *, typed: bool = False) -> Iterator[str]:
    """The paths that a schema declares and the other one prunes; with ``typed``, also those with another type."""
    if other.get("x-kubernetes-preserve-unknown-fields"):
        return
    if typed and path and _kind(schema) != _kind(other):
        yield path
        return
    ours: Tree = schema.get("properties") or {}
    theirs: Tree = other.get("properties") or {}
    values: Any = other.get("additionalProperties")
    for name, field in ours.items():
        below = f"{path}.{name}" if path else name
        if name in theirs:
            yield from lost_fields(field, theirs[name], below, typed=typed)
        elif not values:
            yield below
    for keyword, mark in (("items", "[]"), ("additionalProperties", "{}")):
        inner, others = _below(schema, keyword), _below(other, keyword)
        if inner and others:
            yield from lost_fields(inner, others, f"{path}{mark}", typed=typed)
    if schema.get("additionalProperties") and not values and not ours:
        yield f"{path}{{}}"
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        yield f"{path or 'the object'}: undeclared fields"


def _below(schema: Tree, keyword: str) -> Tree:
    """The schema of items or values; empty if there is none, or anything is allowed."""
    found: Any = schema.get(keyword)
    return {} if isinstance(found, bool) else found or {}


def _kind(schema: Tree) -> Any:
    return "int-or-string" if schema.get("x-kubernetes-int-or-string") else schema.get("type")


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED} more fields" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more
