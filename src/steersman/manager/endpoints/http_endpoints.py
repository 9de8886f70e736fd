"""Where a manager serves health, metrics and the debug page, and who may read them.

`steersman.manager.endpoints.handler` answers the requests. A manager with endpoints imports it when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from steersman.objects import Key
from steersman.transport import ServerTls


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpEndpoints:
    """Where a manager serves health, metrics and the debug page: ``HttpEndpoints(port=8080, host="0.0.0.0")``.

    - ``host`` defaults to the loopback interface. A Pod that the kubelet probes, or Prometheus scrapes, needs
      ``"0.0.0.0"``.
    - ``service``, as in ``"shop-system/shop-metrics"``, is the Service through which clients read. The port then speaks
      TLS: the manager creates the certificates and keeps them in the Secret ``secret`` of that namespace, by default
      the name of the Service with ``-tls``. Clients verify them with its ``ca.crt``.
    - ``tls`` reads certificates from files instead, such as the mounted Secret of cert-manager.
    - With ``token_review``, every client of the metrics and the debug page needs a token that RBAC allows to get the
      path, also on this machine.
    """

    port: int = 8080
    host: str = "127.0.0.1"
    tls: ServerTls | None = None
    token_review: bool = False
    service: str = ""
    secret: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port must be a number up to 65535, or 0 for a free port (got {self.port})")
        if self.service and not Key.parse(self.service).namespace:
            raise ValueError(f'service="{self.service}" has no namespace; write service="NAMESPACE/{self.service}"')
        if self.service and self.tls is not None:
            raise ValueError("pass tls= or service=, not both: with service=, the manager creates the certificates")
        if self.secret and not self.service:
            raise ValueError(f'secret="{self.secret}" needs the Service for which the certificates are: pass service=')

    @property
    def is_encrypted(self) -> bool:
        """Whether the port speaks TLS."""
        return self.tls is not None or bool(self.service)

    @property
    def names(self) -> tuple[str, ...]:
        """The host names for which certificates are created: those of the Service, and of this machine."""
        namespace, name = Key.parse(self.service)
        inside = (f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local", f"{name}.{namespace}")
        return (*inside, "localhost", "127.0.0.1")

    @property
    def secret_key(self) -> Key:
        """The Secret with the certificates."""
        namespace, name = Key.parse(self.service)
        return Key(namespace, self.secret or f"{name}-tls")
