"""Health: ``/healthz``, ``/livez`` and ``/readyz``, and their individual checks.

Guarantees
- The texts and codes are kube-apiserver's: ``ok``, every check with ``?verbose``, 500 without a reason when one fails.
- A check that hangs fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from steersman.apiserver.answers import page_not_found
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Storage
from steersman.apiserver.watching import Feed
from steersman.transport import ServerResponse

_log = logging.getLogger("steersman.apiserver.health")

#: Seconds that a check may take.
PATIENCE: Final = 2.0

_PLAIN: Final = (("Cache-Control", "no-cache, private"), ("Content-Type", "text/plain; charset=utf-8"))
_SNIFFLESS: Final = (*_PLAIN, ("X-Content-Type-Options", "nosniff"))


class ServerHealthCheck(NamedTuple):
    """One check; `probe` raises if something is wrong."""

    name: str
    probe: Callable[[], Awaitable[object]]


_ROOTS: Final = frozenset({"/healthz", "/livez", "/readyz"})


def is_health_path(path: str) -> bool:
    """Whether a path answers with a whole set of checks."""
    return path in _ROOTS


async def _nothing() -> None:
    pass


#: Shows that requests are answered at all.
PING: Final = ServerHealthCheck("ping", _nothing)
LOG: Final = ServerHealthCheck("log", _nothing)
LOOPBACK: Final = ServerHealthCheck("loopback-serving-certificate", _nothing)
SHUTDOWN: Final = ServerHealthCheck("shutdown", _nothing)
#: The steps of its start that kube-apiserver reports one by one. Clients can query each by name. This server has finished
#: every step before the first request, or does not need it.
STARTED: Final = tuple(
    ServerHealthCheck(name, _nothing)
    for name in [
        "poststarthook/start-apiserver-admission-initializer",
        "poststarthook/generic-apiserver-start-informers",
        "poststarthook/priority-and-fairness-config-consumer",
        "poststarthook/priority-and-fairness-filter",
        "poststarthook/storage-object-count-tracker-hook",
        "poststarthook/start-apiextensions-informers",
        "poststarthook/start-apiextensions-controllers",
        "poststarthook/crd-informer-synced",
        "poststarthook/start-system-namespaces-controller",
        "poststarthook/peer-endpoint-reconciler-controller",
        "poststarthook/start-cluster-authentication-info-controller",
        "poststarthook/start-kube-apiserver-identity-lease-controller",
        "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
        "poststarthook/storage-readiness",
        "poststarthook/start-legacy-token-tracking-controller",
        "poststarthook/start-service-ip-repair-controllers",
        "poststarthook/rbac/bootstrap-roles",
        "poststarthook/scheduling/bootstrap-system-priority-classes",
        "poststarthook/priority-and-fairness-config-producer",
        "poststarthook/bootstrap-controller",
        "poststarthook/start-kubernetes-service-cidr-controller",
        "poststarthook/start-kube-aggregator-informers",
        "poststarthook/apiservice-status-local-available-controller",
        "poststarthook/apiservice-status-remote-available-controller",
        "poststarthook/apiservice-registration-controller",
        "poststarthook/apiservice-discovery-controller",
        "poststarthook/kube-apiserver-autoregistration",
        "autoregister-completion",
        "poststarthook/apiservice-openapi-controller",
        "poststarthook/apiservice-openapiv3-controller",
    ]
)


def storage_check(storage: Storage, name: str = "etcd") -> ServerHealthCheck:
    """Whether the store answers; named like kube-apiserver's check, for clients that request it alone."""
    return ServerHealthCheck(name, storage.revision)


def feed_check(storage: Storage, feed: Feed) -> ServerHealthCheck:
    """Whether watches have seen all stored changes."""

    async def probe() -> None:
        revision = await storage.revision()
        if not await feed.wait_for(revision, PATIENCE / 2):
            raise RuntimeError(f"watches have seen revision {feed.reached} of {revision}")

    return ServerHealthCheck("informer-sync", probe)


class Health:
    """A route for a set of checks under one path, such as ``/readyz``."""

    def __init__(self, name: str, checks: Sequence[ServerHealthCheck]) -> None:
        self.name = name
        self.checks = tuple(checks)

    @property
    def paths(self) -> list[str]:
        """Every path of this route."""
        return [f"/{self.name}", *(f"/{self.name}/{check.name}" for check in self.checks)]

    async def __call__(self, request: ServerRequest) -> ServerResponse | None:
        """Answer a request for all checks or for one."""
        path = request.wire.path
        if path == f"/{self.name}":
            return await self._all(request)
        if not path.startswith(f"/{self.name}/"):
            return None
        wanted = path[len(self.name) + 2 :]
        for check in self.checks:
            if check.name == wanted:
                failure = await _failure(check)
                if failure is None:
                    return ServerResponse(status=200, headers=_PLAIN, body=b"ok")
                return _error(f"internal server error: {failure}")
        return page_not_found()

    async def _all(self, request: ServerRequest) -> ServerResponse:
        excluded = {value for name, value in request.wire.query if name == "exclude"}
        lines: list[str] = []
        failed = False
        for check in self.checks:
            if check.name in excluded:
                excluded.discard(check.name)
                lines.append(f"[+]{check.name} excluded: ok\n")
            elif await _failure(check) is None:
                lines.append(f"[+]{check.name} ok\n")
            else:
                failed = True
                lines.append(f"[-]{check.name} failed: reason withheld\n")
        if excluded:
            names = ",".join(f'"{name}"' for name in sorted(excluded))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        if failed:
            return _error(f"{''.join(lines)}{self.name} check failed")
        if not any(name == "verbose" for name, _ in request.wire.query):
            return ServerResponse(status=200, headers=_SNIFFLESS, body=b"ok")
        body = f"{''.join(lines)}{self.name} check passed\n"
        return ServerResponse(status=200, headers=_SNIFFLESS, body=body.encode())


async def _failure(check: ServerHealthCheck) -> str | None:
    """Why a check fails; None if it passes."""
    try:
        async with asyncio.timeout(PATIENCE):
            await check.probe()
    except TimeoutError:
        reason = f"no answer within {PATIENCE:g}s"
    except Exception as error:  # noqa: BLE001 - any exception fails the check
        reason = str(error) or type(error).__name__
    else:
        return None
    _log.warning("health check %s failed: %s", check.name, reason)
    return reason


def _error(text: str) -> ServerResponse:
    return ServerResponse(status=500, headers=_SNIFFLESS, body=f"{text}\n".encode())
