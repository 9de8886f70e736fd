"""Remembers what the server adds to children, so that Steersman does not write them again because of it.

There are two cases, each with its own memory:

- A child wants a field to be absent, Steersman removes it, and the server puts a default back.
- A child is overwritten whole, and the server adds defaults to what it was sent.

Each memory has a bound. The child that was looked up longest ago is forgotten first: it is written once more, and that write
changes nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import TypeVar

from steersman.patterns.children.differences import Path

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_REMEMBERED_MAX = 100_000


class ServerDefaults:
    """The values that a server restored after their removal, and what it stored of overwrites; by the child's uid."""

    def __init__(self) -> None:
        self._restored: OrderedDict[tuple[str, tuple[Path, ...]], bytes] = OrderedDict()
        self._overwrites: OrderedDict[str, tuple[bytes, bytes]] = OrderedDict()

    def restored_values(self, uid: str, paths: tuple[Path, ...]) -> bytes | None:
        """The restored values of these fields; None if they were not restored."""
        return _get(self._restored, (uid, paths))

    def remember_restored(self, uid: str, paths: tuple[Path, ...], values: bytes) -> None:
        """Record the restored values of these fields."""
        _put(self._restored, (uid, paths), values)

    def stored_before(self, uid: str, sent: bytes, stored: bytes) -> bool:
        """Whether the server made exactly ``stored`` of ``sent`` when the child was last overwritten."""
        return _get(self._overwrites, uid) == (_digest(sent), _digest(stored))

    def remember_overwrite(self, uid: str, sent: bytes, stored: bytes) -> None:
        """Record what the server stored of an overwrite."""
        _put(self._overwrites, uid, (_digest(sent), _digest(stored)))


def _get(memory: OrderedDict[_Key, _Value], key: _Key) -> _Value | None:
    if key in memory:
        memory.move_to_end(key)
    return memory.get(key)


def _put(memory: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > _REMEMBERED_MAX:
        memory.popitem(last=False)


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()
