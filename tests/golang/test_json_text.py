"""JSON texts as Go reads and writes them."""

import time  # noqa: TID251 - how long the interpreter is held is what is measured
import tracemalloc
from collections.abc import Callable

import pytest

from steersman.golang import escape_html, json_syntax_problem, readable_json, too_large_number


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (rb'"\ud800"', rb'"\ufffd"'),
        (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\udc00\ud800x"', rb'"\ufffd\ufffdx"'),
        (rb'"\\ud800"', rb'"\\ud800"'),
        (rb'"\\\ud800"', rb'"\\\ufffd"'),
        (rb'"\\ud83d\ude00"', rb'"\\ud83d\ufffd"'),
        (b'"\xff\xfe"', '"\ufffd\ufffd"'.encode()),
        (b'"\xe2\x82"', '"\ufffd\ufffd"'.encode()),
        (b'"\xed\xa0\x80"', '"\ufffd\ufffd\ufffd"'.encode()),
        ('"\u00e9\U0001f600"'.encode(), '"\u00e9\U0001f600"'.encode()),
    ],
)
def test_what_is_no_unicode_becomes_replacement_characters(raw, text):
    assert readable_json(raw) == text


def test_bytes_are_replaced_one_by_one_wherever_a_text_is_cut():
    for length in range(65_530, 65_540):
        raw = b"x" * length + "\u20ac".encode() + b"\xe2\x82" + b"x" * 70_000
        assert readable_json(raw) == b"x" * length + "\u20ac\ufffd\ufffd".encode() + b"x" * 70_000


def test_characters_of_html_are_escaped():
    assert escape_html('{"a":"<&>\u2028\u2029"}') == '{"a":"\\u003c\\u0026\\u003e\\u2028\\u2029"}'


def test_a_number_in_a_text_or_with_many_digits_behind_the_point_is_not_too_large():
    assert too_large_number(b'["1e400", "\\"1e400", 0.%s, -1e-400]' % (b"1" * 400)) == ""
    assert "number -1E999 into" in too_large_number(b'["1e400", -1E999, 1e400]')


@pytest.mark.parametrize(
    ("work", "text"),
    [
        (lambda text: readable_json(text.encode() + b"\xff"), '"\\ud800",' * 20_000),
        (escape_html, "<" * 100_000),
        (lambda text: too_large_number(text.encode()), '"",' * 50_000),
    ],
)
def test_replacing_takes_little_memory(work: Callable[[str], object], text):
    """An expression would take two hundred bytes for each match."""
    work(text[:100])
    tracemalloc.start()
    try:
        work(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * len(text)


MEMBERS = ",".join(f'"k{number}":"v"' for number in range(200_000))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f'{{"data":{{{MEMBERS}}},}}', "invalid character '}' looking for beginning of object key string"),
        (f'{{"data":{{{MEMBERS}', "unexpected end of JSON input"),
        (f'{{"data":{{{MEMBERS}}}', "unexpected end of JSON input"),
        (f'{{"data":[{"[1]," * 300_000}]}}', "invalid character ']' looking for beginning of value"),
        (f'{{"data":[{"[[1]]," * 600_000}]}}', "invalid character ']' looking for beginning of value"),
        (f'{{"data":[{"[[1]]," * 600_000}1', "unexpected end of JSON input"),
        (f'{{"data":[{"[[1]]," * 600_000}1]}}', None),
        ('{"data":["' + r"\u00e9" * 300_000 + '",]}', "invalid character ']' looking for beginning of value"),
    ],
)
def test_a_mistake_at_the_end_of_a_long_text_is_found_in_little_time(text, problem):
    """One pass of Python over each byte takes 0.3 s for a megabyte, and a second tree holds up other threads."""
    began = time.thread_time()
    assert json_syntax_problem(text.encode()) == problem
    assert time.thread_time() - began < 5
