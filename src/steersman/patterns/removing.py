"""Fields that must not be there: a null in a child, or ``remove=``.

Guarantees
- The field goes away whoever set it: server-side apply can only give up what one owns oneself, so that what is left is removed by
  a request of its own, and only if it is there.
- The removal is of exactly the object and version that was looked at.
- A field that the server puts back by itself (a default) is not removed again and again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import structs

from steersman.client.bindings import raw_bytes, resource_version_of, tree_of, uid_of
from steersman.client.preparing import PreparedApply
from steersman.controller import ReconcileClient
from steersman.objects import Object, Unstructured
from steersman.objects.errors import Conflict, Invalid
from steersman.objects.status import Status
from steersman.patches import JsonPatch, json_patch, pointer
from steersman.patterns.differences import Path, Tree, find, parse_path, without_nulls
from steersman.patterns.outputs import Output
from steersman.patterns.put_back import PutBack

_SYSTEM = frozenset(
    {"creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}
)


def removal_of(prepared: PreparedApply[Any], named: Iterable[str], put_back: PutBack) -> Removal | None:
    """Take the nulls out of what is to be applied; what to remove instead, if there is anything."""
    tree, paths = without_nulls(msgspec.json.decode(prepared.intent.body))
    if paths:
        prepared.intent = structs.replace(prepared.intent, body=msgspec.json.encode(tree))
    paths = (*(path for path in paths if not _is_the_servers(path)), *(parse_path(each) for each in named))
    return Removal(paths, put_back) if paths else None


class Removal:
    """The fields of one child that must not be there."""

    def __init__(self, paths: tuple[Path, ...], put_back: PutBack) -> None:
        self._paths = paths
        self._put_back = put_back

    def left_in(self, obj: Object | Unstructured) -> bool:
        """Whether an object holds one of them, other than what the server puts there itself."""
        found = self._found(obj)
        return bool(found) and self._put_back.get(uid_of(obj) or "", self._paths) != _values(found)

    async def carry_out(
        self, client: ReconcileClient, output: Output, obj: Object | Unstructured
    ) -> Object | Unstructured:
        """Remove what is there."""
        if not self.left_in(obj):
            return obj
        found = self._found(obj)
        operations = [json_patch.test(pointer("metadata", "resourceVersion"), resource_version_of(obj))]
        operations += [json_patch.remove(pointer(*steps)) for steps, _ in found]
        try:
            answer: Any = await client.patch(
                cast("Any", output.known.kind), output.identity.key, JsonPatch.of(*operations)
            )
        except Invalid as error:
            if error.causes:
                raise
            message = f"{output.identity} changed while fields were being removed from it"
            raise Conflict(Status(message=message, reason="Conflict", code=409), tried="remove fields") from None
        left = self._found(answer)
        if left:
            self._put_back.remember(uid_of(obj) or "", self._paths, _values(left))
        return cast("Object | Unstructured", answer)

    def _found(self, obj: Object | Unstructured) -> list[tuple[list[str | int], Any]]:
        raw = raw_bytes(obj)
        tree: Tree = tree_of(obj) if raw is None else msgspec.json.decode(raw)
        return [found for path in self._paths if (found := find(tree, path)) is not None]


def _is_the_servers(path: Path) -> bool:
    """Whether a field is the server's alone; programs that print objects often write nulls there, and mean nothing."""
    return path == ("status",) or (len(path) == 2 and path[0] == "metadata" and path[1] in _SYSTEM)


def _values(found: list[tuple[list[str | int], Any]]) -> bytes:
    return msgspec.json.encode(found)
