"""The JSON that Podman and Docker print, as facts. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from steersman.workloads.containers.runner import (
    ContainerFacts,
    NetworkAddress,
    NetworkFacts,
    RuntimeEvent,
    VolumeFacts,
)


class _State(msgspec.Struct, rename="pascal"):
    status: str = ""
    exit_code: int = 0
    error: str = ""
    started_at: str = ""
    finished_at: str = ""


class _Config(msgspec.Struct, rename="pascal"):
    image: str = ""
    labels: dict[str, str] | None = None


class _Binding(msgspec.Struct, rename="pascal"):
    host_ip: str = ""
    host_port: str = ""


class _Attached(msgspec.Struct):
    address: str = msgspec.field(name="IPAddress", default="")
    gateway: str = msgspec.field(name="Gateway", default="")
    aliases: list[str] | None = msgspec.field(name="Aliases", default=None)


class _NetworkSettings(msgspec.Struct, rename="pascal"):
    ports: dict[str, list[_Binding] | None] | None = None
    networks: dict[str, _Attached] | None = None


class _Container(msgspec.Struct, rename="pascal"):
    id: str
    name: str
    state: _State
    config: _Config
    network_settings: _NetworkSettings


class _Volume(msgspec.Struct, rename="pascal"):
    name: str
    labels: dict[str, str] | None = None


class _PodmanSubnet(msgspec.Struct):
    subnet: str = ""
    gateway: str = ""


class _PodmanNetwork(msgspec.Struct):
    id: str
    name: str
    driver: str = ""
    ipv6_enabled: bool = False
    subnets: list[_PodmanSubnet] | None = None
    labels: dict[str, str] | None = None


class _DockerAddresses(msgspec.Struct, rename="pascal"):
    subnet: str = ""
    gateway: str = ""


class _DockerAddressing(msgspec.Struct, rename="pascal"):
    config: list[_DockerAddresses] | None = None


class _DockerNetwork(msgspec.Struct, rename="pascal"):
    id: str
    name: str
    driver: str = ""
    enable_ipv6: bool = msgspec.field(name="EnableIPv6", default=False)
    addressing: _DockerAddressing = msgspec.field(name="IPAM", default_factory=_DockerAddressing)
    labels: dict[str, str] | None = None


class _PodmanEvent(msgspec.Struct):
    kind: str = msgspec.field(name="Type", default="")
    id: str = msgspec.field(name="ID", default="")
    name: str = msgspec.field(name="Name", default="")
    action: str = msgspec.field(name="Status", default="")


class _DockerActor(msgspec.Struct):
    id: str = msgspec.field(name="ID", default="")


class _DockerEvent(msgspec.Struct):
    kind: str = msgspec.field(name="Type", default="")
    action: str = msgspec.field(name="Action", default="")
    actor: _DockerActor = msgspec.field(name="Actor", default_factory=_DockerActor)


def containers(text: str) -> list[ContainerFacts]:
    """The answer of ``container inspect``, the same for both runtimes."""
    return [_container(each) for each in msgspec.json.decode(text, type=list[_Container])]


def volumes(text: str) -> list[VolumeFacts]:
    """The answer of ``volume inspect``, the same for both runtimes."""
    found = msgspec.json.decode(text, type=list[_Volume])
    return [VolumeFacts(name=each.name, labels=each.labels or {}) for each in found]


def podman_networks(text: str) -> list[NetworkFacts]:
    """The answer of ``podman network inspect``."""
    return [
        NetworkFacts(
            id=each.id,
            name=each.name,
            driver=each.driver,
            ipv6=each.ipv6_enabled,
            subnets=tuple(subnet.subnet for subnet in each.subnets or ()),
            gateways=tuple(subnet.gateway for subnet in each.subnets or () if subnet.gateway),
            labels=each.labels or {},
        )
        for each in msgspec.json.decode(text, type=list[_PodmanNetwork])
    ]


def docker_networks(text: str) -> list[NetworkFacts]:
    """The answer of ``docker network inspect``."""
    return [
        NetworkFacts(
            id=each.id,
            name=each.name,
            driver=each.driver,
            ipv6=each.enable_ipv6,
            subnets=tuple(part.subnet for part in each.addressing.config or ()),
            gateways=tuple(part.gateway for part in each.addressing.config or () if part.gateway),
            labels=each.labels or {},
        )
        for each in msgspec.json.decode(text, type=list[_DockerNetwork])
    ]


def podman_event(line: bytes) -> RuntimeEvent | None:
    """A line of ``podman events``; None for an event of no interest."""
    event = msgspec.json.decode(line, type=_PodmanEvent)
    return _event(event.kind, event.id or event.name, event.action)


def docker_event(line: bytes) -> RuntimeEvent | None:
    """A line of ``docker events``; None for an event of no interest."""
    event = msgspec.json.decode(line, type=_DockerEvent)
    return _event(event.kind, event.actor.id, event.action)


def _event(kind: str, name: str, action: str) -> RuntimeEvent | None:
    # The commands of probes run often, and change no state.
    if not name or action.startswith("exec"):
        return None
    known: dict[str, Literal["container", "network", "volume"]] = {
        "container": "container",
        "network": "network",
        "volume": "volume",
    }
    found = known.get(kind)
    return RuntimeEvent(found, name, action) if found is not None else None


def _container(each: _Container) -> ContainerFacts:
    settings = each.network_settings
    ports: dict[tuple[int, str], tuple[str, int]] = {}
    for name, bindings in (settings.ports or {}).items():
        number, _, protocol = name.partition("/")
        # A port that is published for IPv4 and IPv6 has two bindings; the first is that of IPv4.
        for binding in (bindings or ())[:1]:
            if binding.host_port.isdigit():
                ports[int(number), protocol or "tcp"] = (binding.host_ip or "127.0.0.1", int(binding.host_port))
    return ContainerFacts(
        id=each.id,
        name=each.name.removeprefix("/"),
        image=each.config.image,
        state=each.state.status,
        exit_code=each.state.exit_code,
        error=each.state.error,
        started_at=_time(each.state.started_at),
        finished_at=_time(each.state.finished_at),
        labels=each.config.labels or {},
        ports=ports,
        networks={
            name: NetworkAddress(address=at.address, gateway=at.gateway, aliases=tuple(at.aliases or ()))
            for name, at in (settings.networks or {}).items()
        },
    )


def _time(text: str) -> datetime | None:
    """A time, or None for Go's zero time."""
    return None if not text or text.startswith("0001-") else datetime.fromisoformat(text)
