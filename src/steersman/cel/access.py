"""Access to parts of values: fields, indexes, membership."""

from __future__ import annotations

from typing import Any, cast

from steersman.cel.values import NOTHING, CelError, Listing, Mapped, Maybe, equal, map_find, no_overload, type_name
from steersman.golang import printed_number


def field_of(value: Any, field: str) -> Maybe:
    """The field of a value."""
    if isinstance(value, Mapped | dict):
        return map_find(value, field)
    if isinstance(value, list | Listing):
        raise CelError("unsupported index type 'string' in list")
    return NOTHING


def optional_field_of(value: Maybe, field: str) -> Maybe:
    """The field of an optional value."""
    return field_of(value.held[0], field) if value.held else NOTHING


def element_of(value: Any, key: Any) -> Maybe:
    """The element of a value at a key or index."""
    if isinstance(value, Mapped | dict):
        return map_find(value, key)
    if not isinstance(value, list | Listing):
        return NOTHING
    if isinstance(key, float) and not key.is_integer():
        raise CelError(f"unsupported index value {shown_key(key)} in list")
    if isinstance(key, bool) or not isinstance(key, int | float):
        raise CelError(f"unsupported index type '{type_name(key)}' in list")
    at = int(key)
    items = cast("list[Any]", value)
    if not 0 <= at < len(items):
        return NOTHING
    found = items[at] if isinstance(value, list) else value.get(key)
    if type(found) is CelError:
        raise found
    return Maybe(found)


def holds(holder: Any, value: Any) -> bool:
    """Whether a list contains an item, or a map a key."""
    if isinstance(holder, Mapped | dict):
        return bool(map_find(holder, value).held)
    if not isinstance(holder, list | Listing):
        raise no_overload()
    error: CelError | None = None
    for member in cast("list[Any]", holder):
        try:
            if type(member) is CelError:
                raise member
            if equal(member, value):
                return True
        except CelError as raised:
            error = error or raised
    if error is not None and isinstance(holder, Listing) and holder.search_raises:
        raise error
    return False


def shown_key(value: Any) -> str:
    """A key or a value as printed in a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return printed_number(value)
    return "null" if value is None else str(value)
