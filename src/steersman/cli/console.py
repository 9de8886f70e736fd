"""Where commands write to stdout and stderr. Lines of services are written by `steersman.cli.up.output`, in a thread.

Guarantees
- Text from services, servers, files and objects cannot control a terminal: control characters are shown escaped, also
  in tracebacks, warnings, and errors of the command line. Only our own colors and bar are escape sequences.
- Output for programs (`show_data`) is exact, unless a terminal shows it.
- Every line of a failure after its first is indented, so that no text in it can forge a message of ours.
- Colors are used only on a terminal, and not if ``NO_COLOR`` is set.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self, TextIO

from steersman._version import __version__
from steersman.cli.failure import Failure
from steersman.telemetry import MessageFormatter, indented, painted, rendered, visible

#: Before each line that belongs to the message above it.
_INDENT: Final = "  "
#: The length of a progress bar, and how many lines are written in its place.
_BAR: Final = 40
_PLAIN_LINES: Final = 4


def has_colors(environment: Mapping[str, str], descriptor: int = 1) -> bool:
    """Whether output to a descriptor is colored."""
    return os.isatty(descriptor) and _wants_colors(environment)


def show(text: str = "", *, end: str = "\n") -> None:
    """Write a result for people to stdout, at once."""
    with _writing_output():
        _write(sys.stdout, f"{text}{end}")
        sys.stdout.flush()


def tell(text: str = "") -> None:
    """Write a message for people to stderr, at once."""
    _write(sys.stderr, f"{text}\n")
    sys.stderr.flush()


def tell_failure(text: str) -> None:
    """Write a message of this program to stderr, with its name before it."""
    first, _, rest = text.partition("\n")
    tell(f"steersman: {visible(first)}" + (f"\n{indented(rest, _INDENT)}" if rest else ""))


def tell_banner(what: str, lines: Iterable[tuple[str, str]]) -> None:
    """Write what a long-running program does, then labeled lines, to stderr; a repeated label is written once."""
    tell(f"{painted(f'steersman {__version__}', '1')} {what}")
    before = ""
    for label, words in lines:
        shown = "" if label == before else label
        tell(f"  {painted(f'{shown:<12}', '2')}{words}")
        before = label
    tell()


def show_data(content: str | bytes) -> None:
    """Write a result for programs to stdout: exactly, or harmless on a terminal. Raises `Failure` on a full disk."""
    with _writing_output():
        if sys.stdout.isatty():
            _write(sys.stdout, content if isinstance(content, str) else content.decode("utf-8", "surrogateescape"))
        elif isinstance(content, str):
            sys.stdout.write(content)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
        sys.stdout.flush()


@contextmanager
def _writing_output() -> Generator[None]:
    """Say of an error that it is one of the output, not of a file of the command. A closed pipe stays as it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(f"cannot write the output: {error.strerror}") from error


class Progress:
    """How far a command is: a bar on a terminal, four lines elsewhere, on stderr.

    ``with Progress("schedules") as progress: progress.update(3, 100)``. The bar is gone after the block.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._is_live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_live and self._shown:
            self._rewrite("")

    def update(self, done: int, total: int) -> None:
        """Show that so many of so many are done."""
        steps = _BAR if self._is_live else _PLAIN_LINES
        step = done * steps // max(total, done, 1)
        if step == self._shown:
            return
        self._shown = step
        words = f"{done} of {total} {self._what}"
        if self._is_live:
            self._rewrite(f"{'━' * step}{painted('━' * (_BAR - step), '2')} {words}")
        else:
            tell(words)

    @staticmethod
    def _rewrite(line: str) -> None:
        sys.stderr.write("\r\x1b[K")
        _write(sys.stderr, line)
        sys.stderr.flush()


class ConsoleParser(argparse.ArgumentParser):
    """A parser of the command line that writes its messages to the console."""

    def _print_message(self, message: str, file: Any = None) -> None:
        _write(sys.stderr if file is None or file is sys.stderr else sys.stdout, message)


def take_over_reports() -> None:
    """Write to the console what Python itself reports: errors that nothing catches, warnings, logs without a handler."""
    sys.excepthook = _tell_error
    threading.excepthook = _tell_thread_error
    sys.unraisablehook = _tell_ignored_error
    warnings.showwarning = _tell_warning
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(MessageFormatter())


def tell_traceback(error: BaseException) -> None:
    """Write the traceback of an error to stderr."""
    tell("".join(traceback.format_exception(error)).rstrip("\n"))


def _write(stream: TextIO, text: str) -> None:
    stream.write(rendered(text, colors=stream.isatty() and _wants_colors(os.environ)))


def _wants_colors(environment: Mapping[str, str]) -> bool:
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def _tell_error(_kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
    # Every kind of error: also a cancellation or a group of errors ends the command. Python calls it for no SystemExit.
    tell_traceback(error)


def _tell_thread_error(report: threading.ExceptHookArgs) -> None:
    if report.exc_value is not None and not isinstance(report.exc_value, SystemExit):
        name = report.thread.name if report.thread is not None else ""
        tell(f"error in thread {name}")
        tell_traceback(report.exc_value)


def _tell_ignored_error(report: Any) -> None:
    tell(f"{report.err_msg or 'error ignored in'}: {report.object!r}")
    if report.exc_value is not None:
        tell_traceback(report.exc_value)


def _tell_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    text = warnings.formatwarning(message, category, filename, lineno, line)
    if file is None:
        tell(text.rstrip("\n"))
    else:
        file.write(rendered(text, colors=False))
