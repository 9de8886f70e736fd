"""The sender of the request that is being answered."""

from __future__ import annotations

from contextvars import ContextVar

import msgspec


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """The other end of a connection."""

    host: str
    port: int
    #: Its verified client certificate, as DER; empty if it sent none.
    certificate: bytes = b""

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine or in this Pod."""
        import ipaddress  # noqa: PLC0415 - a server in this process needs none

        try:
            address = ipaddress.ip_address(self.host.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return (mapped or address).is_loopback


_peer: ContextVar[Peer | None] = ContextVar("steersman_peer", default=None)


def current_peer() -> Peer | None:
    """The sender of the current request; None if it did not come over a listener."""
    return _peer.get()


def set_peer(peer: Peer | None) -> None:
    """Set the sender of the requests that this task answers; None for a sender in this process."""
    _peer.set(peer)
