"""Resolves the names that people use for resources, as kubectl does.

Guarantees
- A category stands for all its resources. A plural wins over short names, and those win over singulars and kinds.
- Kinds are found in any group, also where a definition's singular differs from its kind, which kubectl refuses.
- Of several resources with one name, the core group wins, then the first group in the server's order, and in a group
  its preferred version. A group and version that could not be read comes last.
- The order needs no request: everything is computed from one `DiscoveryResult`.
"""

from __future__ import annotations

from steersman.objects import GroupVersion, similar_names
from steersman.wire.discovery import ApiResource, DiscoveryResult

_CORE = ("", "v1")
#: How many names an error suggests, and how similar they are: a server has hundreds.
_NEAR_MAX, _CUTOFF = 3, 0.7


def find_resources(served: DiscoveryResult, name: str) -> list[ApiResource]:
    """The resources of a name, such as ``deploy``, ``Deployment``, ``deployments.v1.apps`` or the category ``all``."""
    if members := [resource for resource in preferred_resources(served) if name in resource.categories]:
        return members
    ordered = _ordered(served)
    word, _, group = name.partition(".")
    version, dot, rest = group.partition(".")
    one = (_named(ordered, word, rest, version) if dot else None) or _named(ordered, word, group)
    one = one or (_of_kind(ordered, word, rest, version) if dot else None) or _of_kind(ordered, word, group)
    return [one] if one is not None else []


def preferred_resources(served: DiscoveryResult, *, namespaced: bool | None = None) -> list[ApiResource]:
    """Each resource in one version: the preferred one of its group, or the first that has the resource."""
    chosen: dict[tuple[str, str], ApiResource] = {}
    for resource in served.resources:
        if resource.kind and namespaced in {None, resource.namespaced}:
            preferred = resource.version == served.preferred_versions.get(resource.group)
            key = (resource.group, resource.resource)
            if preferred or key not in chosen:
                chosen[key] = resource
    return list(chosen.values())


def near_names(served: DiscoveryResult, name: str) -> list[str]:
    """The served names that are most similar to a name, best first."""
    names = (
        word
        for resource in _ordered(served)
        for word in (resource.resource, resource.kind, *resource.short_names, *resource.categories)
        if word
    )
    return similar_names(name.partition(".")[0], names, most=_NEAR_MAX, cutoff=_CUTOFF)


def near_kinds(served: DiscoveryResult, kind: str) -> list[str]:
    """The served kinds that are most similar to a kind, with their groups and versions, best first."""
    kinds = {resource.kind: resource.gvk for resource in reversed(preferred_resources(served))}
    return [
        f"{name} ({kinds[name].api_version})" for name in similar_names(kind, kinds, most=_NEAR_MAX, cutoff=_CUTOFF)
    ]


def _ordered(served: DiscoveryResult) -> list[ApiResource]:
    """The resources, preferred ones first; resources of one version keep the server's order."""

    def rank(resource: ApiResource) -> tuple[bool, bool]:
        version = (resource.group, resource.version)
        return GroupVersion(*version) in served.failures, version != _CORE

    return sorted((resource for resource in served.resources if resource.kind), key=rank)


def _named(ordered: list[ApiResource], word: str, group: str, version: str = "") -> ApiResource | None:
    """The resource with this plural, short name or singular; without a version, the group may be abbreviated."""
    plural, group = _expanded(ordered, word, group)
    for resource in ordered:
        if plural.lower() in {resource.resource, resource.singular or resource.kind.lower()} and _is_in(
            resource, group, version
        ):
            return resource
    return None


def _expanded(ordered: list[ApiResource], word: str, group: str) -> tuple[str, str]:
    """The plural and the group of a short name; another word unchanged."""
    if any(word == resource.resource and group in {"", resource.group} for resource in ordered):
        return word, group
    short = [resource for resource in ordered if word in resource.short_names]
    exact = (resource for resource in short if group in {"", resource.group})
    begun = (resource for resource in short if group and resource.group.startswith(group))
    match = next(exact, None) or next(begun, None)
    return (match.resource, match.group) if match is not None else (word, group)


def _of_kind(ordered: list[ApiResource], word: str, group: str, version: str = "") -> ApiResource | None:
    """The resource whose objects have this kind: a definition may choose a singular unlike its kind."""
    exact = (resource for resource in ordered if word == resource.kind and _is_in(resource, group, version))
    alike = (
        resource for resource in ordered if word.lower() == resource.kind.lower() and _is_in(resource, group, version)
    )
    return next(exact, None) or next(alike, None)


def _is_in(resource: ApiResource, group: str, version: str) -> bool:
    return (
        resource.version == version and group in {"", resource.group} if version else resource.group.startswith(group)
    )
