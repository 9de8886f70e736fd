"""Texts that fit a pattern, a format and a length. Deterministic: chance is given."""

from __future__ import annotations

import re
from random import Random  # noqa: TID251 - seeded, and the run prints the seed
from re import (
    _constants as sre,  # type: ignore[attr-defined]
    _parser,  # type: ignore[attr-defined]
)
from typing import Any

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: What people write, tried before anything is made up.
_USUAL = ("web", "example", "a", "1", "10s", "5m", "v1", "example.com", "web.example.com", "https://example.com/x", "/x", "*", "100Mi", "1.2.3", "Web", "key: value", "")  # fmt: skip

_FORMATS = {
    "date-time": "2026-01-02T03:04:05Z",
    "date": "2026-01-02",
    "duration": "90s",
    "byte": "c3RlZXJzbWFu",
    "ipv4": "192.0.2.7",
    "ipv6": "2001:db8::7",
    "cidr": "192.0.2.0/24",
    "uri": "https://example.com/web",
    "uuid": "0b5b0b5e-4d3c-4f0e-9a0e-2f6d7b1c9e11",
    "email": "somebody@example.com",
    "hostname": "web.example.com",
    "mac": "00:00:5e:00:53:01",
    "password": "xyz",
    "int-or-string": "80%",
}


def text_for(schema: dict[str, Any], chance: Random) -> str:
    """A text that a schema of type string takes, as far as we know how."""
    least, most = schema.get("minLength", 0), schema.get("maxLength", 1 << 20)
    pattern = schema.get("pattern")
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    if pattern is None:
        word = "".join(chance.choice(_LETTERS) for _ in range(5))
        return (word + "x" * max(0, least - 5))[: max(most, 0)]
    try:
        fits = re.compile(pattern)
    except re.error:
        return "web"
    good = [each for each in _USUAL if least <= len(each) <= most and fits.search(each)]
    if good:
        return good[0] if chance.random() < 0.6 else chance.choice(good)
    for _ in range(20):
        made = _made(_parser.parse(pattern), chance)
        if least <= len(made) <= most and fits.search(made):
            return made
    return "web"


def text_against(schema: dict[str, Any], chance: Random) -> str | None:
    """A text that a pattern refuses."""
    try:
        fits = re.compile(schema["pattern"])
    except re.error:
        return None
    odd = ("", "!", "-x-", "Ä", "a b", "x" * 70, "\n", "9")
    bad = [each for each in odd if not fits.search(each)]
    return chance.choice(bad) if bad else None


def _made(parsed: Any, chance: Random) -> str:
    return "".join(_piece(kind, value, chance) for kind, value in parsed)


def _piece(kind: Any, value: Any, chance: Random) -> str:  # noqa: PLR0911 - one case each
    match kind:
        case sre.LITERAL:
            return chr(value)
        case sre.ANY | sre.NOT_LITERAL:
            return "z"
        case sre.IN:
            return _one_of(value, chance)
        case sre.BRANCH:
            return _made(chance.choice(value[1]), chance)
        case sre.SUBPATTERN:
            return _made(value[3], chance)
        case sre.MAX_REPEAT | sre.MIN_REPEAT:
            least, most, part = value
            times = chance.randint(least, min(most, least + 2))
            return "".join(_made(part, chance) for _ in range(times))
        case _:
            return ""


def _one_of(choices: Any, chance: Random) -> str:
    if choices[0][0] is sre.NEGATE:
        return "z"
    kind, value = chance.choice(choices)
    match kind:
        case sre.LITERAL:
            return chr(value)
        case sre.RANGE:
            return chr(chance.randint(*value))
        case _:
            return "7" if value in {sre.CATEGORY_DIGIT, sre.CATEGORY_WORD} else " "
