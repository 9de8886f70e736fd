"""The route of ``/metrics``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from steersman.apiserver.errors import method_not_allowed
from steersman.apiserver.metrics import ServerMetrics
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.request import Route, ServerRequest
from steersman.apiserver.storage import Storage
from steersman.transport import ServerResponse

METRICS_PATH: Final = "/metrics"
_LEVELS: Final = ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations")
#: kube-apiserver's default number of concurrent requests, which the priority levels share.
_SEATS: Final = 600
#: How many priority levels share them; those after these, by name, get no seats.
_LEVELS_MAX: Final = 1_000


class _Share(msgspec.Struct, rename="camel"):
    nominal_concurrency_shares: int = 0


class _Spec(msgspec.Struct):
    limited: _Share | None = None
    exempt: _Share | None = None


class _Metadata(msgspec.Struct):
    name: str


class _Level(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode_level = msgspec.json.Decoder(_Level).decode


def metrics_route(metrics: ServerMetrics, registry: ResourceRegistry, storage: Storage) -> Route:
    """The route that answers with the server's metrics as text. It counts the stored objects for each response."""

    async def route(request: ServerRequest) -> ServerResponse | None:
        if request.wire.path != METRICS_PATH:
            return None
        if request.wire.method not in {"GET", "HEAD"}:
            raise method_not_allowed()
        metrics.stored(await _counts(registry, storage))
        metrics.seats(nominal_seats(await _shares(registry, storage)))
        from steersman.telemetry import expose  # noqa: PLC0415 - few servers are asked for metrics

        content_type, body = expose(metrics.registry, accept=request.wire.header("Accept") or "")
        headers = (("Cache-Control", "no-cache, private"), ("Content-Type", content_type))
        return ServerResponse(status=200, headers=headers, body=body)

    return route


async def _counts(registry: ResourceRegistry, storage: Storage) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for definition in registry:
        key = (definition.gvk.group, definition.resource)
        if key not in found and "list" in definition.verbs:
            page = await storage.list(definition.prefix, limit=1)
            found[key] = len(page.records) + page.remaining
    return found


async def _shares(registry: ResourceRegistry, storage: Storage) -> dict[str, int]:
    """The concurrency shares of the first stored priority levels, by name."""
    definition = registry.any_version(*_LEVELS)
    if definition is None:
        return {}
    found: dict[str, int] = {}
    for record in (await storage.list(definition.prefix, limit=_LEVELS_MAX)).records:
        level = _decode_level(record.value)
        share = level.spec.limited or level.spec.exempt or _Share()
        found[level.metadata.name] = share.nominal_concurrency_shares
    return found


def nominal_seats(shares: Mapping[str, int]) -> dict[str, int]:
    """The concurrency limit of each priority level, as kube-apiserver divides its own by their shares."""
    total = sum(shares.values())
    return {level: math.ceil(_SEATS * share / total) if total else 0 for level, share in shares.items()}
