"""Routes that describe the server: groups and resources, version, health, OpenAPI, and all paths.

Guarantees
- Every answer reflects what is served now: adding or removing a resource changes it at once.
- Paths, methods, forms, codes and messages are kube-apiserver's.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Sequence

import msgspec

from steersman._version import __version__
from steersman.apiserver.answers import answer
from steersman.apiserver.discovery.catalog import Catalog, Snapshot
from steersman.apiserver.discovery.documents import aggregated, api_versions, group_document, group_list, resource_list
from steersman.apiserver.discovery.health import LOG, LOOPBACK, PING, SHUTDOWN, STARTED, Health, ServerHealthCheck
from steersman.apiserver.discovery.metrics import METRICS_PATH
from steersman.apiserver.discovery.negotiation import AGGREGATED, chosen_form, has_newest, not_modified, takes_json
from steersman.apiserver.discovery.openid import OPENID_PATHS, openid_route
from steersman.apiserver.errors import method_not_allowed, no_media_type, no_such_resource
from steersman.apiserver.identity import AccountTokens
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.request import Route, ServerRequest
from steersman.kinds import index
from steersman.objects import GroupVersion
from steersman.transport import ServerResponse
from steersman.wire import JSON


def discovery_routes(
    registry: ResourceRegistry,
    tokens: AccountTokens,
    *,
    alive: Sequence[ServerHealthCheck] = (),
    ready: Sequence[ServerHealthCheck] = (),
) -> list[Route]:
    """The routes that describe the server.

    `alive` are checks of ``/healthz``, ``/livez`` and ``/readyz``; `ready` only of ``/readyz``.
    """
    catalog = Catalog(registry)
    healths = [
        Health("healthz", (PING, LOG, *alive, LOOPBACK, *STARTED)),
        Health("livez", (PING, LOG, *alive, LOOPBACK, *STARTED)),
        Health("readyz", (PING, LOG, *alive, *ready, *STARTED, SHUTDOWN)),
    ]
    own = [path for health in healths for path in health.paths] + [
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        METRICS_PATH,
        "/version",
        *OPENID_PATHS,
    ]
    return [
        DiscoveryRoute(catalog),
        answer_version,
        openapi_route(catalog),
        openid_route(tokens),
        *healths,
        paths_route(catalog, own),
    ]


class DiscoveryRoute:
    """The route of ``/api``, ``/apis`` and the documents of groups and their versions below them."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def __call__(self, request: ServerRequest) -> ServerResponse | None:
        """Answer a request for a document of discovery."""
        snapshot = self._catalog.now()
        match request.wire.path.removesuffix("/").split("/"):
            case ["", "api"]:
                return self._core(request, snapshot)
            case ["", "apis"]:
                return self._groups(request, snapshot)
            case ["", "api", version, *rest]:
                return self._group_version(request, snapshot, GroupVersion("", version), rest)
            case ["", "apis", group] if group and group in snapshot.groups:
                chosen_form(request)
                return answer(request, group_document(snapshot, group))
            case ["", "apis", group, version, *rest] if group and group in snapshot.groups:
                return self._group_version(request, snapshot, GroupVersion(group, version), rest)
            case _:
                return None

    def _core(self, request: ServerRequest, snapshot: Snapshot) -> ServerResponse:
        _only_get(request)
        if chosen_form(request, has_aggregated=True, exact=True) == "aggregated":
            return _aggregated(request, snapshot, core=True)
        return answer(request, api_versions(snapshot, request.wire.header("Host") or "localhost"))

    def _groups(self, request: ServerRequest, snapshot: Snapshot) -> ServerResponse:
        if chosen_form(request, has_aggregated=True) == "aggregated":
            return _aggregated(request, snapshot, core=False)
        return answer(request, snapshot.document("groups", lambda: group_list(snapshot)))

    def _group_version(
        self, request: ServerRequest, snapshot: Snapshot, wanted: GroupVersion, rest: list[str]
    ) -> ServerResponse | None:
        definitions = snapshot.of(wanted)
        if definitions is None:
            # kube-apiserver answers for its own groups; other groups do not exist for it.
            if snapshot.is_builtin(wanted.group):
                raise no_such_resource()
            return None
        if rest:
            return None
        builtin = not all(definition.custom for definition in definitions)
        if builtin:
            _only_get(request)
        chosen_form(request, exact=builtin)
        body = snapshot.document(f"resources {wanted.api_version}", lambda: resource_list(snapshot, wanted))
        return answer(request, body)


def _only_get(request: ServerRequest) -> None:
    if request.wire.method != "GET":
        raise method_not_allowed()


def _aggregated(request: ServerRequest, snapshot: Snapshot, *, core: bool) -> ServerResponse:
    name = f"aggregated {core}"
    body = snapshot.document(name, lambda: aggregated(snapshot, core=core) + b"\n")
    digest = snapshot.document(f"{name} digest", lambda: hashlib.sha512(body).hexdigest().upper().encode())
    etag = f'"{digest.decode()}"'
    if has_newest(request, etag):
        return not_modified(etag, "public")
    headers = (("Cache-Control", "public"), ("Content-Type", AGGREGATED), ("ETag", etag), ("Vary", "Accept"))
    return ServerResponse(status=200, headers=headers, body=body)


async def answer_version(request: ServerRequest) -> ServerResponse | None:
    """The route of ``/version``."""
    path = request.wire.path
    if path.startswith("/version/") and path != "/version/":
        raise no_such_resource()
    if path.rstrip("/") != "/version":
        return None
    _only_get(request)
    if not takes_json(request, exact=True):
        raise no_media_type((JSON,))
    return _pretty(version_document())


def version_document() -> dict[str, str]:
    """The versions of Kubernetes and Steersman."""
    major, minor = index.KUBERNETES.removeprefix("v").split(".")[:2]
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"{index.KUBERNETES}+steersman.{__version__}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": sys.implementation.name,
        "platform": f"{sys.platform}/{machine}",
    }


def openapi_route(catalog: Catalog) -> Route:
    """The route of the OpenAPI documents. Their modules are imported with the first request for one."""
    documents: list[Route] = []

    async def route(request: ServerRequest) -> ServerResponse | None:
        if not request.wire.path.startswith("/openapi/"):
            return None
        if not documents:
            from steersman.apiserver.discovery.openapi import OpenApi  # noqa: PLC0415 - see above
            from steersman.apiserver.discovery.openapi_v2 import OpenApiV2  # noqa: PLC0415

            documents[:] = [OpenApi(catalog), OpenApiV2(catalog)]
        for document in documents:
            if (answered := await document(request)) is not None:
                return answered
        return None

    return route


def paths_route(catalog: Catalog, others: Sequence[str]) -> Route:
    """The route of ``/``: all paths of discovery, and `others`."""

    async def route(request: ServerRequest) -> ServerResponse | None:
        if request.wire.path not in {"", "/"}:
            return None
        paths = {"/api", "/apis", "/apis/", *others}
        for group, versions in catalog.now().groups.items():
            root = f"/apis/{group}" if group else "/api"
            paths |= {root, *(f"{root}/{version}" for version in versions)}
        return _pretty({"paths": sorted(paths)})

    return route


def _pretty(document: object) -> ServerResponse:
    headers = (("Cache-Control", "no-cache, private"), ("Content-Type", JSON))
    body = msgspec.json.format(msgspec.json.encode(document), indent=2)
    return ServerResponse(status=200, headers=headers, body=body)
