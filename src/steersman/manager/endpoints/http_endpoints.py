"""Where a manager serves health, metrics and the debug page, and who may read them.

`steersman.manager.endpoints.handler` answers the requests. A manager with endpoints imports it when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from steersman.transport import ServerTls


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpEndpoints:
    """Where a manager serves health, metrics and the debug page: ``HttpEndpoints(port=8080, host="0.0.0.0")``.

    ``host`` defaults to the loopback interface. A Pod that the kubelet probes, or Prometheus scrapes, needs
    ``"0.0.0.0"``. With ``token_review``, every client of the metrics and the debug page needs a token that RBAC allows
    to get the path, also on this machine.
    """

    port: int = 8080
    host: str = "127.0.0.1"
    tls: ServerTls | None = None
    token_review: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port must be a number up to 65535, or 0 for a free port (got {self.port})")
