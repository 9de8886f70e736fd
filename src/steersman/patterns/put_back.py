"""Remembering what servers put back after it was removed, so that it is not removed again and again."""

from __future__ import annotations

from collections import OrderedDict

from steersman.patterns.differences import Path

_REMEMBERED_MAX = 10_000


class PutBack:
    """What servers put back after it was removed: defaults."""

    def __init__(self) -> None:
        self._values: OrderedDict[tuple[str, tuple[Path, ...]], bytes] = OrderedDict()

    def get(self, uid: str, paths: tuple[Path, ...]) -> bytes | None:
        """The values that were there again."""
        return self._values.get((uid, paths))

    def remember(self, uid: str, paths: tuple[Path, ...], values: bytes) -> None:
        """These values were there again."""
        self._values[uid, paths] = values
        if len(self._values) > _REMEMBERED_MAX:
            self._values.popitem(last=False)
