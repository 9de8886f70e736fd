"""Ports that a test may listen on a moment later, and the address at which others reach them."""

from __future__ import annotations

import os
import random  # noqa: TID251 - which of many free ports is of no account
import socket
from collections.abc import Iterator

#: Below the ports that the kernel gives to connections: between two calls no other process takes one by chance.
LOWEST, EACH = 12_000, 2_000
#: As many workers as a run has on 7 cores; a run without workers, beside that of CI, has ports of its own.
WORKERS = 9


def _candidates() -> Iterator[int]:
    """The ports of this worker, each once, then again."""
    name = os.environ.get("PYTEST_XDIST_WORKER")
    worker = int(name.removeprefix("gw")) % WORKERS if name else WORKERS
    first = random.randrange(EACH)
    while True:
        yield from (LOWEST + worker * EACH + (first + number) % EACH for number in range(EACH))


_ports = _candidates()


def free_port(address: str = "127.0.0.1") -> int:
    """A port that no process listens on, and no other worker is given."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for port in _ports:
        with socket.socket(family) as probe:
            try:
                probe.bind((address, port))
            except OSError:
                continue
            return port
    raise AssertionError


def own_address() -> str:
    """An address of this machine that other machines would use."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Connecting a datagram socket sends nothing; it only chooses a route.
        probe.connect(("192.0.2.1", 9))
        return probe.getsockname()[0]
