"""Remember the defaults that the server adds to a write, so that Steersman does not write again because of them."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b

from steersman.patterns.children.differences import Path

#: The limit of each memory. The child that was looked up longest ago is forgotten first, and then written once more.
_REMEMBERED_MAX = 100_000


class ServerDefaults:
    """The values that a server restored after their removal, and what it made of overwrites."""

    def __init__(self) -> None:
        self._values: OrderedDict[tuple[str, tuple[Path, ...]], bytes] = OrderedDict()
        self._overwrites: OrderedDict[str, tuple[bytes, bytes]] = OrderedDict()

    def get(self, uid: str, paths: tuple[Path, ...]) -> bytes | None:
        """The restored values of these fields; None if they were not restored."""
        if (uid, paths) in self._values:
            self._values.move_to_end((uid, paths))
        return self._values.get((uid, paths))

    def remember(self, uid: str, paths: tuple[Path, ...], values: bytes) -> None:
        """Record the restored values of these fields."""
        self._values[uid, paths] = values
        self._values.move_to_end((uid, paths))
        if len(self._values) > _REMEMBERED_MAX:
            self._values.popitem(last=False)

    def completes(self, uid: str, sent: bytes, stored: bytes) -> bool:
        """Whether the server stored exactly this when it was last sent that."""
        if uid in self._overwrites:
            self._overwrites.move_to_end(uid)
        return self._overwrites.get(uid) == (_digest(sent), _digest(stored))

    def remember_overwrite(self, uid: str, sent: bytes, stored: bytes) -> None:
        """Record what the server stored of an overwrite."""
        self._overwrites[uid] = _digest(sent), _digest(stored)
        self._overwrites.move_to_end(uid)
        if len(self._overwrites) > _REMEMBERED_MAX:
            self._overwrites.popitem(last=False)


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()
