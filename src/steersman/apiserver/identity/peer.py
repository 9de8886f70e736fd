"""The peer of the connection that a request came over."""

from __future__ import annotations

from steersman.transport import Peer, current_peer


def request_peer() -> Peer | None:
    """The sender of the current request; None if it is within this process."""
    return current_peer()
