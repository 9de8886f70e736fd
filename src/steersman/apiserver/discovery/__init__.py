"""Discovery: the served resources, the version, health, and the schemas of kinds."""

from steersman.apiserver.discovery.catalog import Catalog as Catalog, Snapshot as Snapshot
from steersman.apiserver.discovery.health import (
    Health as Health,
    HealthCheck as HealthCheck,
    feed_check as feed_check,
    storage_check as storage_check,
)
from steersman.apiserver.discovery.openapi import OpenApi as OpenApi
from steersman.apiserver.discovery.routes import Discovery as Discovery, discovery_routes as discovery_routes
