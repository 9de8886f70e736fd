"""The errors of reads from the cache."""

from __future__ import annotations

from typing import Any

from steersman.cache.informer import Informer
from steersman.errors import ApiStatus, NotCached, NotFound, StatusDetails
from steersman.objects import Key, Kind, kind_name


def listed(informer: Informer[Any]) -> Informer[Any]:
    """The informer; raise the error if listing is denied."""
    if (denied := informer.denied) is not None:
        raise type(denied)(denied.status, tried=f"read {informer.gvk.kind} through the cache")
    return informer


def metadata_alone(kind: type[Any] | Kind) -> NotCached:
    """The error for a read of whole objects of a kind of which only metadata is cached."""
    name = kind_name(kind)
    return NotCached(
        f"{name} is cached as metadata alone (metadata_only=True): read that with client.metadata, whole objects with"
        f" client.live, or cache them with Manager(kinds={{{name}: KindOptions()}})"
    )


def whole(informer: Informer[Any], what: str) -> Informer[Any]:
    """The informer; raise `NotCached` if it follows only objects that others refer to."""
    if informer.names is None:
        return informer
    name = kind_name(informer.kind)
    raise NotCached(
        f"{name}: only objects that others refer to are cached, so {what} cannot be used; list it with a selector, or"
        f" cache all with Manager(kinds={{{name}: KindOptions()}})"
    )


def not_found(informer: Informer[Any], key: Key) -> NotFound:
    """The error for an object that is not in the cache."""
    details = StatusDetails(name=key.name, kind=informer.gvk.kind, group=informer.gvk.group)
    status = ApiStatus(
        message=f'{informer.gvk.kind} "{key}" not found in the cache', reason="NotFound", code=404, details=details
    )
    return NotFound(status, tried=f"get {informer.gvk.kind} {key} from the cache")
