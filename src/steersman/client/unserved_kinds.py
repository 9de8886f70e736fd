"""Kinds and names that a server does not serve."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from steersman.errors import ApiError, ApiStatus, KindNotServed
from steersman.objects import GroupVersion, GroupVersionKind
from steersman.wire import near_kinds, parse_aggregated_discovery

#: For how many seconds, and of how many kinds, the alternatives are kept: an informer tries again and again.
_KEPT, _MAX = 30.0, 1000
_INSTALL = "client.install(...), or with: steersman generate crds MODULE | kubectl apply --server-side -f -"


class Alternatives(NamedTuple):
    """What a server serves instead of a kind: the kind in other versions, or kinds of similar names."""

    versions: tuple[str, ...] = ()
    near: tuple[str, ...] = ()


class ServedAlternatives:
    """The alternatives to kinds that a server does not serve as requested."""

    def __init__(self) -> None:
        self._known: dict[GroupVersionKind, tuple[float, Alternatives]] = {}

    async def of(self, kind: GroupVersionKind, discover: Callable[[], Awaitable[list[bytes]]]) -> Alternatives:
        """The alternatives to a kind; ``discover`` reads the groups that the server serves."""
        now = asyncio.get_running_loop().time()
        asked, found = self._known.get(kind, (now - _KEPT, Alternatives()))
        if now - asked >= _KEPT:
            if len(self._known) >= _MAX:
                self._known.clear()
            found = await _discovered(kind, discover)
            self._known[kind] = (now, found)
        return found


async def _discovered(kind: GroupVersionKind, discover: Callable[[], Awaitable[list[bytes]]]) -> Alternatives:
    try:
        found = parse_aggregated_discovery(*await discover())
    except ApiError:
        return Alternatives()  # an old server, or the user may not discover: the error says the rest
    if any(each.gvk == kind for each in found.resources):
        return Alternatives()  # the server began to serve the kind a moment ago
    served = (resource for resource in found.resources if (resource.group, resource.kind) == (kind.group, kind.kind))
    return Alternatives(tuple(each.version for each in served), tuple(near_kinds(found, kind.kind)))


def kind_not_served(
    kind: GroupVersionKind, server: str, *, verb: str = "find", instead: Alternatives | None = None
) -> KindNotServed:
    """The error for a missing kind: how to install it, or what the server serves ``instead``."""
    message = f"kind {kind.kind} ({kind.api_version}) is not served by {server or 'this server'}; "
    versions, near = instead or Alternatives()
    if versions:
        served = ", ".join(f"{kind.group}/{version}" for version in versions)
        message += f"it serves {kind.kind} as {served}: use that version, or serve {kind.version} in the CRD"
    else:
        message += f"did you mean {' or '.join(near)}? If not, " if near else ""
        message += f"apply its CRD with {_INSTALL}"
    error = KindNotServed(ApiStatus(message=message, reason="NotFound", code=404), tried=f"{verb} {kind.kind}")
    error.versions = versions
    return error


def name_not_served(
    name: str, server: str, near: Sequence[str], unreadable: Iterable[GroupVersion] = ()
) -> KindNotServed:
    """The error for a name that means no resource: similar names, how to install a kind, and groups that failed."""
    message = f"no kind, resource or category {name[:100]!r} is served by {server or 'this server'}, which was just asked again; "
    message += f"did you mean {' or '.join(near)}? If not, " if near else ""
    message += f"install its definition with {_INSTALL}"
    if failed := ", ".join(map(str, unreadable)):
        message += f"; these groups could not be read: {failed}"
    return KindNotServed(ApiStatus(message=message, reason="NotFound", code=404), tried=f"find {name[:100]}")
