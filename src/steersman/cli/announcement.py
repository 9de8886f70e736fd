"""The announcement of what a program is about to do: a few lines for people, one log line for machines."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import msgspec

from steersman._version import __version__
from steersman.cli.console import tell_banner
from steersman.controller import Blueprint
from steersman.manager import HttpEndpoints, Manager
from steersman.transport import join_host_port, local_address

_log = logging.getLogger("steersman.run")


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """A manager and where it will run."""

    target: str
    server: str
    version: str
    #: Where the configuration came from, as text.
    origin: str
    namespace: str
    manager: Manager
    endpoints: HttpEndpoints | None


def announce(announcement: Announcement, *, readable: bool) -> None:
    """Print it to stderr, or log it."""
    if not readable:
        _log.info(
            "starting",
            extra={
                "target": announcement.target,
                "version": __version__,
                "server": announcement.server,
                "server_version": announcement.version,
                "config": announcement.origin,
                "namespace": announcement.namespace,
                "controllers": [_controller(blueprint) for blueprint in announcement.manager.blueprints],
            }
            | ({"endpoints": url} if (url := endpoints_url(announcement.endpoints)) else {}),
        )
        return
    tell_banner(announcement.target, _lines(announcement))


def _lines(announcement: Announcement) -> Iterator[tuple[str, str]]:
    yield "server", f"{announcement.server}, Kubernetes {announcement.version}"
    yield "config", f"{announcement.origin}, namespace {announcement.namespace}"
    for blueprint in announcement.manager.blueprints:
        yield "controllers", _controller(blueprint)
    if url := endpoints_url(announcement.endpoints):
        yield "debug page", f"{url}/debug"
    elif announcement.endpoints is None:
        yield "debug page", "none; add --port 8080 for the debug page, metrics and health"
    leader = announcement.manager.statistics(keys=0).leader
    if leader is not None:
        yield ("leader", f"Lease {leader.lease if '/' in leader.lease else f'{announcement.namespace}/{leader.lease}'}")
    yield "stop", "Ctrl-C drains; a second Ctrl-C stops immediately"


def endpoints_url(endpoints: HttpEndpoints | None) -> str:
    """The address of the manager's endpoints; empty if it is not known yet."""
    if endpoints is None or endpoints.port == 0:
        return ""
    scheme = "https" if endpoints.is_encrypted else "http"
    return f"{scheme}://{join_host_port(local_address(endpoints.host or '127.0.0.1'), endpoints.port)}"


def _controller(blueprint: Blueprint) -> str:
    """``site: Site, Deployment (owned), Secret (mapped)``."""
    watched = [f"{watch.kind.gvk().kind}{f' ({watch.words})' if watch.words else ''}" for watch in blueprint.watches]
    sources = [source.name for source in blueprint.sources]
    return f"{blueprint.name}: {', '.join((*watched, *sources))}; {blueprint.options.concurrency} at once"
