"""Answers to the kubelet, Prometheus and the person on call: health, metrics, and the debug page.

Guarantees
- ``/healthz`` and ``/readyz`` are open to everybody who reaches the port.
- ``/debug`` is served to this machine (in a cluster: to the Pod, so also through ``kubectl port-forward``), or to whoever
  passes the token review if there is one. What came through a proxy, and what a browser was tricked into asking for
  under another name, does not count as this machine.
- ``/metrics`` is open, unless tokens are reviewed.
- Nothing here changes anything.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Protocol

import msgspec

from steersman.client import Client
from steersman.manager.debug_page import explanation, overview
from steersman.manager.endpoints import Endpoints
from steersman.manager.health import Checks
from steersman.manager.statistics import Explanation, ManagerStatistics
from steersman.manager.token_review import Reviewer, Verdict
from steersman.objects import Key
from steersman.telemetry import Registry, expose, names
from steersman.transport import Listener, ServerResponse, current_peer
from steersman.wire import Pairs, Request

_log = logging.getLogger("steersman.manager")

_PRIVATE = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"))
_HTML = (("Content-Type", "text/html; charset=utf-8"), *_PRIVATE)
_JSON = (("Content-Type", "application/json"), *_PRIVATE)
_TEXT = (("Content-Type", "text/plain; charset=utf-8"), *_PRIVATE)
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Real-Ip")
_PATHS = "/healthz, /readyz, /metrics, /debug, /debug/statistics.json, /debug/explain, /debug/explain.json"


class Observed(Protocol):
    """What the endpoints show."""

    @property
    def health(self) -> Checks:
        """What ``/healthz`` asks."""
        ...

    @property
    def ready(self) -> Checks:
        """What ``/readyz`` asks."""
        ...

    @property
    def registry(self) -> Registry:
        """What ``/metrics`` shows."""
        ...

    def statistics(self) -> ManagerStatistics:
        """What ``/debug`` shows."""
        ...

    def explain(self, kind_or_controller: str, key: Key) -> list[Explanation]:
        """What ``/debug/explain`` shows."""
        ...


def listener_for(endpoints: Endpoints, observed: Observed, client: Client) -> Listener:
    """The listener of these endpoints, not yet started."""
    if endpoints.token_review and endpoints.tls is None and not _is_loopback(endpoints.host):
        _log.warning("tokens for the endpoints on port %d come unencrypted: give Endpoints(tls=...)", endpoints.port)
    reads = observed.registry.counter(names.CERTIFICATE_READS)
    errors = observed.registry.counter(names.CERTIFICATE_READ_ERRORS)

    def on_certificate_read(usable: bool) -> None:  # noqa: FBT001 - all there is to tell
        reads.inc()
        if not usable:
            errors.inc()
            _log.warning("the certificate of the endpoints cannot be read again; the last one stays in use")

    return Listener(
        EndpointHandler(observed, Reviewer(client) if endpoints.token_review else None),
        port=endpoints.port,
        host=endpoints.host,
        tls=endpoints.tls,
        max_body=64 * 1024,
        grace=2.0,
        on_certificate_read=on_certificate_read,
    )


class EndpointHandler:
    """Answers requests to the endpoints."""

    def __init__(self, observed: Observed, reviewer: Reviewer | None = None) -> None:
        self._observed = observed
        self._reviewer = reviewer
        self._debug: dict[str, Callable[[Request], Awaitable[ServerResponse]]] = {
            "/debug": self._overview,
            "/debug/statistics.json": self._statistics,
            "/debug/explain": self._explain,
            "/debug/explain.json": self._explain,
        }

    async def __call__(self, request: Request) -> ServerResponse:
        """Answer one request."""
        path = request.path.rstrip("/")
        if request.method not in {"GET", "HEAD"}:
            return _text(405, "these endpoints are only read: use GET", ("Allow", "GET, HEAD"))
        for title, checks in (("healthz", self._observed.health), ("readyz", self._observed.ready)):
            if path == f"/{title}" or path.startswith(f"/{title}/"):
                given = [name for name, _ in request.query]
                excluded = {value for name, value in request.query if name == "exclude"}
                return await checks.answer(path[1:], verbose="verbose" in given, excluded=excluded)
        if path == "/metrics":
            verdict = await self._review(request, path) if self._reviewer is not None else Verdict(200)
            return self._metrics(request) if verdict.allowed else _refusal(verdict)
        if path in self._debug:
            verdict = await self._review(request, path)
            return await self._debug[path](request) if verdict.allowed else _refusal(verdict)
        return _text(404, f"there is nothing at {request.path}; there are {_PATHS}")

    async def _review(self, request: Request, path: str) -> Verdict:
        if _is_local(request):
            return Verdict(200)
        if self._reviewer is not None:
            return await self._reviewer.review(request.header("Authorization"), path)
        return Verdict(
            403,
            f"{path} is served to this machine alone: use kubectl port-forward and ask as localhost,"
            " or give Endpoints(token_review=True) and send a token",
        )

    def _metrics(self, request: Request) -> ServerResponse:
        content_type, body = expose(self._observed.registry, accept=request.header("Accept") or "")
        return ServerResponse(status=200, headers=(("Content-Type", content_type), *_PRIVATE), body=body)

    async def _overview(self, _request: Request) -> ServerResponse:
        await self._ask_checks()
        return ServerResponse(status=200, headers=_HTML, body=overview(self._observed.statistics()).encode())

    async def _statistics(self, _request: Request) -> ServerResponse:
        await self._ask_checks()
        return ServerResponse(status=200, headers=_JSON, body=msgspec.json.encode(self._observed.statistics()))

    async def _ask_checks(self) -> None:
        await self._observed.health.run()
        await self._observed.ready.run()

    async def _explain(self, request: Request) -> ServerResponse:
        asked = dict(request.query)
        kind, name = asked.get("kind") or asked.get("controller") or "", asked.get("name") or ""
        if not kind or not name:
            return _text(400, f"say which object: {request.path}?kind=Site&namespace=default&name=web")
        key = Key(asked.get("namespace") or "", name)
        found = self._observed.explain(kind, key)
        status = 200 if found else 404
        if request.path.endswith(".json"):
            return ServerResponse(status=status, headers=_JSON, body=msgspec.json.encode(found))
        page = explanation(found, kind=kind, key=key, statistics=self._observed.statistics())
        return ServerResponse(status=status, headers=_HTML, body=page.encode())


def _is_local(request: Request) -> bool:
    """Whether this machine asks, for itself, and under its own name."""
    peer = current_peer()
    if peer is None or not peer.is_loopback or any(request.header(name) for name in _FORWARDED):
        return False
    host = request.header("Host") or ""
    # a page of another site can have its own name lead here; it cannot have the browser say localhost
    bare = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    return bare.lower() == "localhost" or bare.lower().endswith(".localhost") or _is_address(bare)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _refusal(verdict: Verdict) -> ServerResponse:
    more: Pairs = (
        (("WWW-Authenticate", 'Bearer realm="steersman"'),) if verdict.status == HTTPStatus.UNAUTHORIZED else ()
    )
    return _text(verdict.status, verdict.words, *more)


def _text(status: int, words: str, *more: tuple[str, str]) -> ServerResponse:
    return ServerResponse(status=status, headers=(*_TEXT, *more), body=f"{words}\n".encode())
