"""Subresources of built-in kinds besides ``status`` and ``scale``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from steersman.apiserver.registry.definition import Subresource
from steersman.objects import GroupVersionKind

NAMESPACE: Final = GroupVersionKind("", "v1", "Namespace")
POD: Final = GroupVersionKind("", "v1", "Pod")
SERVICE_ACCOUNT: Final = GroupVersionKind("", "v1", "ServiceAccount")
BINDING: Final = GroupVersionKind("", "v1", "Binding")
EVICTION: Final = GroupVersionKind("policy", "v1", "Eviction")
TOKEN_REQUEST: Final = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")

CERTIFICATE_SIGNING_REQUEST: Final = GroupVersionKind("certificates.k8s.io", "v1", "CertificateSigningRequest")
_READ_AND_WRITE: Final = ("get", "patch", "update")

_UPGRADED: Final = ("create", "get")


def _connection(kind: str, verbs: tuple[str, ...] = _UPGRADED) -> Subresource:
    return Subresource(gvk=GroupVersionKind("", "v1", kind), verbs=verbs)


#: The subresources that connect a client with a Pod; their kinds are options, which clients give in the query.
CONNECTIONS: Final[Mapping[GroupVersionKind, Mapping[str, Subresource]]] = {
    POD: {
        "attach": _connection("PodAttachOptions"),
        "exec": _connection("PodExecOptions"),
        "portforward": _connection("PodPortForwardOptions"),
        "proxy": _connection("PodProxyOptions", ("create", "delete", "get", "patch", "update")),
    }
}

SUBRESOURCES: Final[Mapping[GroupVersionKind, Mapping[str, Subresource]]] = {
    CERTIFICATE_SIGNING_REQUEST: {"approval": Subresource(gvk=CERTIFICATE_SIGNING_REQUEST, verbs=_READ_AND_WRITE)},
    NAMESPACE: {"finalize": Subresource(gvk=NAMESPACE, verbs=("update",))},
    POD: {
        **CONNECTIONS[POD],
        "binding": Subresource(gvk=BINDING, verbs=("create",)),
        "ephemeralcontainers": Subresource(gvk=POD, verbs=_READ_AND_WRITE),
        "eviction": Subresource(gvk=EVICTION, verbs=("create",)),
        "resize": Subresource(gvk=POD, verbs=_READ_AND_WRITE),
    },
    SERVICE_ACCOUNT: {"token": Subresource(gvk=TOKEN_REQUEST, verbs=("create",))},
}
