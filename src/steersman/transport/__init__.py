"""Transport: the only package that opens sockets.

Guarantees of every transport
- A request is delivered at most once, and an error says whether it may have been.
- A stream never takes a connection from other requests, and has no deadline once it has begun.
- Closing or cancelling ends the exchange on both sides and leaves neither task nor socket behind.
- Every failure is an error of `steersman.errors`, and contains no secret.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steersman.transport.http import HttpTransport
from steersman.transport.inprocess import InProcessTransport
from steersman.transport.protocol import (
    DEFAULT_TIMEOUT,
    MAX_BODY,
    Handler,
    Push,
    Pushing,
    Response,
    SendOptions,
    Separable,
    ServerResponse,
    Transport,
    TransportWrapper,
    separated,
)
from steersman.transport.tls import ServerTls, TlsMaterial

if TYPE_CHECKING:
    from steersman.transport.listener import Listener, Peer, current_peer

#: Imported on first use: a client needs no server, and importing aiohttp's server is slow.
_LATER = {"Listener": "listener", "Peer": "listener", "current_peer": "listener"}

__all__ = [
    "DEFAULT_TIMEOUT",
    "MAX_BODY",
    "Handler",
    "HttpTransport",
    "InProcessTransport",
    "Listener",
    "Peer",
    "Push",
    "Pushing",
    "Response",
    "SendOptions",
    "Separable",
    "ServerResponse",
    "ServerTls",
    "TlsMaterial",
    "Transport",
    "TransportWrapper",
    "current_peer",
    "separated",
]


def __getattr__(name: str) -> Any:
    """Import the server's names on first access."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
