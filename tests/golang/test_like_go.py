"""Random texts and numbers: what Go's packages say of each, `steersman.golang` says too, word for word."""

from __future__ import annotations

import json
import random  # noqa: TID251 - seeded, and the seed is printed
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.contenders.preparing import go_program
from samples import portions
from steersman import golang

COUNT = portions.count(sample=2_000, of=40_000)

#: Parts of texts that some parser takes, and what makes them wrong.
PARTS = [
    *["http", "https", "db", "mailto:", "://", "//", "/", ":", ":80", "@", "?", "#", "[", "]", "*", "a", "x.y", "foo"],
    *["%", "%25", "%41", "%2", "%zz", "%c3", "%20", "%5b", "é", "😀", "\x7f", "\n", " ", "<", ">", '"', "\\", "^", "_"],
    *["::", "1", "0", "ffff", "fe80", "12345", "1.2.3.4", "256", ".", "/24", "/033", "/129"],
    *["h", "m", "s", "ms", "µs", "ns", "d", "+", "-", "1.5", "9223372036854775807", "9223372036854775808", "1_0"],
    *["AA", "==", "=", "QUJD", "\r"],
    *["{", "}", ",", '"a"', "null", "true", "fals", "1e", "\\u00", '"\\u00e9"', "-"],
    *["<a@b>", "(c)", ";", "a@b.c"],
]  # fmt: skip


def answers(asked: list[Any]) -> list[dict[str, str]]:
    program = go_program(Path(__file__).parent / "go_texts", "go_texts")
    text = "\n".join(map(json.dumps, asked))
    ran = subprocess.run([program], input=text, capture_output=True, text=True, encoding="utf-8", check=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def problem(parse: Callable[[str], Any], text: str) -> str:
    try:
        parse(text)
    except ValueError as error:
        return str(error)
    return ""


def duration(text: str) -> str:
    try:
        return golang.printed_duration(golang.duration_nanoseconds(text))
    except ValueError as error:
        return str(error)


def ours(text: str) -> dict[str, str]:
    return {
        "address": problem(golang.parse_address, text),
        "base64": golang.base64_problem(text),
        "duration": duration(text),
        "int": problem(golang.parse_int, text),
        "json": golang.json_syntax_problem(text.encode()) or golang.too_large_number(text.encode()),
        "mail": str(golang.is_email(text)).lower(),
        "prefix": problem(golang.parse_prefix, text),
        "quoted": golang.quoted(text),
        "uint": problem(golang.parse_uint, text),
        "uri": golang.uri_problem(text),
        "url": golang.url_problem(text),
    }


def test_random_texts():
    """A message that differs from Go's differs from kube-apiserver's."""
    chance = random.Random(portions.seed_of("texts of Go"))
    texts = ["".join(chance.choices(PARTS, k=chance.randint(0, 8))) for _ in range(COUNT)]
    differences = [
        (text, name, said, answer[name])
        for text, answer in zip(texts, answers(texts), strict=True)
        for name, said in ours(text).items()
        if said != answer[name]
    ]
    assert differences == []


def some_json(chance: random.Random, depth: int) -> str:
    """A JSON text with spaces, escapes and runs of small values."""
    space = chance.choice(["", "", "", " ", "\n\t"])
    if depth == 0 or chance.random() < 0.3:
        return space + chance.choice(
            ['"a"', '"\\u00e9"', '"\\n"', "0", "-1.5e+3", "12", "true", "false", "null", "[]", "{}"]
        )
    items = [some_json(chance, depth - 1) for _ in range(chance.randrange(6))]
    if chance.random() < 0.5:
        return f"{space}[{','.join(items)}{space}]"
    members = [f'{space}"{chance.choice("abc")}"{space}:{item}' for item in items]
    return f"{space}{{{','.join(members)}{space}}}"


def test_random_json_with_a_mistake():
    chance = random.Random(portions.seed_of("JSON of Go"))
    texts = [some_json(chance, 4) for _ in range(COUNT // 2)]
    for number, text in enumerate(texts):
        at = chance.randrange(len(text))
        mistake = chance.choice([*'{}[],:"\\0-.eax', "", "\x01"])
        texts[number] = text[:at] + mistake + text[at + chance.randrange(2) :]
    differences = [
        (text, found, answer["json"])
        for text, answer in zip(texts, answers(texts), strict=True)
        if (found := ours(text)["json"]) != answer["json"]
    ]
    assert differences == []


def test_random_numbers():
    """Floats in the fewest digits, with an exponent where Go writes one."""
    chance = random.Random(portions.seed_of("numbers of Go"))
    numbers = [
        chance.choice([1, -1]) * float(f"{chance.random():.{chance.randint(0, 17)}f}") * 10.0 ** chance.randint(-30, 30)
        for _ in range(COUNT)
    ]
    for number, answer in zip(numbers, answers(numbers), strict=True):
        assert (golang.printed_number(number), golang.printed_json(number)) == (answer["formatted"], answer["encoded"])
