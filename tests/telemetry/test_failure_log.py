"""One traceback for each cause, and a count."""

import asyncio
import logging

from steersman.telemetry import FailureLog, error_words
from steersman.telemetry.failure_log import CAUSES, EVERY, LINES, WINDOW


def failed(message="x", kind=ValueError):
    try:
        raise kind(message)  # noqa: TRY301 - a traceback is what is tested
    except kind as error:
        return error


def otherwise(message):
    try:
        raise ValueError(message)  # noqa: TRY301 - as above
    except ValueError as error:
        return error


def test_one_cause_has_one_traceback_and_a_bounded_number_of_lines():
    log = FailureLog()
    said = [log.note(failed(f"key {number}"), 1.0) for number in range(1000)]
    assert sum(each.traceback for each in said) == 1
    assert sum(each.line for each in said) == LINES
    later = log.note(failed(), 1.0 + WINDOW)
    assert (later.line, later.traceback, later.more) == (True, False, 1000 - LINES)
    assert f"{1000 - LINES} more" in later.suffix
    assert log.note(failed(), 1.0 + WINDOW).suffix == ""


def test_a_report_names_what_failed_the_error_and_what_follows(caplog):
    """Failures without a line are counted in the next one."""
    log, logger = FailureLog(), logging.getLogger("steersman.cache")
    for number in range(LINES + 2):
        log.report(logger, failed("no %s"), 0.0, "%s failed on %s", "names", number, then="; it keeps 100%% of them")
    log.report(logger, failed("no %s"), WINDOW, "%s failed", "names")
    assert len(caplog.records) == LINES + 1
    assert caplog.messages[0] == "names failed on 0: ValueError: no %s; it keeps 100% of them"
    assert caplog.messages[-1] == "names failed: ValueError: no %s (2 more failures like this since the last line)"
    assert [bool(record.exc_info) for record in caplog.records] == [True] + [False] * LINES


def test_another_place_and_another_type_are_other_causes():
    log = FailureLog()
    assert log.note(failed(), 0.0).traceback
    assert log.note(otherwise("x"), 0.0).traceback
    assert log.note(failed(kind=TypeError), 0.0).traceback
    assert not log.note(failed("other words"), 0.0).traceback


def test_a_cause_that_goes_on_is_shown_again():
    log = FailureLog()
    assert [log.note(failed(), at).traceback for at in (0.0, EVERY - 1, EVERY, EVERY + 1)] == [True, False, True, False]


def test_a_chain_that_leads_to_itself_is_read_to_an_end():
    first, second = failed("a"), failed("b")
    first.__cause__, second.__cause__ = second, first
    assert FailureLog().note(first, 0.0).traceback


def test_what_it_remembers_is_bounded():
    log = FailureLog()
    for number in range(2 * CAUSES):
        log.note(type(f"Error{number}", (Exception,), {})(), 0.0)
    assert len(log._causes) == CAUSES


def test_an_error_that_cannot_print_itself_has_words():
    class Mute(Exception):
        def __str__(self):
            raise BaseException("no")  # noqa: TRY002 - the worst case

    assert error_words(Mute()) == "Mute: (cannot read its text: BaseException)"


async def in_a_group(*errors):
    async def fail(error):
        raise error

    try:
        async with asyncio.TaskGroup() as group:
            for error in errors:
                group.create_task(fail(error))
    except ExceptionGroup as failed:
        return failed


async def test_the_members_of_a_group_tell_its_causes_apart():
    """Every task group fails with the same words, raised by the same line."""
    log = FailureLog()
    assert log.note(await in_a_group(ValueError("a")), 0.0).traceback
    assert log.note(await in_a_group(TypeError("a")), 0.0).traceback
    assert not log.note(await in_a_group(ValueError("b")), 0.0).traceback
    assert not log.note(await in_a_group(ValueError("b"), ValueError("c")), 0.0).traceback
    assert log.note(await in_a_group(ValueError("b"), TypeError("c")), 0.0).traceback


async def test_the_words_of_a_group_name_its_members():
    words = error_words(await in_a_group(ValueError("bad"), KeyError("x"), TypeError("t"), OSError("o")))
    assert words.endswith("(4 sub-exceptions): ValueError: bad; KeyError: 'x'; TypeError: t; and 1 more")
    deep = ValueError("leaf")
    for _ in range(900):
        deep = ExceptionGroup("g", [deep])
    assert len(error_words(deep)) < 4001
    assert FailureLog().note(deep, 0.0).line
