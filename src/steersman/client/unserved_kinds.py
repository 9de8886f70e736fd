"""Kinds that a server does not serve."""

from __future__ import annotations

from steersman.errors import ApiStatus, KindNotServed
from steersman.objects import GroupVersionKind


def kind_not_served(
    kind: GroupVersionKind, server: str, *, verb: str = "find", versions: tuple[str, ...] = ()
) -> KindNotServed:
    """The error for a missing kind: how to install it, or in which other ``versions`` the server serves it."""
    message = f"kind {kind.kind} ({kind.api_version}) is not served by {server or 'this server'}; "
    if versions:
        served = ", ".join(f"{kind.group}/{version}" for version in versions)
        message += f"it serves {kind.kind} as {served}: use that version, or serve {kind.version} in the CRD"
    else:
        message += (
            "apply its CRD with "
            "client.install(...), or with: steersman generate crds MODULE | kubectl apply --server-side -f -"
        )
    return KindNotServed(ApiStatus(message=message, reason="NotFound", code=404), tried=f"{verb} {kind.kind}")
