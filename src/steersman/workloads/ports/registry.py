"""The interface of a registry of ports, and a simulated one."""

from __future__ import annotations

from typing import Protocol


class NoPortLeft(RuntimeError):
    """Every port that the registry may choose is in use."""


class PortRegistry(Protocol):
    """Chooses ports for services and for the processes behind them."""

    async def allocate(self, key: str, address: str = "127.0.0.1") -> int:
        """A port for a key: the same one as before, in this run and in earlier runs of the project, if it is free."""
        ...

    def release(self, key: str) -> None:
        """End the claim of a key. The project still remembers the port."""
        ...

    def holder(self, address: str, port: int, *, other: bool = False) -> str | None:
        """The process that listens at a port, in words such as "nginx, pid 812"; None if none does.

        With ``other``, sockets of this process and its descendants do not count.
        """
        ...


class SimulatedPorts:
    """Ports that exist on paper: 20000, 20001 and so on."""

    def __init__(self) -> None:
        #: The ports of keys, also of released ones.
        self.ports: dict[str, int] = {}
        #: The processes that listen at a port, in words: set it to simulate a conflict.
        self.holders: dict[int, str] = {}
        self.released: list[str] = []
        self._next = 20000

    async def allocate(self, key: str, address: str = "127.0.0.1") -> int:  # noqa: ARG002 - see `PortRegistry`
        """The port of a key, which is free unless `holders` has it."""
        port = self.ports.get(key)
        while port is None or port in self.holders:
            port, self._next = self._next, self._next + 1
        self.ports[key] = port
        return port

    def release(self, key: str) -> None:
        """Record that the claim has ended."""
        self.released.append(key)

    def holder(self, address: str, port: int, *, other: bool = False) -> str | None:  # noqa: ARG002 - see `PortRegistry`
        """What `holders` has for the port."""
        return self.holders.get(port)
