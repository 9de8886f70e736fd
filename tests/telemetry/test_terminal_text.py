"""Text from elsewhere on a terminal and in a log: shown, and without any effect."""

from __future__ import annotations

import itertools
import json
import re
import sys

import pytest

from steersman.telemetry import indented, painted, program_text, rendered, visible
from steersman.telemetry.terminal_text import escaped_json

#: Everything that a terminal obeys, that begins a line, or that reorders one.
HARMFUL = [
    *map(chr, (*range(9), *range(10, 0x20), *range(0x7F, 0xA0))),
    *map(chr, (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))),
    *map(chr, (0xD800, 0xDBFF, 0xDC00, 0xDC80, 0xDFFF)),
]
#: A color of a program, as it may reach a terminal.
COLOR = re.compile(r"\x1b\[([0-9;]*)m")


@pytest.mark.parametrize("character", HARMFUL, ids=lambda each: f"{ord(each):04x}")
def test_every_harmful_character_is_shown(character: str) -> None:
    """One that is left out lets a service write the clipboard of its developer."""
    for shown in (visible(f"a{character}b"), rendered(f"a{character} b", colors=True).replace("\n", "")):
        assert shown.isprintable()
        assert shown.startswith("a")
        assert shown.endswith("b")
    assert visible(f"a{character}b") != "ab"


def test_other_text_is_left_alone() -> None:
    """A filter that changes names and messages would be turned off."""
    text = "é 日本 👍🏽 👩\u200d💻 a\tb"
    assert visible(text) == rendered(text, colors=True) == program_text(text) == text
    assert rendered("one\r\ntwo\n", colors=False) == "one\ntwo\n"


def test_every_character_of_unicode_is_printable_or_harmless() -> None:
    """Python's own database finds controls and halves of characters that a list forgets."""
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    left = {each for each in visible(every) if not each.isprintable()} - set("\t")
    # Spaces, unassigned and private characters, and formats of scripts: none moves the cursor or reorders a line.
    assert not any(0x7F <= ord(each) < 0xA0 or ord(each) < 0x20 or 0xD800 <= ord(each) < 0xE000 for each in left)


def test_only_our_own_colors_become_escape_sequences() -> None:
    """An error that brings its own colors could look like a message of ours."""
    assert rendered(f"\x1b[31mred {painted('ours', '1;32')}", colors=True) == "\\x1b[31mred \x1b[1;32mours\x1b[0m"
    assert rendered(painted("ours", "31"), colors=False) == "ours"
    assert visible(painted("a", "31")) == "\\ufdd031ma\\ufdd00m"
    assert rendered("\ufdd08mhidden", colors=True) == "hidden"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m\x1b[0m"),
        ("\x1b[1;38;5;208mbold", "\x1b[1;38;5;208mbold\x1b[0m"),
        ("\x1b[38:2:1:2:3mrgb", "\x1b[38;2;1;2;3mrgb\x1b[0m"),
        ("\x1b[mreset", "\x1b[0mreset\x1b[0m"),
        ("\x1b[8mhidden \x1b[5;6mblinking", "hidden blinking"),
        ("\x1b[38;5mshort \x1b[99999mlarge \x1b[58;5;8mline", "short large line"),
        ("\x1b[2K\x1b[1Gprogress \x1b]0;title\x07", "progress "),
        ("cut \x1b[", "cut \\x1b["),
    ],
)
def test_a_program_keeps_its_colors_alone(text: str, shown: str) -> None:
    """Programs color their logs; nothing else of them reaches the terminal."""
    assert rendered(program_text(text), colors=True) == shown
    assert "\x1b" not in rendered(program_text(text), colors=False)


def test_no_sequence_survives_but_colors() -> None:
    """What is left after one sequence is removed must not be another one."""
    pieces = ["\x1b", "[", "]", "0;t", "m", "8", "\x07", "\\", "\x9c", "\x9b", "P", "31", "?25l", "\ufdd0"]
    for parts in itertools.product(pieces, repeat=4):
        shown = rendered(program_text("".join(parts)), colors=True)
        assert COLOR.sub("", shown).isprintable(), parts
        assert "8" not in COLOR.findall(shown), parts


def test_lines_below_a_message_are_indented() -> None:
    """A line feed in a value must not begin a message of its own."""
    assert indented("one\nsteersman: forged\r\x85x\n", "  ") == "  one\n  steersman: forged\\r\\x85x"


def test_escaped_json_has_the_same_meaning() -> None:
    """Programs read what the server wrote; a terminal reads no control character."""
    value = {"".join(each for each in HARMFUL if not "\ud800" <= each <= "\udfff"): ["\u202e\u2028\x9b", "\\"]}
    text = escaped_json(json.dumps(value, ensure_ascii=False))
    assert text.isprintable()
    assert json.loads(text) == value
