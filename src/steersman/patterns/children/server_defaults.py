"""Remember the defaults that the server restores after a removal, so that Steersman does not remove them again."""

from __future__ import annotations

from collections import OrderedDict

from steersman.patterns.children.differences import Path

_REMEMBERED_MAX = 10_000


class ServerDefaults:
    """The values that a server restored after their removal."""

    def __init__(self) -> None:
        self._values: OrderedDict[tuple[str, tuple[Path, ...]], bytes] = OrderedDict()

    def get(self, uid: str, paths: tuple[Path, ...]) -> bytes | None:
        """The restored values of these fields; None if they were not restored."""
        return self._values.get((uid, paths))

    def remember(self, uid: str, paths: tuple[Path, ...], values: bytes) -> None:
        """Record the restored values of these fields."""
        self._values[uid, paths] = values
        if len(self._values) > _REMEMBERED_MAX:
            self._values.popitem(last=False)
