"""Children that several owners share: declared with ``owner=False``.

Guarantees
- Each owner writes its own fields, as a part of the program that is named after the owner. So several owners of one operator can add
  to one object, and none removes what another declares.
- An owner that replaces one of the same name continues with its fields.
- The fields of owners that no longer exist move to the next owner that is reconciled, which removes those that it does not declare.
  Not so if the name of their owner is too long for the name of a field manager: then they stay.
- Earlier releases wrote for all owners under one name. These fields move to the first owner that is reconciled.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import blake2b
from typing import Any, cast

from steersman.cache import StoredView
from steersman.controller import Context, KindLike, internal_client
from steersman.errors import Forbidden, NotCached
from steersman.objects import Key, Object
from steersman.patterns.children.membership import managers_of
from steersman.patterns.children.memory import ChildMemory

_PREFIX = "shared-for-"
#: The longest name of a field manager that a server accepts.
_NAME_MAX = 128


class Share:
    """The fields of one owner in the children that it shares."""

    def __init__(self, ctx: Context, owner: Object, memory: ChildMemory) -> None:
        self._ctx = ctx
        self._client = internal_client(ctx)
        self._owner = owner
        self._memory = memory
        self._program = self._client.field_managers[0]
        self._of_kind = f"{_PREFIX}{owner.gvk().group_kind}:"
        self.part = self._part_of(owner.key)

    def _part_of(self, owner: Key) -> str:
        part = f"{self._of_kind}{owner.namespace}:{owner.name}"
        if len(self._program) + 1 + len(part) <= _NAME_MAX:
            return part
        return f"{_PREFIX}{blake2b(part.encode(), digest_size=12).hexdigest()}"

    async def taken(self, kind: KindLike, view: StoredView) -> StoredView | None:
        """A shared child after the fields that no living owner holds moved to this one; None if it was deleted meanwhile."""
        free = [each for each in managers_of(view) if await self._is_free(each)]
        return await self._moved(kind, view, free, self.part) if free else view

    async def given_up(self, kind: KindLike, view: StoredView, part: str) -> StoredView | None:
        """A child that is no longer shared, after this owner's share moved to the part that writes it now."""
        share = f"{self._program}/{self.part}"
        held = share.encode() in view.stored.managed_fields and share in managers_of(view)
        return await self._moved(kind, view, [share], part) if held else view

    async def _moved(self, kind: KindLike, view: StoredView, old: list[str], part: str) -> StoredView | None:
        # Once for each name: while an earlier release runs too, both would otherwise move its fields forever.
        with self._memory.moves_mark_first(f"{view.uid} {part}", " ".join(old)) as first:
            if not first:
                return view
            new = f"{self._program}/{part}" if part else self._program
            await self._client.move_entries(kind, view.key, old, new)
        return await self._client.view(kind, view.key)

    async def _is_free(self, manager: str) -> bool:
        """Whether a field manager is the program itself, or the share of an owner that no longer exists."""
        if manager == self._program:
            return True
        beginning = f"{self._program}/{self._of_kind}"
        if not manager.startswith(beginning) or manager == f"{self._program}/{self.part}":
            return False
        namespace, _, name = manager[len(beginning) :].partition(":")
        key = Key(namespace, name)
        with suppress(NotCached):
            if await self._client.view(type(self._owner), key) is not None:
                return False
        # Another manager may reconcile it, in another shard or namespace, so the cache does not decide that it is gone.
        try:
            return await self._ctx.client.live.metadata.find(cast("Any", type(self._owner)), key) is None
        except Forbidden:
            return False
