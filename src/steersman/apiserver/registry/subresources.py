"""Subresources of built-in kinds that have their own kinds."""

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

SUBRESOURCES: Final[Mapping[GroupVersionKind, Mapping[str, Subresource]]] = {
    NAMESPACE: {"finalize": Subresource(gvk=NAMESPACE, verbs=("update",))},
    POD: {
        "binding": Subresource(gvk=BINDING, verbs=("create",)),
        "eviction": Subresource(gvk=EVICTION, verbs=("create",)),
    },
    SERVICE_ACCOUNT: {"token": Subresource(gvk=TOKEN_REQUEST, verbs=("create",))},
}
