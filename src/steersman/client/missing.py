"""Kinds that a server does not serve."""

from __future__ import annotations

from steersman.objects import GroupVersionKind
from steersman.objects.errors import StatusError
from steersman.objects.status import Status


class KindNotServed(StatusError):
    """The server does not know the kind at all: its CustomResourceDefinition is missing.

    Not a `NotFound`: "it is gone already" is no answer where nothing of the kind can ever have been.
    """


def kind_not_served(kind: GroupVersionKind, server: str, *, verb: str = "find") -> KindNotServed:
    """Say which kind is missing where, and how to bring it there."""
    message = (
        f"kind {kind.kind} ({kind.api_version}) is not served by {server or 'this server'}; apply its CRD with "
        f"client.install(...), or with: steersman generate crds MODULE | kubectl apply --server-side -f -"
    )
    return KindNotServed(Status(message=message, reason="NotFound", code=404), tried=f"{verb} {kind.kind}")
