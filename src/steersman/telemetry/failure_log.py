"""One traceback per cause, however many keys fail. Pure, except that `FailureLog.report` logs: time is passed in.

Guarantees
- The first failure of a cause is logged with a traceback. So is the next one after `EVERY` seconds.
- In between, a cause gets `LINES` lines per `WINDOW` seconds, without a traceback. The others are counted, and the next
  line of that cause reports their number.
- Bounded: it remembers the last `CAUSES` causes.

Two failures have the same cause if the same types were raised at the same lines of code. Messages are ignored, since
they name the key. An exception group is identified by its members, too.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from types import TracebackType
from typing import NamedTuple, cast

from steersman.telemetry.tracebacks import user_frames

#: Seconds between two tracebacks of one cause.
EVERY = 300.0
#: Lines of one cause per window, and the seconds of a window.
LINES, WINDOW = 10, 10.0
#: How many causes to remember.
CAUSES = 256
#: How many frames of a traceback, and links of a chain of exceptions, identify a cause.
_FRAMES, _LINKS = 64, 8
#: How many members of an exception group identify a cause, how many its text names, and how deep groups are searched.
_MEMBERS, _NAMED, _DEPTH = 8, 3, 4


class Mention(NamedTuple):
    """How to log one failure."""

    #: Whether it gets a line.
    line: bool
    #: Whether the line includes the traceback.
    traceback: bool
    #: Failures of the same cause without a line since the last line.
    more: int

    @property
    def suffix(self) -> str:
        """The text about failures without a line; empty if there are none."""
        return f" ({self.more:,} more failures like this since the last line)" if self.more else ""


class _Cause:
    __slots__ = ("lines", "more", "traced", "window")

    def __init__(self) -> None:
        self.traced = self.window = float("-inf")
        self.lines = self.more = 0


class FailureLog:
    """Decides which failures get a line, and which lines get a traceback."""

    def __init__(self) -> None:
        self._causes: OrderedDict[Hashable, _Cause] = OrderedDict()

    def note(self, error: BaseException, now: float) -> Mention:
        """Count a failure and decide how to log it."""
        key = tuple(_signature(error))
        cause = self._causes.get(key)
        if cause is None:
            cause = self._causes[key] = _Cause()
            if len(self._causes) > CAUSES:
                self._causes.popitem(last=False)
        self._causes.move_to_end(key)
        if now - cause.window >= WINDOW:
            cause.window, cause.lines = now, 0
        if cause.lines >= LINES:
            cause.more += 1
            return Mention(line=False, traceback=False, more=cause.more)
        cause.lines += 1
        traceback = now - cause.traced >= EVERY
        if traceback:
            cause.traced = now
        more, cause.more = cause.more, 0
        return Mention(line=True, traceback=traceback, more=more)

    def report(
        self, logger: logging.Logger, error: BaseException, now: float, failed: str, *args: object, then: str = ""
    ) -> None:
        """Count an error of user code, and log it if it gets a line.

        The line begins with ``failed``, formatted with the arguments, then names the error, and ends with ``then``.
        """
        mention = self.note(error, now)
        if mention.line:
            where = user_frames(error) if mention.traceback else None
            logger.error(f"{failed}: %s{then}%s", *args, error_words(error), mention.suffix, exc_info=where)  # noqa: G004 - one template of two


class LineLimit:
    """At most `LINES` lines each `WINDOW` seconds."""

    def __init__(self) -> None:
        self._window, self._lines = float("-inf"), 0

    def admits(self, now: float) -> bool:
        """Whether a line may be logged now."""
        if now - self._window >= WINDOW:
            self._window, self._lines = now, 0
        self._lines += 1
        return self._lines <= LINES


def _signature(error: BaseException, depth: int = _DEPTH) -> Iterator[Hashable]:
    """The types of an exception and its causes, and where they were raised."""
    link: BaseException | None = error
    for _ in range(_LINKS):
        if link is None:
            return
        yield type(link)
        yield from _places(link.__traceback__)
        if depth and (members := _members(link)):
            # A set: the order of members is random, and many of them may have one cause.
            yield frozenset(tuple(_signature(member, depth - 1)) for member in members[:_MEMBERS])
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _places(traceback: TracebackType | None) -> Iterator[Hashable]:
    for _ in range(_FRAMES):
        if traceback is None:
            return
        yield traceback.tb_frame.f_code, traceback.tb_lineno
        traceback = traceback.tb_next


def error_words(error: BaseException, depth: int = _DEPTH) -> str:
    """The type and text of an exception, even if it cannot be printed; for a group, those of its members too."""
    try:
        text = str(error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as failure:  # noqa: BLE001 - user code: its exception may be anything
        text = f"(cannot read its text: {type(failure).__name__})"
    words = f"{type(error).__name__}: {text}"
    if depth and (members := _members(error)):
        # The text of a group contains only the number of its members.
        named = [error_words(member, depth - 1) for member in members[:_NAMED]]
        more = f"; and {len(members) - _NAMED} more" if len(members) > _NAMED else ""
        words = f"{words}: {'; '.join(named)}{more}"
    return words[:4000]


def _members(error: BaseException) -> tuple[BaseException, ...]:
    """The exceptions of a group; empty for any other exception."""
    if not isinstance(error, BaseExceptionGroup):
        return ()
    return cast("BaseExceptionGroup[BaseException]", error).exceptions
