"""The objects that run a manager in a cluster: its Deployment, the Service of its metrics, and a network policy.

`steersman new` writes them as files, and ``steersman generate chart`` as templates: both are made here.
"""

from __future__ import annotations

import re
from importlib import resources

import msgspec

from steersman.manager import Manager
from steersman.objects import Key
from steersman.webhooks import WebhookEndpoint

#: A name for all objects: the longest is that of the Service NAME-webhooks, with at most 63 characters.
NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,52}[a-z0-9])?")
_MANIFESTS = ("deployment", "metrics", "network-policy")
#: The port of health, metrics and the debug page.
_PORT = 8443


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """What the manifests of a manager say: its name, where it runs, and the ports of its Pods."""

    name: str
    namespace: str
    image: str
    termination_seconds: int
    #: The port of the webhooks; 0 without webhooks.
    webhook_port: int
    #: Namespace and name of the Service of the webhooks; empty without one.
    webhook_service: str

    @classmethod
    def of(cls, manager: Manager, *, namespace: str, image: str = "") -> Workload:
        """The workload of a manager in a namespace; its webhooks have the Service of this namespace."""
        endpoint = manager.webhook_endpoint or WebhookEndpoint(service=f"{namespace}/{manager.name}-webhooks")
        has_webhooks = bool(manager.webhooks.hooks)
        service = f"{namespace}/{Key.parse(endpoint.service).name}" if endpoint.service else ""
        return cls(
            name=manager.name,
            namespace=namespace,
            image=image or f"{manager.name}:dev",
            termination_seconds=manager.termination_seconds,
            webhook_port=endpoint.port if has_webhooks else 0,
            webhook_service=service if has_webhooks else "",
        )

    @property
    def metrics_service(self) -> str:
        """Namespace and name of the Service of the metrics."""
        return f"{self.namespace}/{self.name}-metrics"

    def arguments(self) -> list[str]:
        """The arguments of ``steersman run MODULE`` in the container."""
        webhooks = [f"--webhook-service={self.webhook_service}"] if self.webhook_service else []
        return [
            "--host=0.0.0.0",
            f"--port={_PORT}",
            f"--tls-service={self.metrics_service}",
            "--token-review",
            *webhooks,
        ]

    def manifests(self) -> dict[str, str]:
        """The manifests as YAML, by the names of their files."""
        return {name: self._filled(name) for name in _MANIFESTS}

    def _filled(self, name: str) -> str:
        text = resources.files("steersman.cli").joinpath("project", f"{name}.yaml.txt").read_text(encoding="utf-8")
        port = self.webhook_port
        return text.format(
            **msgspec.structs.asdict(self),
            arguments=", ".join(self.arguments()),
            container_port=f", {{name: webhooks, containerPort: {port}}}" if port else "",
            ingress=f"    - ports: [{{protocol: TCP, port: {port}}}]  # webhooks, for the API server\n" if port else "",
        )
