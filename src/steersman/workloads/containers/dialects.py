"""The command lines of Podman and Docker: what differs between them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from steersman.workloads.containers import answers
from steersman.workloads.containers.runner import NetworkFacts, RuntimeEvent


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between the command lines."""

    name: str
    host_alias: str
    events: tuple[str, ...]
    event: Callable[[bytes], RuntimeEvent | None]
    networks: Callable[[str], list[NetworkFacts]]
    initialize: tuple[str, ...] = ()
    """The command that prepares a container for its start; empty if the start alone does."""
    runs_steps: bool = False
    """Whether the steps of a build run below its command, and not in a service."""


PODMAN = Dialect(
    name="podman",
    host_alias="host.containers.internal",
    events=("--format", "json"),
    event=answers.podman_event,
    networks=answers.podman_networks,
    initialize=("init",),
    runs_steps=True,
)
DOCKER = Dialect(
    name="docker",
    host_alias="host.docker.internal",
    events=("--format", "{{json .}}"),
    event=answers.docker_event,
    networks=answers.docker_networks,
)
