"""Texts that an expression matches, for examples of values.

Guarantees
- The same expression gives the same texts, short and plain ones first.
- Every text matches. An expression whose matches depend on what surrounds a position may give none.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from steersman.golang.regexp.character_ranges import Ranges
from steersman.golang.regexp.expressions import expression
from steersman.golang.regexp.nodes import Characters, Choice, Node, Place, Repetition, Sequence
from steersman.golang.regexp.parser import parsed

#: The characters that a reader expects, before all others of a set.
_PLAIN = "abc123ABC"
#: How many texts each part of an expression contributes.
_SAMPLES = 4
#: How often a part that may repeat without a limit repeats beyond its least number.
_EXTRA = (0, 1, 2, 4, 8, 16, 32, 64)
#: Longer texts are no examples.
_LENGTH_MAX = 4096


def matching_texts(text: str, *, shortest: int = 0) -> Iterator[str]:
    """Texts of at least so many characters that an expression matches. Raises ValueError if Go rejects it."""
    root, matcher = parsed(text), expression(text)
    seen: set[str] = set()
    for extra in _EXTRA:
        for sample in _texts(root, extra):
            if shortest <= len(sample) <= _LENGTH_MAX and sample not in seen and matcher.matches(sample):
                seen.add(sample)
                yield sample


def _texts(node: Node, extra: int) -> list[str]:
    match node:
        case Characters(ranges=ranges):
            return list(islice(_characters(ranges), _SAMPLES))
        case Place():
            return [""]
        case Choice(parts=parts):
            each = [_texts(part, extra) for part in parts]
            # One of each part before a second one of any.
            turns = [texts[turn] for turn in range(_SAMPLES) for texts in each if turn < len(texts)]
            return list(dict.fromkeys(turns))[:_SAMPLES]
        case Sequence(parts=parts):
            return _rows([_texts(part, extra) for part in parts])
        case Repetition(part=part, least=least, most=most):
            times = least + extra if most is None else min(least + extra, most)
            return [sample * times for sample in _texts(part, extra) if len(sample) * times <= _LENGTH_MAX] or [""]


def _rows(each: list[list[str]]) -> list[str]:
    """The first text of each part in a row, then rows that differ from it in one part."""
    if not all(each):
        return []
    first = [texts[0] for texts in each]
    rows = ["".join(first)]
    for place, texts in enumerate(each):
        rows += ["".join((*first[:place], other, *first[place + 1 :])) for other in texts[1:]]
    return list(dict.fromkeys(rows))[:_SAMPLES]


def _characters(ranges: Ranges) -> Iterator[str]:
    yield from (sign for sign in _PLAIN if any(low <= ord(sign) <= high for low, high in ranges))
    for low, high in ranges:
        yield from (chr(code) for code in range(low, min(high, low + _SAMPLES) + 1) if chr(code).isprintable())
