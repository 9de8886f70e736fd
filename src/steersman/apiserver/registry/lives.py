"""Deletion of Namespaces and Pods.

- A Namespace stays, terminating, until its own finalizers are gone; ``finalize`` removes them.
- A Pod gets a grace period; one without a node, or that has ended, is removed at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steersman.apiserver.registry.builtin.namespace import NamespaceStrategy
from steersman.apiserver.registry.builtin.pod import PodStrategy
from steersman.apiserver.registry.builtin.strategy import subtree
from steersman.apiserver.registry.definition import Subresource, Tree
from steersman.objects import GroupVersionKind

if TYPE_CHECKING:
    from steersman.apiserver.context import VerbContext
    from steersman.apiserver.request import ServerRequest
    from steersman.transport import ServerResponse

NAMESPACE = GroupVersionKind("", "v1", "Namespace")
POD = GroupVersionKind("", "v1", "Pod")
SERVICE_ACCOUNT = GroupVersionKind("", "v1", "ServiceAccount")


class NamespaceLife(NamespaceStrategy):
    """A Namespace with its deletion."""

    marks_first = True

    def mark_deletion(self, obj: Tree) -> None:
        """Set its phase to Terminating, without a grace period."""
        obj["metadata"].pop("deletionGracePeriodSeconds", None)
        obj["status"] = (obj.get("status") or {}) | {"phase": "Terminating"}

    def blocks_deletion(self, obj: Tree) -> bool:
        """Whether its spec still has finalizers."""
        return bool(subtree(obj, "spec").get("finalizers"))


async def _finalize(context: VerbContext, request: ServerRequest) -> ServerResponse:
    from steersman.apiserver.verbs.finalize import finalize  # noqa: PLC0415 - verbs know the registry, not it them

    return await finalize(context, request)


async def answer_binding(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Assign a Pod to a node."""
    from steersman.apiserver.verbs.binding import bind  # noqa: PLC0415 - as above

    return await bind(context, request)


async def _evict(context: VerbContext, request: ServerRequest) -> ServerResponse:
    from steersman.apiserver.verbs.eviction import evict  # noqa: PLC0415 - as above

    return await evict(context, request)


async def _request_token(context: VerbContext, request: ServerRequest) -> ServerResponse:
    from steersman.apiserver.verbs.token_request import request_token  # noqa: PLC0415 - as above

    return await request_token(context, request)


BINDING = GroupVersionKind("", "v1", "Binding")
EVICTION = GroupVersionKind("policy", "v1", "Eviction")
TOKEN_REQUEST = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
#: Subresources with their own kinds.
SUBRESOURCES: Mapping[GroupVersionKind, Mapping[str, Subresource]] = {
    NAMESPACE: {"finalize": Subresource(gvk=NAMESPACE, verbs=("update",), answer=_finalize)},
    POD: {
        "binding": Subresource(gvk=BINDING, verbs=("create",), answer=answer_binding),
        "eviction": Subresource(gvk=EVICTION, verbs=("create",), answer=_evict),
    },
    SERVICE_ACCOUNT: {"token": Subresource(gvk=TOKEN_REQUEST, verbs=("create",), answer=_request_token)},
}


class PodLife(PodStrategy):
    """A Pod with its deletion."""

    def grace(self, obj: Tree, requested: int | None) -> int | None:
        """The requested grace period, or that of its spec; 0 without a node, and after its end."""
        spec, status = subtree(obj, "spec"), subtree(obj, "status")
        if not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
            return 0
        seconds: int = spec.get("terminationGracePeriodSeconds", 0) if requested is None else requested
        return 1 if seconds < 0 else seconds
