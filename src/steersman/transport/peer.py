"""The sender of the request that is being answered."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from pathlib import Path

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


def peer_user(peer: Peer, port: int) -> int | None:
    """The user id of the process that is connected to a port of this machine from the same machine; None if unknown.

    Linux lists the sockets of all users, with their owners. A socket that its process has closed has no owner any more,
    so only established ones count.
    """
    wanted = (f"{peer.port:04X}", f"{port:04X}", "01")
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{name}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            ports = fields[1].rpartition(":")[2], fields[2].rpartition(":")[2]
            if (*ports, fields[3]) == wanted and _address(fields[1]) == peer.host:
                return int(fields[7])
    return None


def _address(field: str) -> str:
    """The address in a line of the kernel's list; that of an IPv4 connection also if its socket is one of IPv6."""
    import ipaddress  # noqa: PLC0415 - as above

    words = bytes.fromhex(field.rpartition(":")[0])
    # Each group of four bytes is a number in the order of this machine.
    data = b"".join(
        int.from_bytes(words[start : start + 4], sys.byteorder).to_bytes(4, "big") for start in range(0, len(words), 4)
    )
    address = ipaddress.ip_address(data)
    return str(getattr(address, "ipv4_mapped", None) or address)


_peer: ContextVar[Peer | None] = ContextVar("steersman_peer", default=None)


def current_peer() -> Peer | None:
    """The sender of the current request; None if it did not come over a listener."""
    return _peer.get()


def set_peer(peer: Peer | None) -> None:
    """Set the sender of the requests that this task answers; None for a sender in this process."""
    _peer.set(peer)
