"""Addresses at which a program listens. Pure."""

from __future__ import annotations

#: The addresses that mean all interfaces of one family, and the loopback address of that family.
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound

ALL_INTERFACES = frozenset(_LOOPBACK)


def local_address(address: str) -> str:
    """Where this machine reaches a listener: at loopback if it listens on all interfaces, else at its own address.

    A listener at ``::`` may accept IPv6 alone, so its loopback address is ``::1``.
    """
    return _LOOPBACK.get(address, address)
