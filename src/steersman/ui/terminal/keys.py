"""Decodes the bytes that a terminal sends into keys.

Guarantees
- Bytes may arrive in any pieces: an incomplete sequence or character waits for the rest.
- Pasted text is one key press, so its characters are not commands.
- An unknown sequence is ignored as a whole.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Generator, Iterator
from typing import Final

import msgspec

#: Seconds after which a lone escape byte is the Escape key, not the start of a sequence.
ESCAPE_TIMEOUT: Final = 0.05
#: A longer paste is cut.
_PASTE_MAX: Final = 64 << 10
_SEQUENCE_MAX: Final = 64

_PASTE, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_COMPLETE: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[ -~]|[^\[O])", re.DOTALL)
_LETTERS: Final = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "H": "home",
    "F": "end",
    "M": "enter",
    "Z": "back-tab",
}
_NUMBERS: Final = {"1": "home", "3": "delete", "4": "end", "5": "page-up", "6": "page-down", "7": "home", "8": "end"}
_CONTROLS: Final = {0x08: "backspace", 0x09: "tab", 0x0A: "enter", 0x0D: "enter", 0x7F: "backspace"}


class KeyPress(msgspec.Struct, frozen=True):
    """One key: a character, or a name such as ``up``, ``ctrl-c`` or ``paste``."""

    name: str
    text: str = ""
    """The pasted text, or the character itself; empty for a named key."""


class KeyParser:
    """Turns bytes into key presses."""

    def __init__(self) -> None:
        self._left = b""
        self._pasted: bytes | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")

    @property
    def is_waiting(self) -> bool:
        """Whether the last byte is an escape that may be the Escape key: call `flush` after the timeout."""
        return bool(self._left) and self._pasted is None

    def feed(self, data: bytes) -> list[KeyPress]:
        """The keys that are complete with these bytes."""
        self._left += data
        return list(self._keys())

    def flush(self) -> list[KeyPress]:
        """The keys if nothing followed an escape."""
        left, self._left = self._left, b""
        if left == b"\x1b":
            return [KeyPress("escape")]
        return [KeyPress(f"alt-{chr(left[1])}")] if len(left) == 2 else []

    def _keys(self) -> Iterator[KeyPress]:
        while self._left:
            if self._pasted is not None:
                if not (yield from self._paste()):
                    return
                continue
            start = self._left.find(b"\x1b")
            if start:
                head, self._left = (self._left, b"") if start < 0 else (self._left[:start], self._left[start:])
                yield from self._characters(head)
                continue
            if self._left.startswith(b"\x1b\x1b"):
                self._left = self._left[1:]
                yield KeyPress("escape")
                continue
            match = _COMPLETE.match(self._left)
            if match is None:
                if len(self._left) > _SEQUENCE_MAX:
                    self._left = b""
                return
            self._left = self._left[match.end() :]
            if match[0] == _PASTE:
                self._pasted = b""
            else:
                yield from _sequence_key(match[0])

    def _paste(self) -> Generator[KeyPress, None, bool]:
        """Collect pasted bytes. Returns whether the paste has ended."""
        assert self._pasted is not None
        whole = self._pasted + self._left
        end = whole.find(_PASTE_END)
        if end < 0:
            # The last bytes may be the start of the end marker.
            self._pasted = whole if len(whole) <= _PASTE_MAX + 5 else whole[:_PASTE_MAX] + whole[-5:]
            self._left = b""
            return False
        text = whole[:end][:_PASTE_MAX].decode("utf-8", "ignore")
        self._left, self._pasted = whole[end + len(_PASTE_END) :], None
        yield KeyPress("paste", "".join(each if each.isprintable() else " " for each in text))
        return True

    def _characters(self, data: bytes) -> Iterator[KeyPress]:
        for character in self._decoder.decode(data):
            code = ord(character)
            if code in _CONTROLS:
                yield KeyPress(_CONTROLS[code])
            elif code < 0x20:
                yield KeyPress(f"ctrl-{chr(code | 0x40).lower()}")
            elif character.isprintable():
                yield KeyPress(character, character)


def _sequence_key(data: bytes) -> Iterator[KeyPress]:
    text = data.decode("ascii", "replace")
    if len(text) == 2:
        yield KeyPress(f"alt-{text[1]}")
        return
    final, parameters = text[-1], text[2:-1].split(";")
    if parameters[0] and not parameters[0].isdigit():
        # A report of the terminal, or of a mouse.
        return
    name = _NUMBERS.get(parameters[0]) if final == "~" else _LETTERS.get(final)
    if name is None:
        return
    # The second parameter is 1 plus a sum of modifiers: 1 shift, 2 alt, 4 control.
    held = int(parameters[1]) - 1 if len(parameters) > 1 and parameters[1].isdigit() else 0
    prefix = "".join(word for bit, word in ((4, "ctrl-"), (2, "alt-"), (1, "shift-")) if held & bit)
    yield KeyPress(prefix + name)
