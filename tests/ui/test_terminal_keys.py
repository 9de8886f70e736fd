"""Keys of the terminal view: bytes in any pieces become key presses."""

from __future__ import annotations

import pytest

from steersman.ui.terminal.keys import KeyParser, KeyPress

CASES = {
    b"j": ["j"],
    b"jk": ["j", "k"],
    b"\x1b[A\x1bOB": ["up", "down"],
    b"\x1b[5~\x1b[6~": ["page-up", "page-down"],
    b"\x1b[H\x1b[4~": ["home", "end"],
    b"\x1b[1;2A\x1b[1;5B": ["shift-up", "ctrl-down"],
    b"\x03\x0c\x1a\x1d": ["ctrl-c", "ctrl-l", "ctrl-z", "ctrl-]"],
    b"\r\n\x7f\t": ["enter", "enter", "backspace", "tab"],
    b"\x1bx": ["alt-x"],
    b"\x1b\x1b[A": ["escape", "up"],
    "é日".encode(): ["é", "日"],
    # A report of the terminal, a mouse and an unknown key are ignored as a whole.
    b"\x1b[?62;c\x1b[<0;10;10Mj": ["j"],
    b"\x1b[99~j": ["j"],
    b"\xffj": ["j"],
}


@pytest.mark.parametrize("data", CASES)
def test_keys_are_recognized_whole_and_byte_by_byte(data: bytes) -> None:
    """A slow line splits sequences; the same keys must arrive."""
    assert [key.name for key in KeyParser().feed(data)] == CASES[data]
    parser = KeyParser()
    assert [key.name for byte in data for key in parser.feed(bytes([byte]))] == CASES[data]


def test_a_paste_is_one_key() -> None:
    """Pasted text must not stop a service because it contains an s; its end may be split anywhere."""
    data = b"a\x1b[200~q\nrs \xc3\xa9\x1b[201~b"
    expected = [KeyPress("a", "a"), KeyPress("paste", "q rs é"), KeyPress("b", "b")]
    for size in range(1, len(data) + 1):
        parser = KeyParser()
        found = [key for start in range(0, len(data), size) for key in parser.feed(data[start : start + size])]
        assert found == expected, size


def test_a_paste_without_an_end_takes_bounded_memory() -> None:
    """A paste of megabytes is cut, and the keys after it work."""
    parser = KeyParser()
    parser.feed(b"\x1b[200~")
    for _ in range(100):
        assert parser.feed(b"x" * 65536) == []
    pasted, key = parser.feed(b"\x1b[201~j")
    assert len(pasted.text) == 65536
    assert key.name == "j"


def test_a_lone_escape_is_a_key_after_a_while() -> None:
    """Escape begins every sequence, so that only time tells."""
    parser = KeyParser()
    assert parser.feed(b"\x1b") == []
    assert parser.is_waiting
    assert parser.flush() == [KeyPress("escape")]
    assert not parser.is_waiting
    assert [key.name for key in parser.feed(b"[A")] == ["[", "A"]
