"""Freeing many objects without blocking the event loop.

Guarantees
- A large container is emptied a few thousand entries per turn of the event loop, because freeing the entries takes as
  long as creating them.
- A small container is freed immediately and costs no turn.
- Without a running event loop, everything is freed immediately.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from steersman.cache.stored_object import StoredObject
from steersman.objects import Key

#: How many entries are freed per turn of the event loop.
PORTION = 2048

#: What `Disposal` empties. The caller drops its own reference and never reads the container again.
Container: TypeAlias = dict[Any, Any] | set[Any] | list[Any]


class Disposal:
    """Empties the large containers that an informer no longer needs, one by one."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[Container] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, *containers: Container, entries: int) -> None:
        """Free containers of about ``entries`` entries each, including nested dicts."""
        if entries <= PORTION:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if not self._waiting:
            loop.call_soon(self._free_portion, loop)
        self._waiting.extend(containers)

    def _free_portion(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting, left = self._waiting, PORTION
        while waiting and left:
            container = waiting[-1]
            if not container:
                waiting.pop()
                continue
            left -= 1
            if isinstance(container, dict):
                value = container.popitem()[1]
                if isinstance(value, dict):
                    # The keys under one index value: they count toward the portion too.
                    waiting.append(cast("dict[Any, Any]", value))
            else:
                container.pop()
        if waiting:
            loop.call_soon(self._free_portion, loop)


class Noted:
    """Keys, each with the last state that handlers were notified of. The handlers of an informer share it, read-only.

    When the last handler drops its reference, `Disposal` frees it.
    """

    __slots__ = ("_disposal", "_entries", "olds")

    def __init__(self, entries: dict[Key, StoredObject | None], disposal: Disposal) -> None:
        self.olds: Mapping[Key, StoredObject | None] = entries
        self._entries = entries
        self._disposal = disposal

    def __del__(self) -> None:
        self._disposal.add(self._entries, entries=len(self._entries))
