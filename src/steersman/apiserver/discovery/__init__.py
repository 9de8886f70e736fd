"""Discovery: the served resources, the version, health, and the schemas of kinds."""

from steersman.apiserver.discovery.catalogue import Catalogue, Snapshot
from steersman.apiserver.discovery.health import Health, HealthCheck, feed_check, storage_check
from steersman.apiserver.discovery.openapi import OpenApi
from steersman.apiserver.discovery.routes import Discovery, discovery_routes

__all__ = [
    "Catalogue",
    "Discovery",
    "Health",
    "HealthCheck",
    "OpenApi",
    "Snapshot",
    "discovery_routes",
    "feed_check",
    "storage_check",
]
