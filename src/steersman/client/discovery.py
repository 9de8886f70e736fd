"""What a server serves: groups, resources, versions, and their schemas.

Guarantees
- Answers are cached until `invalidate`; a missing kind or name is looked up once more before it is reported missing.
- `find` resolves a name as kubectl does.
- One broken API group does not hide the others: `failures` lists the groups that could not be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from urllib.parse import quote

import msgspec

from steersman.client.bindings import Binding, VerbCall, bind_kind
from steersman.client.request_sender import RequestSender
from steersman.client.unserved_kinds import name_not_served
from steersman.errors import UNREADABLE, ApiError, ApiStatus, KindNotServed, NotFound, ProtocolError, StatusError
from steersman.objects import GroupVersion, GroupVersionKind, GroupVersionResource, Kind, Unstructured
from steersman.wire import (
    AGGREGATED_DISCOVERY,
    JSON,
    ApiResource,
    DiscoveryResult,
    HttpRequest,
    ServerVersion,
    find_resources,
    group_version_path,
    near_names,
    parse_aggregated_discovery,
    parse_group_list,
    parse_query,
    parse_resource_list,
    parse_version,
    preferred_resources,
    quote_segment,
)


class Discovery:
    """What the server serves, read on first use."""

    def __init__(self, sender: RequestSender) -> None:
        self._sender = sender
        self._server = sender.server
        self._by_version: dict[GroupVersion, list[ApiResource]] = {}
        self._everything: DiscoveryResult | None = None

    def on_unserved(self, notify: Callable[[GroupVersionKind], None]) -> None:
        """Call a function with each kind that the server turns out not to serve."""
        self._sender.on_unserved(notify)

    def invalidate(self) -> None:
        """Drop everything cached: the next lookup asks the server."""
        self._by_version.clear()
        self._everything = None

    async def resources(self) -> list[ApiResource]:
        """All served resources, in all versions."""
        return (await self._all()).resources

    async def groups(self) -> dict[str, tuple[str, ...]]:
        """The versions of each API group, preferred first; the core group is ``""``."""
        found: dict[str, tuple[str, ...]] = {}
        for version in (await self._all()).versions:
            found[version.group] = (*found.get(version.group, ()), version.version)
        return found

    async def preferred(self) -> dict[str, str]:
        """The preferred version of each API group; the core group is ``""``."""
        return (await self._all()).preferred_versions

    async def failures(self) -> dict[GroupVersion, str]:
        """API groups that are registered but could not be read, and why."""
        return (await self._all()).failures

    async def preferred_resources(self, *, namespaced: bool | None = None) -> list[ApiResource]:
        """Each resource in one version, the preferred one if it has the resource; of one scope, or of both."""
        return preferred_resources(await self._all(), namespaced=namespaced)

    async def find(self, name: str) -> list[ApiResource]:
        """The resources that kubectl means by a name: one, or all of a category.

        A name is a plural, a singular, a kind or a short name, alone or with its group (``ingresses.networking.k8s.io``)
        or with version and group (``deployments.v1.apps``). `KindNotServed` names similar ones and says what to do.
        """
        if not (found := find_resources(await self._all(), name)):
            self.invalidate()
            found = find_resources(await self._all(), name)
        if found:
            return found
        served = await self._all()
        raise name_not_served(name, self._server, near_names(served, name), served.failures)

    async def resource_of(self, kind: GroupVersionKind) -> ApiResource:
        """The resource that serves a kind; `KindNotServed` explains what to do if none does."""
        version = kind.group_version
        for fresh in (False, True):
            for resource in await self._of_version(version, fresh=fresh):
                if resource.kind == kind.kind:
                    return resource
        raise await self.unserved(kind)

    async def unserved(self, kind: GroupVersionKind) -> KindNotServed:
        """The error for a kind that the server does not serve; it names the versions that the server does serve."""
        return await self._sender.unserved(kind)

    async def kind_of(self, resource: GroupVersionResource) -> GroupVersionKind:
        """The kind that a resource serves."""
        for fresh in (False, True):
            for served in await self._of_version(resource.group_version, fresh=fresh):
                if served.resource == resource.resource:
                    return GroupVersionKind(served.group, served.version, served.kind)
        raise KindNotServed(
            ApiStatus(
                message=f"{resource} is not served by {self._server or 'this server'}", reason="NotFound", code=404
            ),
            tried=f"find {resource}",
        )

    async def bind(self, kind: Kind) -> Binding[Unstructured]:
        """The binding of an untyped kind."""
        served = await self.resource_of(kind.gvk())
        try:
            resource = quote_segment(served.resource)
        except ValueError as error:
            raise ProtocolError(f"find {kind.kind} on {self._server}: invalid resource name: {error}") from None
        return bind_kind(kind, resource, namespaced=served.namespaced)

    async def server_version(self) -> ServerVersion:
        """The version of the server."""
        return parse_version(await self._get("/version", "read the server's version"))

    async def openapi_paths(self) -> dict[str, str]:
        """The path of each group-version's OpenAPI v3 document."""
        index = await self._get_json("/openapi/v3", "read the OpenAPI index")
        entries: Any = index.get("paths")
        if not isinstance(entries, dict):
            raise ProtocolError(f"read the OpenAPI index of {self._server}: it has no paths")
        paths: dict[str, str] = {}
        for name, entry in cast("dict[str, Any]", entries).items():
            target: Any = cast("dict[str, Any]", entry).get("serverRelativeURL") if isinstance(entry, dict) else None
            if not isinstance(target, str) or not target.startswith("/"):
                raise ProtocolError(f"read the OpenAPI index of {self._server}: {name[:60]!r} has no usable URL")
            paths[name] = quote(target, safe="/?&=%")
        return paths

    async def openapi(self, version: GroupVersion | str) -> dict[str, Any]:
        """The OpenAPI v3 document of a group-version: ``openapi("apps/v1")``."""
        version = GroupVersion.parse(version) if isinstance(version, str) else version
        name = group_version_path(version.group, version.version).lstrip("/")
        paths = await self.openapi_paths()
        if name not in paths:
            raise ProtocolError(
                f"{self._server} has no OpenAPI document for {version}; it has {', '.join(sorted(paths))}"
            )
        return await self._get_json(paths[name], f"read the OpenAPI of {version}")

    async def openapi_v2(self) -> dict[str, Any]:
        """The OpenAPI v2 document of the whole server, which is several megabytes; `openapi` reads one group-version."""
        return await self._get_json("/openapi/v2", "read the OpenAPI v2 document")

    async def _get_json(self, target: str, tried: str) -> dict[str, Any]:
        body = await self._get(target, tried)
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except UNREADABLE:
            raise ProtocolError(
                f"{tried} of {self._server}: the response of {len(body)} bytes is not a JSON object"
            ) from None

    async def _get(self, target: str, tried: str, accept: str = JSON) -> bytes:
        path, _, query = target.partition("?")
        request = HttpRequest(method="GET", path=path, query=parse_query(query), headers=(("Accept", accept),))
        return await self._sender.send(request, tried=VerbCall(tried))

    async def _of_version(self, version: GroupVersion, *, fresh: bool) -> list[ApiResource]:
        if fresh or version not in self._by_version:
            try:
                body = await self._get(group_version_path(version.group, version.version), f"discover {version}")
            except NotFound:
                self._by_version.pop(version, None)
                return []
            self._by_version[version] = parse_resource_list(body)
        return self._by_version[version]

    async def _all(self) -> DiscoveryResult:
        if self._everything is None:
            try:
                self._everything = await self._aggregated()
            except (StatusError, ProtocolError):
                self._everything = await self._one_by_one()
        return self._everything

    async def _aggregated(self) -> DiscoveryResult:
        """Two requests for everything (Kubernetes 1.27 and later)."""
        bodies = [await self._get(path, f"discover {path}", accept=AGGREGATED_DISCOVERY) for path in ("/api", "/apis")]
        return parse_aggregated_discovery(*bodies)

    async def _one_by_one(self) -> DiscoveryResult:
        """One request per group-version; a failed one is recorded, not raised."""
        groups = parse_group_list(
            await self._get("/api", "discover the core group"), await self._get("/apis", "discover the API groups")
        )
        result = DiscoveryResult(versions=groups.versions, preferred_versions=groups.preferred_versions)
        for version in groups.versions:
            try:
                path = group_version_path(version.group, version.version)
                result.resources.extend(parse_resource_list(await self._get(path, f"discover {version}")))
            except (ApiError, ValueError) as error:  # the server may announce names that are not valid paths
                result.failures[version] = str(error)
        return result
