"""The port of webhooks, and the address at which the API server calls it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from steersman.objects import Key
from steersman.transport import ServerTls


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEndpoint:
    """The port of a manager's webhooks: ``WebhookEndpoint(service="shop-system/shop-webhooks")``.

    - ``service`` is the namespace and name of the Service through which the API server calls the port. For a program
      outside of the cluster, ``url`` is its address instead. Without both, the API server must be on this machine.
    - ``host`` is the address to listen on: by default all interfaces with a Service, and loopback otherwise.
    - Without ``tls``, the manager creates certificates and keeps them in the Secret ``secret``. Its default name is that
      of the Service with ``-tls``.
    - ``tls`` reads certificates from files instead, such as the mounted Secret of cert-manager. ``ca_file`` is then the
      authority for the caBundle; omit it if another program sets the caBundle.
    - With ``client_ca_file``, the port answers admission reviews only from clients with a certificate that this authority
      signed. ``client_names`` are the accepted common names; by default any. Conversions need no certificate, because
      kube-apiserver presents none to conversion webhooks.
    - ``leaving``: with a Service, the port answers for this many seconds after a stop was requested. The API server
      may call a replica until the Service no longer lists it. If it is longer than the manager's grace period, add the
      difference to ``terminationGracePeriodSeconds``.
    - With ``install``, the manager also applies its webhook configurations when it starts.
    """

    service: str = ""
    service_port: int = 443
    url: str = ""
    port: int = 9443
    host: str = ""
    tls: ServerTls | None = None
    ca_file: str | None = None
    client_ca_file: str | None = None
    client_names: tuple[str, ...] = ()
    secret: str = ""
    install: bool = False
    leaving: float = 5.0

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port must be a number up to 65535, or 0 for a free port (got {self.port})")
        if self.service and self.url:
            raise ValueError("pass service= or url=, not both: the API server calls only one of them")
        if self.service and not Key.parse(self.service).namespace:
            raise ValueError(f'service="{self.service}" has no namespace; write service="NAMESPACE/{self.service}"')
        if self.url and (urlsplit(self.url).scheme != "https" or not urlsplit(self.url).hostname):
            raise ValueError(f'url="{self.url}" must begin with https:// and name a host')
        try:
            _ = urlsplit(self.url).port
        except ValueError as error:
            raise ValueError(f'url="{self.url}": {error}') from None
        if self.tls is not None and self.client_ca_file is not None:
            raise ValueError(
                "with tls=, pass the client CA there: tls=ServerTls(..., client_ca_file=..., require_client=True)"
            )
        if isinstance(self.client_names, str):
            raise TypeError(f'client_names is a collection; write client_names=("{self.client_names}",)')
        if self.client_names and not self.checks_clients:
            raise ValueError("client_names needs an authority to verify the certificates: pass client_ca_file")

    @property
    def checks_clients(self) -> bool:
        """Whether clients need a certificate."""
        return self.client_ca_file is not None or (self.tls is not None and self.tls.has_client_authority)

    @property
    def listens_on(self) -> str:
        """The address to listen on."""
        return self.host or ("0.0.0.0" if self.service else "127.0.0.1")  # noqa: S104 - a Service reaches the Pod's address

    @property
    def names(self) -> tuple[str, ...]:
        """The host names and addresses for which the certificate is valid."""
        if self.service:
            namespace, name = Key.parse(self.service)
            return (f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local", f"{name}.{namespace}")
        host = urlsplit(self.url).hostname if self.url else None
        return (host,) if host else tuple(dict.fromkeys(("127.0.0.1", "localhost", self.listens_on)))

    @property
    def namespace(self) -> str:
        """The namespace of the Service; empty without one."""
        return Key.parse(self.service).namespace if self.service else ""

    def secret_name(self, program: str) -> str:
        """The name of the Secret with the certificates of a program."""
        service = Key.parse(self.service).name if self.service else f"{program}-webhooks"
        return self.secret or f"{service}-tls"
