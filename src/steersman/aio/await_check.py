"""Calls without ``await``.

Python only warns about a coroutine that is never awaited, and once for each line. The call did nothing, so the code that
contains it must not count as a success.

Guarantees
- An `AwaitCheck` fails if its block drops a coroutine of Steersman un-awaited, and names the call and its line.
- All other coroutines, and those that the garbage collector finds later, lead to Python's own warning, as before.
"""

from __future__ import annotations

import asyncio
import gc
import linecache
import os
import sys
import traceback
import warnings
from contextlib import suppress
from contextvars import ContextVar, Token
from pathlib import Path
from types import CoroutineType, TracebackType
from typing import Any, Self

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
_ASYNCIO = f"{Path(asyncio.__file__).parent}{os.sep}"
#: CPython calls this function of `warnings` for a coroutine that was never awaited; other Pythons may lack it.
_HOOK = "_warn_unawaited_coroutine"
#: Frames of a call that Python keeps once a program has a call without await: the call, and those of Steersman inside it.
_ORIGIN_DEPTH = 6


class MissingAwait(RuntimeError):
    """Code called Steersman without ``await``, so the call did nothing."""


class AwaitCheck:
    """A block that raises `MissingAwait` at its end if it dropped coroutines of Steersman un-awaited.

    If the block raises by itself, its error gets a note for each of them.
    """

    __slots__ = ("_dropped", "_token")

    _token: Token[AwaitCheck | None]

    def __init__(self) -> None:
        #: A sentence for each call; None once the block has ended.
        self._dropped: list[str] | None = None

    def __enter__(self) -> Self:
        _hook.install()
        self._dropped = []
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ValueError):  # a coroutine whose loop has ended is closed in another context
            _current.reset(self._token)
        dropped, self._dropped = self._dropped, None
        if not dropped:
            return
        words = list(dict.fromkeys(dropped))
        if error is None:
            raise MissingAwait("; ".join(words))
        for each in words:
            error.add_note(each)

    def note(self, coroutine: CoroutineType[Any, Any, Any]) -> bool:
        """Note a dropped coroutine. Returns whether this check reports it."""
        if self._dropped is None:
            return False
        name = coroutine.__qualname__.rpartition(".")[2]
        place = _origin(coroutine) or _dropped_at(name)
        missing = "" if place else " (the error of the next attempt names its line)"
        self._dropped.append(
            f"{name}(...) was called without await{place}; it did nothing, write await before it{missing}"
        )
        if not sys.get_coroutine_origin_tracking_depth():
            # The line that drops a coroutine may not be the one that made it. Keeping origins costs time, so only a program
            # with this mistake does it, from now on.
            sys.set_coroutine_origin_tracking_depth(_ORIGIN_DEPTH)
        return True


_current: ContextVar[AwaitCheck | None] = ContextVar("await_check", default=None)


class _Hook:
    """The function that Python calls for each coroutine that was never awaited; installed by the first check."""

    def __init__(self) -> None:
        self._installed = False
        self._collecting = False

    def install(self) -> None:
        if self._installed:
            return
        self._installed = True
        if hasattr(warnings, _HOOK):
            gc.callbacks.append(self._on_collection)
            setattr(warnings, _HOOK, self._report)

    def _on_collection(self, phase: str, _info: dict[str, int]) -> None:
        self._collecting = phase == "start"

    def _report(self, coroutine: CoroutineType[Any, Any, Any]) -> None:
        check = _current.get()
        # The collector runs in any code, so the check that is current then may belong to other code.
        ours = coroutine.cr_code.co_filename.startswith(_PACKAGE)
        if check is not None and ours and not self._collecting and check.note(coroutine):
            return
        # As Python's own function, which would name this line instead of the one that dropped the coroutine.
        text = f"coroutine '{coroutine.__qualname__}' was never awaited"
        if coroutine.cr_origin is not None:
            created = [(file, line, name, linecache.getline(file, line)) for file, line, name in coroutine.cr_origin]
            frames = "".join(traceback.format_list(created[::-1])).rstrip()
            text = f"{text}\nCoroutine created at (most recent call last)\n{frames}"
        warnings.warn(text, RuntimeWarning, stacklevel=2, source=coroutine)


_hook = _Hook()


def _origin(coroutine: CoroutineType[Any, Any, Any]) -> str:
    """The line that made the coroutine, if Python kept it."""
    for file, line, _ in coroutine.cr_origin or ():
        if not file.startswith(_PACKAGE):
            return f" at {file}:{line}"
    return ""


def _dropped_at(name: str) -> str:
    """The line that dropped a coroutine, if it contains the call. It does not if the call's result was in a variable."""
    frame = sys._getframe(3)  # noqa: SLF001 - as the standard library does for warnings; below the hook
    while frame is not None:
        file, line = frame.f_code.co_filename, frame.f_lineno
        if not file.startswith(_PACKAGE):
            called = f"{name}(" in linecache.getline(file, line) and not file.startswith(_ASYNCIO)
            return f" at {file}:{line}" if called else ""
        frame = frame.f_back
    return ""
