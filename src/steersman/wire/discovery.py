"""Discovery: what a server serves, from any of its documents, in one form.

A server publishes it twice: in one aggregated document each for `/api` and `/apis` (Kubernetes 1.27 and later), and in
a small document for each group and version. Both are parsed into `ApiResource`.

Guarantees
- A missing or stale part is a failure of its own group and version; everything readable is kept.
- Versions keep the server's order: the first one of a group is preferred.
- Information that only one of the documents has (the kind of a resource with only subresources) is left empty.
"""

from typing import TypeVar

import msgspec

from steersman.errors import UNREADABLE, ProtocolError
from steersman.objects import GroupVersion, GroupVersionKind, GroupVersionResource, Kind

T = TypeVar("T")


class ApiSubresource(msgspec.Struct, frozen=True, kw_only=True):
    """A subresource such as `status` or `scale`; its kind may belong to another group, as `scale`'s does."""

    name: str
    kind: str
    group: str
    version: str
    verbs: tuple[str, ...] = ()


class ApiResource(msgspec.Struct, frozen=True, kw_only=True):
    """A served resource: its names, scope and verbs."""

    group: str
    version: str
    kind: str
    resource: str
    singular: str = ""
    namespaced: bool = False
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[ApiSubresource, ...] = ()

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind of its objects."""
        return GroupVersionKind(self.group, self.version, self.kind)

    @property
    def gvr(self) -> GroupVersionResource:
        """Its name in paths."""
        return GroupVersionResource(self.group, self.version, self.resource)

    def as_kind(self) -> Kind:
        """The kind as an argument of a client's verbs, which then return `Unstructured` objects."""
        return Kind(self.gvk.api_version, self.kind)

    def subresource(self, name: str) -> ApiSubresource | None:
        """The subresource of that name; None if it is not served."""
        return next((found for found in self.subresources if found.name == name), None)


