"""When a scan of many objects must let the event loop turn.

Guarantee: between two turns a scan decodes about 1 MiB, or a few hundred small objects.
"""

from __future__ import annotations

from steersman.apiserver.storage import Record

_BYTES = 1024 * 1024
#: What an object counts beside its bytes.
_EACH = 4096


class Pace:
    """Counts the objects of one scan."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _BYTES

    def is_due(self, record: Record) -> bool:
        """Count an object before it is looked at; return whether the event loop must turn first."""
        is_due = self._left <= 0
        self._left = (_BYTES if is_due else self._left) - _EACH - len(record.value)
        return is_due
