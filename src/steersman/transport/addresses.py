"""Addresses at which a program listens: where this machine reaches them, and how URLs and messages name them. Pure."""

from __future__ import annotations

#: The addresses that mean all interfaces of one family, and the loopback address of that family.
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound

ALL_INTERFACES = frozenset(_LOOPBACK)


def local_address(address: str) -> str:
    """Where this machine reaches a listener: at loopback if it listens on all interfaces, else at its own address.

    A listener at ``::`` may accept IPv6 alone, so its loopback address is ``::1``.
    """
    return _LOOPBACK.get(address, address)


def join_host_port(host: str, port: object) -> str:
    """A host and a port as URLs and messages join them: an IPv6 address is in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
