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


class HealthCheck(NamedTuple):
    """One check; `probe` raises if something is wrong."""

    name: str
    probe: Callable[[], Awaitable[object]]


async def _nothing() -> None:
    pass


#: Shows that requests are answered at all.
PING: Final = HealthCheck("ping", _nothing)


def storage_check(storage: Storage) -> HealthCheck:
    """Whether the store answers; named like kube-apiserver's check, for clients that request it alone."""
    return HealthCheck("etcd", storage.revision)


def feed_check(storage: Storage, feed: Feed) -> HealthCheck:
    """Whether watches have seen all stored changes."""

    async def probe() -> None:
        revision = await storage.revision()
        if not await feed.wait_for(revision, PATIENCE / 2):
            raise RuntimeError(f"watches have seen revision {feed.reached} of {revision}")

    return HealthCheck("informer-sync", probe)


class Health:
    """A route for a set of checks under one path, such as ``/readyz``."""

    def __init__(self, name: str, checks: Sequence[HealthCheck]) -> None:
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
        told: list[str] = []
        failed = False
        for check in self.checks:
            if check.name in excluded:
                excluded.discard(check.name)
                told.append(f"[+]{check.name} excluded: ok\n")
            elif await _failure(check) is None:
                told.append(f"[+]{check.name} ok\n")
            else:
                failed = True
                told.append(f"[-]{check.name} failed: reason withheld\n")
        if excluded:
            names = ",".join(f'"{name}"' for name in sorted(excluded))
            told.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        if failed:
            return _error(f"{''.join(told)}{self.name} check failed")
        if not any(name == "verbose" for name, _ in request.wire.query):
            return ServerResponse(status=200, headers=_SNIFFLESS, body=b"ok")
        body = f"{''.join(told)}{self.name} check passed\n"
        return ServerResponse(status=200, headers=_SNIFFLESS, body=body.encode())


async def _failure(check: HealthCheck) -> str | None:
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
