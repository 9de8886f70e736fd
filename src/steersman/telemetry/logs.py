"""Log lines for people on a terminal and for machines elsewhere, with their fields.

Guarantees
- Code logs with the standard library only. Fields come from ``extra=``.
- A JSON line is one line, whatever it contains, and starts with the standard fields. A value unknown to JSON, or with
  its own ``__str__``, is written as text.
- On a terminal, a value with a short form (``in_short()``) uses it, unless the level is debug.
- Text from elsewhere forges no line and controls no terminal: control characters are shown escaped, in a message also
  line feeds, and a traceback is indented. Only stacks of our own (`StackText`) span lines.
- A value that cannot be written never costs the line, and never fails the caller.
"""

from __future__ import annotations

import logging
import sys
import warnings
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

import msgspec

from steersman.telemetry.terminal_text import escaped_json, indented, visible
from steersman.telemetry.tracebacks import StackText

#: The attributes of every record; all others came from ``extra=``.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

#: Before each line that belongs to the record above it.
_INDENT = "    "

_COLORS = {"DEBUG": "2", "INFO": "36", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}


def _fields_of(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - logging must not fail
        return f"<{type(value).__name__} without a text>"


def _short_text(value: object) -> str:
    short: Any = getattr(value, "in_short", None)
    try:
        return str(short()) if callable(short) else _text(value)
    except Exception:  # noqa: BLE001 - as above
        return _text(value)


def _is_better_as_text(value: object) -> bool:
    """Whether a struct or tuple defines its own text."""
    return isinstance(value, msgspec.Struct | tuple) and type(value).__str__ is not object.__str__  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]


def _message(record: logging.LogRecord) -> str:
    """The message, even if its arguments do not fit."""
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - as above
        return f"{record.msg} (cannot format its arguments: {type(error).__name__})"


def _message_lines(record: logging.LogRecord) -> str:
    """The message on one line, followed by the stacks in it, indented."""
    message = _message(record)
    stacks = (
        [argument for argument in record.args if isinstance(argument, StackText)]
        if isinstance(record.args, tuple)
        else []
    )
    parts: list[str] = []
    for stack in filter(None, stacks):
        before, _, message = message.partition(stack)
        parts += (visible(before), "\n", indented(stack.strip("\n"), _INDENT))
    return "".join((*parts, visible(message)))


class MessageFormatter(logging.Formatter):
    """The message alone, and an indented traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        line = _message_lines(record)
        return f"{line}\n{indented(self.formatException(record.exc_info), _INDENT)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, the fields, and the traceback as ``error``."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        for name, value in _fields_of(record).items():
            # a field must not hide a standard one
            if name not in line:
                line[name] = _text(value) if _is_better_as_text(value) else value
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        try:
            return escaped_json(msgspec.json.encode(line, enc_hook=_text).decode())
        except (TypeError, ValueError, UnicodeError, RecursionError, OverflowError):
            plain = {name: _text(value).encode("utf-8", "replace").decode() for name, value in line.items()}
            return escaped_json(msgspec.json.encode(plain).decode())


class TerminalFormatter(logging.Formatter):
    """Time of day, level, message, then the fields, in short form unless ``full``; with colors if requested."""

    def __init__(self, *, colors: bool = False, full: bool = False) -> None:
        super().__init__()
        self._colors = colors
        self._full = full

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        moment = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S.%f")[:-3]
        level = self._painted(f"{record.levelname:<7}", _COLORS.get(record.levelname, "0"))
        fields = " ".join(f"{name}={self._shown(value)}" for name, value in _fields_of(record).items())
        line = f"{self._painted(moment, '2')} {level} {_message_lines(record)}"
        if fields:
            line += f"  {self._painted(fields, '2')}"
        if record.exc_info:
            line += f"\n{indented(self.formatException(record.exc_info), _INDENT)}"
        return line

    def _painted(self, text: str, color: str) -> str:
        return f"\x1b[{color}m{text}\x1b[0m" if self._colors else text

    def _shown(self, value: object) -> str:
        text = _text(value) if self._full else _short_text(value)
        return text if text and text.isprintable() and " " not in text else repr(text)


def configure_logging(
    *, level: int | str = logging.INFO, stream: TextIO | None = None, form: Literal["auto", "terminal", "json"] = "auto"
) -> logging.Handler:
    """Send all log lines to a stream (standard error by default), readable on a terminal and as JSON elsewhere.

    Replaces the handler of an earlier call and keeps other handlers. Python's own warnings become log lines too.
    """
    chosen = stream if stream is not None else sys.stderr
    on_terminal = bool(chosen and chosen.isatty())
    handler = _Handler(chosen)
    if form == "json" or (form == "auto" and not on_terminal):
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(TerminalFormatter(colors=on_terminal, full=_number(level) <= logging.DEBUG))
    root = logging.getLogger()
    for other in [other for other in root.handlers if isinstance(other, _Handler)]:
        root.removeHandler(other)
    root.addHandler(handler)
    root.setLevel(level)
    warnings.showwarning = _log_warning
    return handler


def _log_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Log a warning of Python in one line, which `logging.captureWarnings` does not."""
    if file is not None:
        file.write(warnings.formatwarning(message, category, filename, lineno, line))
        return
    logging.getLogger("py.warnings").warning("%s:%d: %s: %s", filename, lineno, category.__name__, message)


def _number(level: int | str) -> int:
    return logging.getLevelNamesMapping().get(level, logging.INFO) if isinstance(level, str) else level


class _Handler(logging.StreamHandler[TextIO]):
    """The handler of `configure_logging`; its own type, so that it can be found again."""
