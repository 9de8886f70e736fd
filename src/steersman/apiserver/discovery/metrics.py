"""The route of ``/metrics``."""

from __future__ import annotations

from typing import Final

from steersman.apiserver.errors import method_not_allowed
from steersman.apiserver.metrics import ServerMetrics
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.request import Route, ServerRequest
from steersman.apiserver.storage import Storage
from steersman.telemetry import expose
from steersman.transport import ServerResponse

METRICS_PATH: Final = "/metrics"


def metrics_route(metrics: ServerMetrics, registry: ResourceRegistry, storage: Storage) -> Route:
    """The route that answers with the server's metrics as text. It counts the stored objects for each response."""

    async def route(request: ServerRequest) -> ServerResponse | None:
        if request.wire.path != METRICS_PATH:
            return None
        if request.wire.method not in {"GET", "HEAD"}:
            raise method_not_allowed()
        metrics.stored(await _counts(registry, storage))
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
