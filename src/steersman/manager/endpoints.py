"""One port for the kubelet, Prometheus and the person on call: where it is, and who may ask.

The answers are those of `steersman.manager.endpoint_handler`, imported when a manager with endpoints runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from steersman.transport import ServerTls


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Where a manager answers: ``Manager(..., endpoints=Endpoints(port=8080, host="0.0.0.0"))``.

    ``host`` is the loopback interface unless given: a Pod whose kubelet probes it, or that is scraped, needs
    ``"0.0.0.0"``. With ``token_review``, whoever asks from elsewhere for metrics or the debug page needs a token that
    RBAC lets read the path.
    """

    port: int = 8080
    host: str = "127.0.0.1"
    tls: ServerTls | None = None
    token_review: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"a port is a number up to 65535, or 0 for a free one; got {self.port}")
