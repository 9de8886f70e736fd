"""Texts in quotes, as Go's ``%q`` prints them."""

#: Messages show this many characters of a longer text; Go prints all of them.
SHOWN_MAX = 1024


def quoted(text: str) -> str:
    """A quoted text for a message, cut after `SHOWN_MAX` characters: this bounds what a hostile text costs."""
    return quoted_in_full(cut(text))


def quoted_in_full(text: str) -> str:
    """A quoted text of any length."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{text.translate(_ESCAPES)}"'


def quoted_bytes(text: str) -> str:
    """A quoted text as Go's errors about times print it, byte by byte; cut like those of `quoted`."""
    shown = (
        f"\\{chr(byte)}" if byte in b'"\\' else chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}"
        for byte in cut(text).encode("utf-8", "replace")
    )
    return f'"{"".join(shown)}"'


def cut(text: str) -> str:
    """The beginning of a long text, with ``...`` for the rest."""
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


class _Escapes(dict[int, str]):
    """Escapes by code point. The table does not grow: a text may hold any character."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character.isprintable():
            return character
        if code < 0x80:
            return f"\\x{code:02x}"
        if 0xDC80 <= code <= 0xDCFF:
            # A byte that is not UTF-8, decoded with the error handler "surrogateescape".
            return f"\\x{code - 0xDC00:02x}"
        return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ESCAPES = _Escapes({7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"})
