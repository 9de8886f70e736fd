"""Endpoints of a manager with the options of a command line."""

from __future__ import annotations

from dataclasses import replace

from steersman.cli.failure import Failure
from steersman.manager import HttpEndpoints


def with_service(endpoints: HttpEndpoints, service: str) -> HttpEndpoints:
    """Endpoints with certificates that the manager creates for this Service."""
    try:
        return replace(endpoints, tls=None, service=service)
    except ValueError as error:
        raise Failure(f"--tls-service: {error}") from None
