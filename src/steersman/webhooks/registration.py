"""The objects that register webhooks with the API server, generated from the handlers. Pure.

Guarantees
- Each kind has at most one mutating and one validating webhook. Their rules name exactly the version, the resource and
  the operations of the handlers.
- Webhooks have failurePolicy Fail, sideEffects None, matchPolicy Equivalent and a timeout of 5 seconds.
- They exclude the operator's own namespace, so a broken webhook cannot keep the operator from starting.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from steersman.objects import GroupKind, Key, Object
from steersman.schemas import crd_for
from steersman.webhooks.conversion import Conversions, VersionConverter
from steersman.webhooks.endpoint import WebhookEndpoint
from steersman.webhooks.handlers import AdmissionHandler
from steersman.webhooks.server import ADMISSION_TIMEOUT, CONVERT, Hook, admission_path

Tree = dict[str, Any]

_API = "admissionregistration.k8s.io/v1"
MUTATING, VALIDATING = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"


class WebhookRegistration:
    """The registration objects of a program's webhooks, which have the program's name.

    ``address`` is the URL of the port if there is no Service. ``ca_bundle`` is the authority of its certificate, as PEM.
    """

    def __init__(
        self, hooks: Iterable[Hook], endpoint: WebhookEndpoint, *, name: str, address: str = "", ca_bundle: bytes = b""
    ) -> None:
        found = list(hooks)
        self._handlers = [hook for hook in found if isinstance(hook, AdmissionHandler)]
        self._conversions = Conversions(hook for hook in found if isinstance(hook, VersionConverter))
        self._endpoint = endpoint
        self._name = name
        self._url = (endpoint.url or address).rstrip("/")
        #: The authority of the port's certificate, as in the field ``caBundle``; empty without one.
        self.ca_bundle = base64.b64encode(ca_bundle).decode()

    def objects(self) -> list[Tree]:
        """The webhook configurations, and the CRDs of kinds with several versions."""
        return [*self.configurations(), *self.definitions()]

    def configurations(self) -> list[Tree]:
        """The webhook configurations."""
        wanted = ((MUTATING, True), (VALIDATING, False))
        trees = [self._configuration(kind, mutates=mutates) for kind, mutates in wanted]
        return [tree for tree in trees if tree["webhooks"]]

    def definitions(self) -> list[Tree]:
        """The CRDs of kinds with several versions."""
        return [crd_for(*versions, conversion=self.conversion()) for versions in self._conversions.versions().values()]

    def converted_kinds(self) -> dict[GroupKind, str]:
        """The kinds with several versions, and the names of their CRDs."""
        found = self._conversions.versions()
        return {kind: f"{versions[0].gvr().resource}.{kind.group}" for kind, versions in found.items()}

    def conversion(self) -> Tree:
        """The field ``spec.conversion`` of a CRD."""
        webhook = {"clientConfig": self._client_config(CONVERT), "conversionReviewVersions": ["v1"]}
        return {"strategy": "Webhook", "webhook": webhook}

    def is_called_by(self, client_config: Tree) -> bool:
        """Whether a webhook with this client configuration calls this program: its Service, or its address."""
        if not self._endpoint.service:
            return str(client_config.get("url", "")).startswith(f"{self._url}/")
        service: Tree = client_config.get("service") or {}
        return Key(service.get("namespace", ""), service.get("name", "")) == Key.parse(self._endpoint.service)

    def _configuration(self, kind: str, *, mutates: bool) -> Tree:
        by_kind: dict[type[Object], list[AdmissionHandler[Any, Any]]] = {}
        for handler in self._handlers:
            if handler.mutates == mutates:
                by_kind.setdefault(handler.kind, []).append(handler)
        return {
            "apiVersion": _API,
            "kind": kind,
            "metadata": {"name": self._name},
            "webhooks": [self._webhook(cls, handlers, mutates=mutates) for cls, handlers in by_kind.items()],
        }

    def _webhook(self, cls: type[Object], handlers: list[AdmissionHandler[Any, Any]], *, mutates: bool) -> Tree:
        gvk, options = cls.gvk(), cls.__resource__
        operations = [each for each in ("CREATE", "UPDATE", "DELETE") if any(each in h.operations for h in handlers)]
        domain = gvk.group if "." in gvk.group else f"{gvk.group or 'core'}.k8s.io"
        webhook: Tree = {
            "name": f"{'mutate' if mutates else 'validate'}.{gvk.kind.lower()}.{gvk.version}.{domain}",
            "admissionReviewVersions": ["v1"],
            "clientConfig": self._client_config(admission_path(cls, mutates=mutates)),
            "rules": [
                {
                    "apiGroups": [gvk.group],
                    "apiVersions": [gvk.version],
                    "resources": [options.plural],
                    "operations": operations,
                    "scope": options.scope,
                }
            ],
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": int(ADMISSION_TIMEOUT),
        }
        if namespace := self._endpoint.namespace:
            own = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [namespace]}
            webhook["namespaceSelector"] = {"matchExpressions": [own]}
        return webhook

    def _client_config(self, path: str) -> Tree:
        ca = {"caBundle": self.ca_bundle} if self.ca_bundle else {}
        if not self._endpoint.service:
            return {"url": f"{self._url}{path}", **ca}
        namespace, name = Key.parse(self._endpoint.service)
        service = {"namespace": namespace, "name": name, "path": path, "port": self._endpoint.service_port}
        return {"service": service, **ca}
