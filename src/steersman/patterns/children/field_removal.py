"""Fields that must be absent: a null in a child, or ``remove=``.

Guarantees
- The field is removed whichever field manager owns it. Server-side apply gives up only our own fields, so a second request
  removes the rest, and only if the field exists.
- The removal applies to exactly the object and version that was read.
- A field that the server restores (a default) is not removed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import structs

from steersman.client import PreparedApply
from steersman.controller import InternalClient
from steersman.errors import ApiStatus, Conflict, Invalid
from steersman.objects import SERVER_METADATA, Object, Unstructured, raw_bytes, resource_version_of, tree_of, uid_of
from steersman.patches import JsonPatch, json_patch, pointer
from steersman.patterns.children.differences import Path, Tree, find, parse_path, without_nulls
from steersman.patterns.children.outputs import Output
from steersman.patterns.children.server_defaults import ServerDefaults


def removal_of(prepared: PreparedApply[Any], named: Iterable[str], server_defaults: ServerDefaults) -> Removal | None:
    """Take the nulls out of an apply. Returns the removal of those fields and of ``named``; None if there are none."""
    tree, paths = without_nulls(msgspec.json.decode(prepared.intent.body))
    if paths:
        prepared.intent = structs.replace(prepared.intent, body=msgspec.json.encode(tree))
    paths = (*(path for path in paths if not _is_the_servers(path)), *(parse_path(each) for each in named))
    return Removal(paths, server_defaults) if paths else None


class Removal:
    """The fields of one child that must be absent."""

    def __init__(self, paths: tuple[Path, ...], server_defaults: ServerDefaults) -> None:
        self._paths = paths
        self._server_defaults = server_defaults

    def left_in(self, obj: Object | Unstructured) -> bool:
        """Whether an object has one of the fields, other than with a default that the server restores."""
        present = self._found(obj)
        restored = self._server_defaults.restored_values(uid_of(obj) or "", self._paths)
        return bool(present) and restored != _values(present)

    async def carry_out(
        self, client: InternalClient, output: Output, obj: Object | Unstructured
    ) -> Object | Unstructured:
        """Remove the fields that exist."""
        if not self.left_in(obj):
            return obj
        present = self._found(obj)
        operations = [json_patch.test(pointer("metadata", "resourceVersion"), resource_version_of(obj))]
        operations += [json_patch.remove(pointer(*steps)) for steps, _ in present]
        try:
            answer: Any = await client.patch(
                cast("Any", output.known.kind), output.identity.key, JsonPatch.of(*operations)
            )
        except Invalid as error:
            if error.causes:
                raise
            message = f"{output.identity} changed while fields were being removed from it"
            raise Conflict(ApiStatus(message=message, reason="Conflict", code=409), tried="remove fields") from None
        left = self._found(answer)
        if left:
            self._server_defaults.remember_restored(uid_of(obj) or "", self._paths, _values(left))
        return cast("Object | Unstructured", answer)

    def _found(self, obj: Object | Unstructured) -> list[tuple[list[str | int], Any]]:
        raw = raw_bytes(obj)
        tree: Tree = tree_of(obj) if raw is None else msgspec.json.decode(raw)
        return [place for path in self._paths if (place := find(tree, path)) is not None]


def _is_the_servers(path: Path) -> bool:
    """Whether only the server writes a field. Programs that print objects often include such fields as nulls, by accident."""
    return path == ("status",) or (len(path) == 2 and path[0] == "metadata" and path[1] in SERVER_METADATA)


def _values(places: list[tuple[list[str | int], Any]]) -> bytes:
    return msgspec.json.encode(places)
