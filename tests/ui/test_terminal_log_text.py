"""Log lines on the terminal: harmless, and as wide as they look."""

from __future__ import annotations

import pytest

from steersman.ui.terminal.cells import clip, fitting, text_width
from steersman.ui.terminal.log_text import printable
from steersman.ui.terminal.styles import encode_line, line_width, plain_text, wrap_line

SHOWN = {
    "plain": "plain",
    "": "",
    "windows\r\n": "windows",
    "bell\x07 null\x00 delete\x7f": "bell^G null^@ delete^?",
    "10%\r20%": "10%^M20%",
    "\x1b[2J\x1b[Hcleared": "cleared",
    "\x1b]0;title\x07a\x1b]52;c;Y2xpcA==\x1b\\b": "ab",
    "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
    "\x1bP1$r\x1b\\dcs": "dcs",
    "\x1bc\x1b(0reset": "reset",
    "\x1b[?1049hscreen": "screen",
    "unfinished \x1b[": "unfinished ^[[",
    "unfinished \x1b]0;title": "unfinished ^[]0;title",
    "c1 \x9b2J": "c1 \\x9b2J",
    "byte \udcff": "byte \\xff",
    "\u202egnp.exe": "<U+202E>gnp.exe",
    "a\tb": "a       b",
    "日\tb": "日      b",
}


@pytest.mark.parametrize("text", SHOWN)
def test_control_characters_are_harmless(text: str) -> None:
    """A log line must not move the cursor, set the title or write to the clipboard."""
    line = printable(text)
    assert plain_text(line) == SHOWN[text]
    assert plain_text(line).isprintable()


def test_no_sequence_survives_but_colors() -> None:
    """Every text of up to three pieces of sequences gives printable text and nothing else."""
    pieces = ["\x1b", "[", "]", "0;t", "m", "H", "\x07", "\\", "\x9c", "P", "31", "x", "?25l", "\r"]
    for text in (a + b + c + d for a in pieces for b in pieces for c in pieces for d in pieces):
        assert plain_text(printable(text)).isprintable(), text


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("\x1b[31mred\x1b[0m plain", "\x1b[31mred\x1b[0m plain"),
        ("\x1b[1;38;5;208mbold\x1b[22m thin", "\x1b[38;5;208;1mbold\x1b[0m\x1b[38;5;208m thin\x1b[0m"),
        ("\x1b[48;2;1;2;3mrgb", "\x1b[48;2;1;2;3mrgb\x1b[0m"),
        ("\x1b[8mhidden \x1b[5mblinking", "hidden blinking"),
        ("\x1b[38;5mshort \x1b[999mlarge", "short large"),
    ],
)
def test_colors_are_kept_and_text_cannot_hide(text: str, encoded: str) -> None:
    """Programs color their logs; a color ends with its line."""
    assert encode_line(printable(text), colors=True) == encoded
    assert "38;" not in encode_line(printable(text), colors=False)


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("abc", 3),
        ("日本", 4),
        ("e\u0301", 1),
        ("한국", 4),
        ("\u1112\u1161\u11ab", 2),
        ("👍", 2),
        ("\u0915\u093f", 2),
        ("\uff21", 2),
        ("co\u00adop", 5),
        ("\u0600\u0661", 2),
        ("\u1112\ud7b0\ud7cb", 2),
        ("a\u200bb", 2),
    ],
)
def test_width_in_columns(text: str, width: int) -> None:
    """A wrong width breaks the columns."""
    assert text_width(text) == width


def test_joined_emoji_are_shown_one_by_one() -> None:
    """Terminals disagree on the width of joined emoji, and of those with a variant or a skin tone."""
    assert plain_text(printable("👩\u200d👧 ❤\ufe0f 👍\U0001f3fd")) == "👩👧 ❤ 👍"


def test_cuts_are_between_characters() -> None:
    """Half of a wide character, or a mark without its letter, is never shown."""
    assert clip("日本語", 5, "…") == "日本…"
    assert clip("日本語", 4, "…") == "日…"
    assert clip("ab\u0915\u093fc", 4, "…") == "ab…"
    assert clip("ab\u0915\u094d\u093fc", 4, "…") == "ab…"
    assert clip("\u093e" * 5, 4, "…") == "\u093e" * 3 + "…"
    rows = wrap_line(printable("ab日\x1b[31m本e\u0301f"), 3)
    assert [plain_text(row) for row in rows] == ["ab", "日", "本e\u0301", "f"]
    assert all(line_width(row) <= 3 for row in rows)
    assert [plain_text(row) for row in wrap_line(printable("日本"), 1)] == [" ", " "]
    rows = wrap_line(printable("a\u0915\u093f" + "\u093e" * 3), 3)
    assert [plain_text(row) for row in rows] == ["a", "\u0915", "\u093f\u093e\u093e", "\u093e"]


def test_cuts_of_any_width() -> None:
    """A view that is narrower than its frame asks for less than nothing; an ellipsis may be wide."""
    assert clip("abcdef", 4, "日") == "ab日"
    assert [clip(text, -1, "…") for text in ("abc", "日本")] == ["", ""]
    assert [fitting(text, -1) for text in ("abc", "日本")] == [("", 0), ("", 0)]
