"""The interface between the controller of services and a proxy, and a simulated proxy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from steersman.transport import join_host_port

#: An address and a port.
Place = tuple[str, int]
#: Called with the name of a service whose `ProxyState` has changed.
StateListener = Callable[[str], None]


class Forwarding(msgspec.Struct, frozen=True):
    """Where a service listens, and the endpoints behind it."""

    addresses: tuple[str, ...]
    port: int
    endpoints: tuple[Place, ...] = ()
    processes: tuple[int, ...] = ()
    """The process behind each endpoint, whose tree must listen there; 0, or none: any program may."""


class ProxyState(msgspec.Struct, frozen=True):
    """What a proxy reports of a service."""

    parked: int = 0
    """Connections that wait for an endpoint."""
    refusal: str = ""
    """Why no endpoint takes connections, in words; empty while one does."""


class CannotListen(Exception):
    """The proxy cannot listen at an address. ``in_use`` if another process listens there."""

    def __init__(self, address: str, port: int, reason: str, *, in_use: bool) -> None:
        super().__init__(f"cannot listen at {join_host_port(address, port)}: {reason}")
        self.address = address
        self.port = port
        self.reason = reason
        self.in_use = in_use


class Proxy(Protocol):
    """Forwards the connections of services to their endpoints."""

    @property
    def pid(self) -> int | None:
        """The pid of the proxy's process; None while it starts."""
        ...

    async def keep(self, service: str, forwarding: Forwarding) -> None:
        """Listen for a service and forward to its endpoints; call it again for every change.

        Raises `CannotListen`; the service then listens nowhere. Open connections stay, also those to an endpoint that is no
        longer listed.
        """
        ...

    async def remove(self, service: str) -> None:
        """Stop listening, and close the connections of a service. Returns when its port is free."""
        ...

    def state(self, service: str) -> ProxyState:
        """The last state of a service."""
        ...

    def watch(self, listener: StateListener) -> None:
        """Call a function when the state of a service changes, or when the service must be kept again."""
        ...


class SimulatedProxy:
    """A proxy without sockets: it records what it was asked to do."""

    def __init__(self) -> None:
        self.pid: int | None = 4711
        self.kept: dict[str, Forwarding] = {}
        #: Ports at which another process listens: set it to simulate a conflict.
        self.in_use: set[int] = set()
        self._states: dict[str, ProxyState] = {}
        self._listeners: list[StateListener] = []

    async def keep(self, service: str, forwarding: Forwarding) -> None:
        """Record the forwarding, unless its port is in use."""
        if forwarding.port in self.in_use:
            self.kept.pop(service, None)
            raise CannotListen(forwarding.addresses[0], forwarding.port, "Address already in use", in_use=True)
        self.kept[service] = forwarding

    async def remove(self, service: str) -> None:
        """Forget a service."""
        self.kept.pop(service, None)
        self._states.pop(service, None)

    def state(self, service: str) -> ProxyState:
        """The state that `report` has set."""
        return self._states.get(service, ProxyState())

    def watch(self, listener: StateListener) -> None:
        """Call a function at each `report`."""
        self._listeners.append(listener)

    def report(self, service: str, state: ProxyState) -> None:
        """Set the state of a service, as a real proxy would after connections came or went."""
        self._states[service] = state
        for listener in self._listeners:
            listener(service)

    def restart(self) -> None:
        """Be killed and started again: every service must be kept again."""
        self.pid = (self.pid or 0) + 1
        services, self.kept = list(self.kept), {}
        for service in services:
            for listener in self._listeners:
                listener(service)
