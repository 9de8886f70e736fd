"""Recently printed frames of watches, shared by all watchers with the same form.

Guarantee: their total size is bounded; a dropped frame is printed again when needed.
"""

from __future__ import annotations

from collections.abc import Hashable

#: The maximum total size in bytes.
FRAMES_BYTES = 32 * 1024 * 1024


class Frames:
    """The last printed frames, by revision, form and type."""

    def __init__(self, *, limit: int = FRAMES_BYTES) -> None:
        self._limit = limit
        self._frames: dict[tuple[int, Hashable, str], bytes] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._frames)

    def get(self, key: tuple[int, Hashable, str]) -> bytes | None:
        """A printed frame; None if it must be printed."""
        return self._frames.get(key)

    def add(self, key: tuple[int, Hashable, str], frame: bytes) -> None:
        """Add a frame, in place of the oldest ones."""
        self._frames[key] = frame
        self._size += len(frame)
        while self._size > self._limit:
            self._size -= len(self._frames.pop(next(iter(self._frames))))
