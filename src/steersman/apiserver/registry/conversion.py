"""Conversion between the version that a resource serves and the one that stores its objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from steersman.apiserver.storage import Record
from steersman.objects import Tree


def _never_same(_: Record) -> bool:
    return False


class WebhookConverter(Protocol):
    """Converts objects of a resource by a webhook."""

    async def readable(self, records: list[Record]) -> list[Record]:
        """Stored objects in the version of the resource."""
        ...

    async def storable(self, tree: Tree) -> None:
        """Change an object to the stored version."""
        ...

    async def converted(self, tree: Tree, version: str) -> Tree:
        """An object in another version, with fields that this version does not know."""
        ...

    async def change(self, tree: Tree, version: str) -> None:
        """Change an object to another version."""
        ...


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """Conversion between the served kind and the group-version that stores it; changes trees in place."""

    to_stored: Callable[[Tree], None]
    from_stored: Callable[[Tree], None]
    #: Whether a stored object is served unchanged.
    is_same: Callable[[Record], bool] = _never_same
    #: The schemas of all versions of a custom resource, served or not.
    schemas: Mapping[str, Tree] = {}
    #: Converts an object between served versions, given the target's name, and keeps fields that it does not know. The
    #: object may lack parts. None if fields keep their names, or only the webhook can tell.
    change: Callable[[Tree, str], None] | None = None
    #: The webhook that converts objects; the functions above expect objects that it has converted.
    webhook: WebhookConverter | None = None