class GroupList(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of a server, best first within each group, before their resources are read."""

    versions: list[GroupVersion]
    preferred_versions: dict[str, str]


class DiscoveryResult(msgspec.Struct, kw_only=True):
    """All resources of a server, as far as they could be read."""

    resources: list[ApiResource] = msgspec.field(default_factory=list[ApiResource])
    #: All groups and versions, best first within each group.
    versions: list[GroupVersion] = msgspec.field(default_factory=list[GroupVersion])
    #: The preferred version of each group; the core group is the empty string.
    preferred_versions: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    #: The groups and versions that could not be read, and why.
    failures: dict[GroupVersion, str] = msgspec.field(default_factory=dict[GroupVersion, str])


# --- documents -------------------------------------------------------------------------------------------------------
# Go prints an empty list without omitempty as null, so every list may be null.

Texts = tuple[str, ...] | None


class _ResponseKind(msgspec.Struct):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Subresource(msgspec.Struct, kw_only=True, rename="camel"):
    subresource: str
    response_kind: _ResponseKind | None = None
    verbs: Texts = ()


class _Resource(msgspec.Struct, kw_only=True, rename="camel"):
    resource: str
    response_kind: _ResponseKind | None = None
    scope: str = ""
    singular_resource: str = ""
    verbs: Texts = ()
    short_names: Texts = ()
    categories: Texts = ()
    subresources: tuple[_Subresource, ...] | None = ()


class _Version(msgspec.Struct, kw_only=True):
    version: str
    resources: tuple[_Resource, ...] | None = ()
    freshness: str = ""


class _GroupName(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct, kw_only=True):
    metadata: _GroupName
    versions: tuple[_Version, ...] | None = ()


class _Aggregated(msgspec.Struct, kw_only=True):
    kind: str
    items: tuple[_Group, ...] | None = ()


class _LegacyResource(msgspec.Struct, kw_only=True, rename="camel"):
    name: str
    singular_name: str = ""
    namespaced: bool = False
    group: str = ""
    version: str = ""
    kind: str = ""
    verbs: Texts = ()
    short_names: Texts = ()
    categories: Texts = ()


class _LegacyResourceList(msgspec.Struct, kw_only=True, rename="camel"):
    kind: str
    group_version: str
    resources: tuple[_LegacyResource, ...] | None = ()


class _GroupVersion(msgspec.Struct):
    version: str


class _LegacyGroup(msgspec.Struct, kw_only=True, rename="camel"):
    name: str
    versions: tuple[_GroupVersion, ...] | None
    preferred_version: _GroupVersion | None = None


class _LegacyGroupList(msgspec.Struct, kw_only=True, rename="camel"):
    kind: str
    groups: tuple[_LegacyGroup, ...] | None


class _ApiVersions(msgspec.Struct, kw_only=True, rename="camel"):
    kind: str
    versions: Texts


_aggregated_decoder = msgspec.json.Decoder(_Aggregated)
_resource_list_decoder = msgspec.json.Decoder(_LegacyResourceList)
_group_list_decoder = msgspec.json.Decoder(_LegacyGroupList)
_api_versions_decoder = msgspec.json.Decoder(_ApiVersions)


def _decode(decoder: "msgspec.json.Decoder[T]", body: bytes, what: str) -> T:
    try:
        return decoder.decode(body)
    except UNREADABLE as error:
        raise ProtocolError(f"the server's response of {len(body)} bytes is not a valid {what}: {error}") from None


def _expect(kind: str, expected: str) -> None:
    if kind != expected:
        raise ProtocolError(f"the server sent a document of kind {kind[:60]!r} instead of {expected}")


# --- the aggregated document -----------------------------------------------------------------------------------------


def parse_aggregated_discovery(*bodies: bytes) -> DiscoveryResult:
    """Parse the aggregated responses of `/api` and `/apis`; raises ProtocolError if one is not aggregated."""
    result = DiscoveryResult()
    for body in bodies:
        document = _decode(_aggregated_decoder, body, "aggregated discovery document")
        _expect(document.kind, "APIGroupDiscoveryList")
        for group in document.items or ():
            name = group.metadata.name
            for version in group.versions or ():
                result.versions.append(GroupVersion(name, version.version))
                result.preferred_versions.setdefault(name, version.version)
                if version.freshness == "Stale":
                    result.failures[GroupVersion(name, version.version)] = (
                        "the server behind it did not respond; its resources may be out of date"
                    )
                result.resources += [_from_aggregated(name, version.version, read) for read in version.resources or ()]
    return result


def _from_aggregated(group: str, version: str, read: _Resource) -> ApiResource:
    return ApiResource(
        group=group,
        version=version,
        kind=read.response_kind.kind if read.response_kind is not None else "",
        resource=read.resource,
        singular=read.singular_resource,
        namespaced=read.scope == "Namespaced",
        verbs=read.verbs or (),
        short_names=read.short_names or (),
        categories=read.categories or (),
        subresources=tuple(
            _subresource(group, version, sub.subresource, sub.response_kind or _ResponseKind(), sub.verbs)
            for sub in read.subresources or ()
        ),
    )


def _subresource(group: str, version: str, name: str, kind: _ResponseKind, verbs: Texts) -> ApiSubresource:
    # an empty version means the group and version of the resource; the core group is empty with a version
    own = not kind.version
    return ApiSubresource(
        name=name,
        kind=kind.kind,
        group=group if own else kind.group,
        version=version if own else kind.version,
        verbs=verbs or (),
    )


# --- one document per group and version -----------------------------------------------------------------------------


def parse_group_list(api: bytes, apis: bytes) -> GroupList:
    """Parse the plain responses of `/api` and `/apis`: the available versions."""
    core = _decode(_api_versions_decoder, api, "list of API versions")
    _expect(core.kind, "APIVersions")
    listed = _decode(_group_list_decoder, apis, "list of API groups")
    _expect(listed.kind, "APIGroupList")
    versions = [GroupVersion("", version) for version in core.versions or ()]
    preferred = {"": versions[0].version} if versions else {}
    for group in listed.groups or ():
        names = [entry.version for entry in group.versions or ()]
        best = group.preferred_version.version if group.preferred_version is not None else ""
        # the preferred version comes first; the others keep their order
        names.sort(key=lambda name, best=best: name != best)
        versions += [GroupVersion(group.name, name) for name in names]
        if names:
            preferred[group.name] = names[0]
    return GroupList(versions=versions, preferred_versions=preferred)


def parse_resource_list(body: bytes) -> list[ApiResource]:
    """Parse the resources of one group and version."""
    document = _decode(_resource_list_decoder, body, "list of API resources")
    _expect(document.kind, "APIResourceList")
    try:
        served = GroupVersion.parse(document.group_version)
    except ValueError as error:
        raise ProtocolError(f"cannot read the server's list of API resources: {error}") from None
    parents: dict[str, _LegacyResource] = {}
    subresources: dict[str, list[ApiSubresource]] = {}
    for entry in document.resources or ():
        name, slash, sub = entry.name.partition("/")
        if not slash:
            parents[name] = entry
            continue
        # a subresource may be listed alone: its parent is served by another group, or not at all
        parents.setdefault(name, _LegacyResource(name=name, namespaced=entry.namespaced))
        kind = _ResponseKind(entry.group, entry.version, entry.kind)
        subresources.setdefault(name, []).append(_subresource(served.group, served.version, sub, kind, entry.verbs))
    return [
        ApiResource(
            group=served.group,
            version=served.version,
            kind=entry.kind,
            resource=name,
            singular=entry.singular_name,
            namespaced=entry.namespaced,
            verbs=entry.verbs or (),
            short_names=entry.short_names or (),
            categories=entry.categories or (),
            subresources=tuple(subresources.get(name, ())),
        )
        for name, entry in parents.items()
    ]
