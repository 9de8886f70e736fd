"""Kinds that a server does not serve."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from steersman.errors import ApiError, ApiStatus, KindNotServed
from steersman.objects import GroupVersionKind
from steersman.wire import parse_aggregated_discovery

#: For how many seconds, and of how many kinds, the served versions are kept: an informer tries again and again.
_KEPT, _MAX = 30.0, 1000


class ServedVersions:
    """The versions in which a server serves kinds that it does not serve as requested."""

    def __init__(self) -> None:
        self._known: dict[GroupVersionKind, tuple[float, tuple[str, ...]]] = {}

    async def of(self, kind: GroupVersionKind, discover: Callable[[], Awaitable[bytes]]) -> tuple[str, ...]:
        """The versions of a kind; ``discover`` reads the groups that the server serves."""
        now = asyncio.get_running_loop().time()
        asked, versions = self._known.get(kind, (now - _KEPT, ()))
        if kind.group and now - asked >= _KEPT:
            if len(self._known) >= _MAX:
                self._known.clear()
            versions = await _discovered(kind, discover)
            self._known[kind] = (now, versions)
        return versions


async def _discovered(kind: GroupVersionKind, discover: Callable[[], Awaitable[bytes]]) -> tuple[str, ...]:
    try:
        found = parse_aggregated_discovery(await discover())
    except ApiError:
        return ()  # an old server, or the user may not discover: the error says the rest
    served = (each for each in found.resources if (each.group, each.kind) == (kind.group, kind.kind))
    # The server may have begun to serve the kind a moment ago.
    return tuple(each.version for each in served if each.version != kind.version)


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
