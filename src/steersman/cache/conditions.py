"""Conditions of stored objects, read from their bytes.

Guarantees
- Only the conditions are decoded, not the whole object.
- Decoding never raises: an object whose conditions have another form has none.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from steersman.cache.stored_object import StoredObject
from steersman.errors import UNREADABLE


class StoredCondition(msgspec.Struct, frozen=True, rename="camel"):
    """One condition as the server has it."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class _Status(msgspec.Struct):
    conditions: list[StoredCondition] | None = None


class _Reported(msgspec.Struct):
    status: _Status | None = None


_DECODER = msgspec.json.Decoder(_Reported)


def condition_of(stored: StoredObject, condition: str) -> StoredCondition | None:
    """The condition of this type; None if the object does not have it."""
    try:
        status = _DECODER.decode(stored.raw).status
    except UNREADABLE:
        return None
    conditions = status.conditions if status is not None else None
    return next((entry for entry in conditions or () if entry.type == condition), None)


def unmet(stored: StoredObject, condition: str) -> Iterable[tuple[str, str]]:
    """Status and reason of the condition, unless it is True or the object does not have it: the values of an index."""
    entry = condition_of(stored, condition)
    return () if entry is None or entry.status == "True" else ((entry.status, entry.reason or ""),)
