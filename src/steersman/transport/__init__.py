"""Transport: the only room that opens sockets.

Guarantees, the same for every transport
- A request is delivered at most once, and an error says whether it may have been.
- A stream never takes a place from other requests, and has no deadline once it has begun.
- Closing or cancelling ends the exchange on both sides and leaves neither task nor socket behind.
- Every failure is an error of `steersman.objects.errors`, without a secret in it.
"""

from steersman.transport.http import HttpTransport
from steersman.transport.inprocess import InProcessTransport
from steersman.transport.protocol import DEFAULT_TIMEOUT, MAX_BODY, Handler, Response, ServerResponse, Transport
from steersman.transport.tls import TlsMaterial

__all__ = [
    "DEFAULT_TIMEOUT",
    "MAX_BODY",
    "Handler",
    "HttpTransport",
    "InProcessTransport",
    "Response",
    "ServerResponse",
    "TlsMaterial",
    "Transport",
]
