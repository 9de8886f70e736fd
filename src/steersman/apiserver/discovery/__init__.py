"""Discovery: the served resources, the version, health, and the schemas of kinds."""

from steersman.apiserver.discovery.catalog import Catalog as Catalog, Snapshot as Snapshot
from steersman.apiserver.discovery.health import (
    Health as Health,
    ServerHealthCheck as ServerHealthCheck,
    feed_check as feed_check,
    is_health_path as is_health_path,
    storage_check as storage_check,
)
from steersman.apiserver.discovery.metrics import metrics_route as metrics_route
from steersman.apiserver.discovery.routes import DiscoveryRoute as DiscoveryRoute, discovery_routes as discovery_routes
