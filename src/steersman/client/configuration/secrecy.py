"""Secrets that cannot be printed by accident.

A `Hidden` value shows ``<hidden>`` wherever Python converts objects to text: repr, str, format, f-strings, logs,
tracebacks, `dataclasses.asdict`. It cannot be pickled or encoded as JSON. Only `reveal()` returns the value, and that
name is easy to search for.
"""

from __future__ import annotations

import hmac
from typing import Generic, NoReturn, TypeVar, cast, final
from urllib.parse import urlsplit

T_co = TypeVar("T_co", bound=str | bytes, covariant=True)

_SHOWN = "<hidden>"


@final
class Hidden(Generic[T_co]):
    """A str or bytes that only `reveal` shows."""

    __slots__ = ("_value",)

    def __init__(self, value: T_co) -> None:
        self._value = value

    def reveal(self) -> T_co:
        """Return the secret. Do not keep it longer than one call needs it."""
        return self._value

    def __repr__(self) -> str:
        return _SHOWN

    def __str__(self) -> str:
        return _SHOWN

    def __format__(self, format_spec: str) -> str:
        # Apply width and precision so that tables line up; they reveal nothing about the value.
        return format(_SHOWN, format_spec)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hidden):
            return NotImplemented
        mine: str | bytes = self._value
        theirs = cast("Hidden[str | bytes]", other).reveal()
        return type(mine) is type(theirs) and hmac.compare_digest(_as_bytes(mine), _as_bytes(theirs))

    def __hash__(self) -> int:
        return hash((Hidden, _as_bytes(self._value)))

    # Immutable: a copy is the same object, so the secret is not copied.
    def __copy__(self) -> Hidden[T_co]:
        return self

    def __deepcopy__(self, memo: object) -> Hidden[T_co]:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a Hidden value cannot be pickled: call reveal() where you need the secret, and protect it there"
        )


@final
class HiddenHeaders(tuple[tuple[str, str], ...]):
    """Headers that identify the sender; the repr shows only names, so that a traceback with locals leaks no token."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"({', '.join(f'{name}: {_SHOWN}' for name, _ in self)})"


def hide_password(url: str) -> str:
    """Return `url` with its user name and password replaced by ``<hidden>``."""
    try:
        parts = urlsplit(url)
        _, at, address = parts.netloc.rpartition("@")
    except ValueError:
        return _SHOWN
    if at:
        return parts._replace(netloc=f"{_SHOWN}@{address}").geturl()
    # urlsplit finds no user in "user:password@host" without a scheme.
    return _SHOWN if "@" in url else url


def printable(text: str, *, limit: int = 2000) -> str:
    """Return at most the last `limit` characters of untrusted `text`, without terminal control characters."""
    kept = text if len(text) <= limit else "..." + text[-limit:]
    return "".join(char if char.isprintable() or char in "\n\t" else f"U+{ord(char):04X}" for char in kept).strip()


def _as_bytes(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
