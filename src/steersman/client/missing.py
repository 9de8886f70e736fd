"""Kinds that a server does not serve."""

from __future__ import annotations

from steersman.objects import GroupVersionKind
from steersman.objects.errors import StatusError
from steersman.objects.status import ApiStatus


class KindNotServed(StatusError):
    """The server does not serve the kind: its CustomResourceDefinition is missing.

    Not a `NotFound`: code that treats NotFound as "already deleted" must not hide a missing kind.
    """


def kind_not_served(kind: GroupVersionKind, server: str, *, verb: str = "find") -> KindNotServed:
    """The error for a missing kind, with how to install it."""
    message = (
        f"kind {kind.kind} ({kind.api_version}) is not served by {server or 'this server'}; apply its CRD with "
        f"client.install(...), or with: steersman generate crds MODULE | kubectl apply --server-side -f -"
    )
    return KindNotServed(ApiStatus(message=message, reason="NotFound", code=404), tried=f"{verb} {kind.kind}")
