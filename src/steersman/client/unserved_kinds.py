"""Kinds that a server does not serve."""

from __future__ import annotations

from steersman.errors import KindNotServed
from steersman.errors.status import ApiStatus
from steersman.objects import GroupVersionKind


def kind_not_served(kind: GroupVersionKind, server: str, *, verb: str = "find") -> KindNotServed:
    """The error for a missing kind, with how to install it."""
    message = (
        f"kind {kind.kind} ({kind.api_version}) is not served by {server or 'this server'}; apply its CRD with "
        f"client.install(...), or with: steersman generate crds MODULE | kubectl apply --server-side -f -"
    )
    return KindNotServed(ApiStatus(message=message, reason="NotFound", code=404), tried=f"{verb} {kind.kind}")
