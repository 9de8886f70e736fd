"""Answers to the kubelet, Prometheus and the on-call engineer: health, metrics, and the debug page.

Guarantees
- ``/healthz`` and ``/readyz`` are open to every client that reaches the port, because the kubelet sends no token.
- With token review, ``/metrics`` and ``/debug`` require a token from every client. The client's address proves nothing:
  a service mesh sidecar forwards strangers from the loopback address.
- Without token review, ``/metrics`` is open, and only this machine can read ``/debug`` (in a cluster: the Pod, so
  ``kubectl port-forward`` works too). The client must have a loopback address and request a loopback host, so neither a
  proxy nor a rebound DNS name passes.
- Endpoints only read.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import Any, Protocol

import msgspec

from steersman.aio import Supervisor
from steersman.cache import Informer
from steersman.client import Client
from steersman.controller import Blueprint
from steersman.debug import Explanation, ManagerStatistics
from steersman.debug.page import explanation, overview
from steersman.manager.endpoints import HttpEndpoints
from steersman.manager.endpoints.token_review import Reviewer, Verdict
from steersman.manager.health import Checks
from steersman.manager.readiness import index_readiness
from steersman.objects import Key
from steersman.telemetry import Registry, expose, names
from steersman.transport import HttpListener, ServerResponse, ServerTlsSource, current_peer
from steersman.wire import HttpRequest, Pairs

_log = logging.getLogger("steersman.manager")

_PRIVATE = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"))
_HTML = (("Content-Type", "text/html; charset=utf-8"), *_PRIVATE)
_JSON = (("Content-Type", "application/json"), *_PRIVATE)
_TEXT = (("Content-Type", "text/plain; charset=utf-8"), *_PRIVATE)
#: Headers that proxies add, and prefixes of the others.
_FORWARDED = frozenset({"forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip"})
_FORWARDED_PREFIXES = ("x-forwarded", "x-envoy-", "x-original-", "cf-", "l5d-")
_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<name>[^\[\]:]+))(?::[0-9]{1,5})?")
_PATHS = "/healthz, /readyz, /metrics, /debug, /debug/statistics.json, /debug/explain, /debug/explain.json"


class Observed(Protocol):
    """What the endpoints read from a manager."""

    @property
    def health(self) -> Checks:
        """The checks behind ``/healthz``."""
        ...

    @property
    def ready(self) -> Checks:
        """The checks behind ``/readyz``."""
        ...

    @property
    def registry(self) -> Registry:
        """The metrics behind ``/metrics``."""
        ...

    @property
    def blueprints(self) -> tuple[Blueprint, ...]:
        """The controllers whose objects ``/debug`` shows."""
        ...

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """The caches of these objects."""
        ...

    def statistics(self) -> ManagerStatistics:
        """The statistics behind ``/debug``."""
        ...

    def explain(self, kind_or_controller: str, key: Key) -> list[Explanation]:
        """The explanations behind ``/debug/explain``."""
        ...


@asynccontextmanager
async def serve_endpoints(endpoints: HttpEndpoints, observed: Observed, client: Client) -> AsyncGenerator[HttpListener]:
    """Serve the endpoints of a manager until the block ends."""
    if endpoints.token_review and not endpoints.is_encrypted and not _is_loopback(endpoints.host):
        _log.warning(
            'endpoints on port %d receive tokens unencrypted: pass HttpEndpoints(service="NAMESPACE/NAME"), or tls=...',
            endpoints.port,
        )
    async with AsyncExitStack() as stack:
        tls: ServerTlsSource | None = endpoints.tls
        if endpoints.service:
            from steersman.manager.endpoints.certificates import EndpointCertificates  # noqa: PLC0415 - needs cryptography

            certificates = EndpointCertificates(client, endpoints)
            await certificates.prepare()
            observed.ready.add("certificate", certificates.check)
            tasks = await stack.enter_async_context(Supervisor())
            stack.callback(tasks.cancel)
            tasks.start(certificates.keep(), name="endpoints: certificates")
            tls = certificates.current
        yield await stack.enter_async_context(_listener(endpoints, tls, observed, client))


def _listener(
    endpoints: HttpEndpoints, tls: ServerTlsSource | None, observed: Observed, client: Client
) -> HttpListener:
    reads = observed.registry.counter(names.CERTIFICATE_READS)
    errors = observed.registry.counter(names.CERTIFICATE_READ_ERRORS)

    def on_certificate_read(usable: bool) -> None:  # noqa: FBT001 - all there is to tell
        reads.inc()
        if not usable:
            errors.inc()
            _log.warning("cannot reload the certificate of the endpoints; keeping the last one")

    return HttpListener(
        EndpointHandler(observed, Reviewer(client) if endpoints.token_review else None),
        port=endpoints.port,
        host=endpoints.host,
        tls=tls,
        max_body=64 * 1024,
        grace=2.0,
        on_certificate_read=on_certificate_read,
    )


class EndpointHandler:
    """Answers requests to the endpoints."""

    def __init__(self, observed: Observed, reviewer: Reviewer | None = None) -> None:
        self._observed = observed
        self._reviewer = reviewer
        self._debug: dict[str, Callable[[HttpRequest], Awaitable[ServerResponse]]] = {
            "/debug": self._overview,
            "/debug/statistics.json": self._statistics,
            "/debug/explain": self._explain,
            "/debug/explain.json": self._explain,
        }

    async def __call__(self, request: HttpRequest) -> ServerResponse:
        """Answer one request."""
        path = request.path.rstrip("/")
        if request.method not in {"GET", "HEAD"}:
            return _text(405, "these endpoints are read-only: use GET", ("Allow", "GET, HEAD"))
        for title, checks in (("healthz", self._observed.health), ("readyz", self._observed.ready)):
            if path == f"/{title}" or path.startswith(f"/{title}/"):
                given = [name for name, _ in request.query]
                excluded = {value for name, value in request.query if name == "exclude"}
                return await checks.answer(path[1:], verbose="verbose" in given, excluded=excluded)
        if path == "/metrics":
            verdict = Verdict(200) if self._reviewer is None else await self._review(request, path)
            return self._metrics(request) if verdict.allowed else _refusal(verdict)
        if path in self._debug:
            verdict = await self._review(request, path)
            return await self._debug[path](request) if verdict.allowed else _refusal(verdict)
        return _text(404, f"{request.path} not found; available: {_PATHS}")

    async def _review(self, request: HttpRequest, path: str) -> Verdict:
        if self._reviewer is not None:
            given = [value for name, value in request.headers if name.lower() == "authorization"]
            return await self._reviewer.review(given[0] if len(given) == 1 else None, path)
        if _is_local(request):
            return Verdict(200)
        return Verdict(
            403,
            f"{path} is served to this machine only: use kubectl port-forward and request localhost,"
            " or pass HttpEndpoints(token_review=True) and send a token",
        )

    def _metrics(self, request: HttpRequest) -> ServerResponse:
        content_type, body = expose(self._observed.registry, accept=request.header("Accept") or "")
        return ServerResponse(status=200, headers=(("Content-Type", content_type), *_PRIVATE), body=body)

    async def _overview(self, _request: HttpRequest) -> ServerResponse:
        return ServerResponse(status=200, headers=_HTML, body=overview(await self._look()).encode())

    async def _statistics(self, _request: HttpRequest) -> ServerResponse:
        return ServerResponse(status=200, headers=_JSON, body=msgspec.json.encode(await self._look()))

    async def _look(self) -> ManagerStatistics:
        """The statistics, with checks that have just run."""
        await self._observed.health.run()
        await self._observed.ready.run()
        await index_readiness(self._observed.blueprints, self._observed.informers)
        return self._observed.statistics()

    async def _explain(self, request: HttpRequest) -> ServerResponse:
        asked = dict(request.query)
        kind, name = asked.get("kind") or asked.get("controller") or "", asked.get("name") or ""
        if not kind or not name:
            return _text(400, f"name an object: {request.path}?kind=Site&namespace=default&name=web")
        key = Key(asked.get("namespace") or "", name)
        explanations = self._observed.explain(kind, key)
        status = 200 if explanations else 404
        if request.path.endswith(".json"):
            return ServerResponse(status=status, headers=_JSON, body=msgspec.json.encode(explanations))
        await index_readiness(self._observed.blueprints, self._observed.informers)
        page = explanation(explanations, kind=kind, key=key, statistics=self._observed.statistics())
        return ServerResponse(status=status, headers=_HTML, body=page.encode())


def _is_local(request: HttpRequest) -> bool:
    """Whether the client is on this machine, is not a proxy, and requests a host name of this machine."""
    peer = current_peer()
    if peer is None or not peer.is_loopback:
        return False
    names = [name.lower() for name, _ in request.headers]
    if any(name in _FORWARDED or name.startswith(_FORWARDED_PREFIXES) for name in names):
        return False
    # Another site's page can point its own name here, but cannot make the browser request localhost.
    hosts = [value for name, value in request.headers if name.lower() == "host"]
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    return match is not None and _is_loopback(match["v6"] or match["name"])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _refusal(verdict: Verdict) -> ServerResponse:
    more: Pairs = ()
    if verdict.status == HTTPStatus.UNAUTHORIZED:
        more = (("WWW-Authenticate", 'Bearer realm="steersman"'),)
    elif verdict.status == HTTPStatus.TOO_MANY_REQUESTS:
        more = (("Retry-After", "5"),)
    return _text(verdict.status, verdict.words, *more)


def _text(status: int, words: str, *more: tuple[str, str]) -> ServerResponse:
    return ServerResponse(status=status, headers=(*_TEXT, *more), body=f"{words}\n".encode())
