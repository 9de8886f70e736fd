"""Reserved ports on loopback.

Guarantee: no other program gets a reserved port until it is released, even while the program that listens on it
restarts. The port is bound with SO_REUSEPORT but not listened on, and the programs share it (a socket that does not
listen receives no connections).
"""

from __future__ import annotations

import socket
from typing import Self


class Ports:
    """The ports of one engine, held until the block ends."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def reserve(self) -> int:
        """Reserve a free port on 127.0.0.1."""
        held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._held.append(held)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        _, port = held.getsockname()
        return port

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for held in self._held:
            held.close()
