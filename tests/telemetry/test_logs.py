"""Log lines: readable on a terminal, JSON elsewhere, with the fields of the work around them."""

from __future__ import annotations

import io
import json
import logging
import re
import warnings

import pytest

from steersman.client import Hidden
from steersman.controller import Cause
from steersman.controller.causes import NO_CAUSES
from steersman.objects import GroupVersionKind, Key
from steersman.telemetry import JsonFormatter, StackText, TerminalFormatter, configure_logging

log = logging.getLogger("ship")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def lines():
    """A stream that gets all log lines, and none after the test."""
    root = logging.getLogger()
    level = root.level
    streams = []

    def start(stream=None, **options):
        stream = stream or io.StringIO()
        streams.append(configure_logging(stream=stream, **options))
        return stream

    yield start
    for handler in streams:
        root.removeHandler(handler)
    root.setLevel(level)


def parsed(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_away_from_a_terminal_a_line_is_json(lines) -> None:
    stream = lines()
    log.info("sailed %d miles\nand on", 3, extra={"reconcile_id": "r1", "key": "default/web", "crew": 50})
    [line] = parsed(stream)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "ship",
        "message": "sailed 3 miles\nand on",
        "reconcile_id": "r1",
        "key": "default/web",
        "crew": 50,
    }


def test_a_json_line_begins_with_what_every_line_has(lines) -> None:
    stream = lines()
    log.info("sailed", extra={"controller": "site", "crew": 50})
    assert list(parsed(stream)[0]) == ["time", "level", "logger", "message", "controller", "crew"]


CAUSES = (
    NO_CAUSES.plus(Cause(what="object", kind=GroupVersionKind("", "v1", "Pod"), type="changed", key=Key("a", "b")))
    .plus(Cause(what="retry", note="no wind"))
    .plus(Cause(what="external", note="storm"))
)


def test_causes_are_words_in_json(lines) -> None:
    stream = lines()
    log.info("sailed", extra={"causes": CAUSES, "of": CAUSES.kept[0], "key": Key("a", "b"), "crew": (1, 2)})
    [line] = parsed(stream)
    assert line["causes"] == "Pod a/b changed; retry: no wind; external: storm"
    assert (line["of"], line["key"], line["crew"]) == ("Pod a/b changed", "a/b", [1, 2])


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (logging.INFO, "causes='Pod a/b changed +2'"),
        ("INFO", "causes='Pod a/b changed +2'"),
        ("DEBUG", "causes='Pod a/b changed; retry: no wind; external: storm'"),
    ],
)
def test_on_a_terminal_causes_are_short_unless_the_level_is_debug(lines, level, shown) -> None:
    stream = lines(form="terminal", level=level)
    log.info("sailed", extra={"causes": CAUSES})
    assert stream.getvalue().endswith(f"sailed  {shown}\n")


def test_on_a_terminal_a_line_is_for_people(lines) -> None:
    stream = lines(Terminal(), level="DEBUG")
    log.warning("aground", extra={"key": "default/web", "why": "low tide"})
    line = stream.getvalue()
    assert "aground" in line
    assert "key=default/web why='low tide'" in line
    assert "\x1b[33m" in line


def test_colors_are_for_terminals_only(lines) -> None:
    stream = lines(form="terminal")
    log.warning("aground")
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().endswith("WARNING aground\n")


def test_an_exception_is_one_line_with_its_traceback(lines) -> None:
    stream = lines()
    try:
        float("no wind")
    except ValueError:
        log.exception("failed")
    [line] = parsed(stream)
    assert line["message"] == "failed"
    assert line["error"].endswith("ValueError: could not convert string to float: 'no wind'")


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize("value", [object(), {1, 2}, Mute(), "\udc80", float("nan"), 10**400, {("a",): 1}])
@pytest.mark.parametrize("formatter", [JsonFormatter(), TerminalFormatter()])
def test_no_value_costs_the_line(formatter, value) -> None:
    record = log.makeRecord("ship", logging.INFO, __file__, 1, "said", (), None, extra={"value": value})
    line = formatter.format(record)
    assert "said" in line
    assert "\n" not in line


def test_a_field_cannot_hide_the_message() -> None:
    extra = {"level": "none", "time": "never"}
    record = log.makeRecord("ship", logging.INFO, __file__, 1, "said", (), None, extra=extra)
    line = json.loads(JsonFormatter().format(record))
    assert line["level"] == "info"
    assert line["time"] != "never"


def test_what_hides_itself_stays_hidden() -> None:
    for formatter in (JsonFormatter(), TerminalFormatter()):
        record = log.makeRecord("ship", logging.INFO, __file__, 1, "x", (), None, extra={"token": Hidden("sesame")})
        assert "sesame" not in formatter.format(record)


def test_configuring_again_replaces(lines) -> None:
    first, second = lines(), lines()
    log.info("once")
    assert first.getvalue() == ""
    assert len(parsed(second)) == 1


FORGED = 'x\x1b[2J\x07\n12:00:00.000 INFO    forged: admin logged in\n{"level":"info"}\u2028\r\x9b2J\u202e\ud800'


@pytest.mark.parametrize("form", ["terminal", "json"])
def test_text_from_elsewhere_forges_no_line(lines, form) -> None:
    """Any user who may create an object could otherwise write the log of its operator."""
    stream = lines(Terminal() if form == "terminal" else None, form=form)
    log.warning("invalid value %s", FORGED, extra={"field": FORGED})
    log.error("cannot reconcile %s", FORGED, exc_info=ValueError(FORGED))
    text = stream.getvalue()
    assert "admin logged in" in text.split("\n")[0]
    assert not set("\x07\r\x9b\u2028\u202e\ud800") & set(text)
    assert "\x1b[2J" not in text
    if form == "json":
        assert [line["level"] for line in parsed(stream)] == ["warning", "error"]
    else:
        # A record begins with a painted time; every line of a traceback is indented.
        assert all(line.startswith(("\x1b[2m", "    ")) for line in text.rstrip("\n").split("\n"))


def test_a_stack_keeps_its_lines(lines) -> None:
    """The report of a blocked loop is a stack, which is unreadable on one line."""
    stream = lines(Terminal(), form="terminal")
    log.error("blocked by %s%s", "a\nb", StackText('\n  File "x.py", line 1\n    sleep(9)\n'))
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("blocked by a\\nb")
    assert rest == ['      File "x.py", line 1', "        sleep(9)"]


def test_arguments_that_do_not_fit_cost_no_line() -> None:
    """The standard library would print a traceback with the raw text instead."""
    record = logging.makeLogRecord({"msg": "%d ships", "args": ("two",)})
    assert json.loads(JsonFormatter().format(record))["message"] == "%d ships (cannot format its arguments: TypeError)"


def test_a_warning_of_python_is_one_log_line(lines) -> None:
    shown = warnings.showwarning
    try:
        stream = lines()
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("the sea is rough", UserWarning, stacklevel=1)
    finally:
        warnings.showwarning = shown
    [line] = parsed(stream)
    assert (line["level"], line["logger"]) == ("warning", "py.warnings")
    assert re.fullmatch(rf"{__file__}:\d+: UserWarning: the sea is rough", line["message"])
