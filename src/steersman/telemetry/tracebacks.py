"""Tracebacks that start in the user's own code.

Guarantees
- Only frames before the user's first one are dropped: what the user's code called, and how that failed, stays complete.
- An error without a user frame keeps its whole traceback. The exception itself is not changed.
"""

from __future__ import annotations

from types import TracebackType

#: The packages whose frames lead to user code.
_OURS = frozenset({"steersman", "asyncio", "contextlib"})

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


class StackText(str):
    """A stack as text, as an argument of a log message: a text log keeps its lines and indents them."""

    __slots__ = ()


def user_frames(error: BaseException) -> ExcInfo:
    """An exception for ``exc_info=`` of a log call, with its traceback from the first frame outside this package."""
    return type(error), error, _first(error) or error.__traceback__


def passed_user_code(error: BaseException) -> bool:
    """Whether the traceback has a frame outside this package, and so locates the error in the user's code."""
    return _first(error) is not None


def _first(error: BaseException) -> TracebackType | None:
    first = error.__traceback__
    while first is not None and _package(first) in _OURS:
        first = first.tb_next
    return first


def _package(traceback: TracebackType) -> str:
    return str(traceback.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
