"""Transport: the only package that opens sockets.

Guarantees of every transport
- A request is delivered at most once, and an error says whether it may have been.
- A stream never takes a connection from other requests, and has no deadline once it has begun.
- Closing or cancelling ends the exchange on both sides and leaves neither task nor socket behind.
- Every failure is an error of `steersman.errors`, and contains no secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.transport.addresses import (
    ALL_INTERFACES as ALL_INTERFACES,
    join_host_port as join_host_port,
    local_address as local_address,
)
from steersman.transport.exchange_response import ExchangeResponse as ExchangeResponse
from steersman.transport.in_process_transport import (
    InProcessResponse as InProcessResponse,
    InProcessTransport as InProcessTransport,
)
from steersman.transport.protocol import (
    DEFAULT_TIMEOUT as DEFAULT_TIMEOUT,
    MAX_BODY as MAX_BODY,
    Handler as Handler,
    Push as Push,
    Pushing as Pushing,
    Reservation as Reservation,
    Response as Response,
    SendOptions as SendOptions,
    Separable as Separable,
    ServerResponse as ServerResponse,
    Transport as Transport,
    TransportWrapper as TransportWrapper,
    separated as separated,
)
from steersman.transport.request_gate import gate as gate
from steersman.transport.tls import (
    PemKeyPair as PemKeyPair,
    ServerTls as ServerTls,
    ServerTlsSource as ServerTlsSource,
    TlsMaterial as TlsMaterial,
)

# Imported on first use: a client needs no server, a server in this process needs neither, and importing aiohttp is slow.
if TYPE_CHECKING:
    from steersman.transport.buffered_response import BufferedResponse as BufferedResponse
    from steersman.transport.certificates import (
        CertificateFacts as CertificateFacts,
        CertificateIssuer as CertificateIssuer,
        certificates_in as certificates_in,
        common_name as common_name,
    )
    from steersman.transport.http import HttpTransport as HttpTransport
    from steersman.transport.listener import HttpListener as HttpListener
    from steersman.transport.measurements import (
        MeasuredTransport as MeasuredTransport,
        RequestMeasurements as RequestMeasurements,
    )
    from steersman.transport.peer import Peer as Peer, current_peer as current_peer, peer_user as peer_user
    from steersman.transport.reachability import (
        HttpStatus as HttpStatus,
        Question as Question,
        Reachability as Reachability,
        Unreachable as Unreachable,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.transport.buffered_response": ["BufferedResponse"],
            "steersman.transport.certificates": [
                "CertificateFacts",
                "CertificateIssuer",
                "certificates_in",
                "common_name",
            ],
            "steersman.transport.http": ["HttpTransport"],
            "steersman.transport.listener": ["HttpListener"],
            "steersman.transport.measurements": ["MeasuredTransport", "RequestMeasurements"],
            "steersman.transport.peer": ["Peer", "current_peer", "peer_user"],
            "steersman.transport.reachability": ["HttpStatus", "Question", "Reachability", "Unreachable"],
        },
        needs={
            "cryptography": "certificates need the package cryptography: pip install 'steersman[server]', or"
            " 'steersman[webhooks]' for an operator"
        },
    )

__all__ = [
    "ServerTls",
    "TlsMaterial",
]
