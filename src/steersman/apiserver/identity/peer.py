"""The peer of the connection that a request came over."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steersman.transport import Peer


def request_peer() -> Peer | None:
    """The sender of the current request; None if it is within this process.

    Requests over a port come through a `transport.Listener`. If that was never imported there is no port, and a server
    in one process need not import it.
    """
    listener = sys.modules.get("steersman.transport.listener")
    return listener.current_peer() if listener is not None else None
