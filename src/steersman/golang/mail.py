"""Mail addresses as Go's ``net/mail`` parses them: with an optional display name and comments."""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from typing import Final

# Every character beyond ASCII counts as visible.
_ATEXT: Final = r"""[^\x00-\x20\x7f()<>\[\]:;@\\,"]"""
_ATOM: Final = re.compile(rf"{_ATEXT}+")
_QUOTED: Final = re.compile(r'"((?:[^\x00-\x08\x0a-\x1f\x7f"\\]|\\[^\x00-\x08\x0a-\x1f\x7f])*)"')
_LITERAL: Final = re.compile(r"\[([^\x00-\x20\x7f\[\]\\]*)\]")
_SPACE: Final = re.compile(r"[ \t]*")


class _Mail:
    """A parser for one mail address. A method that returns False leaves the position undefined."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def take(self, sign: str) -> bool:
        taken = self.text.startswith(sign, self.at)
        self.at += len(sign) * taken
        return taken

    def single(self) -> bool:
        """Parse an address and comments, up to the end of the text."""
        if not self.address(group=True):
            return False
        return self.comments() and self.at == len(self.text)

    def address(self, *, group: bool) -> bool:
        """Parse ``a@b``, ``Name <a@b>`` or ``Name: a@b;``."""
        self.skip(_SPACE)
        start = self.at
        if self.specification():
            self.skip(_SPACE)
            return not self.text.startswith("(", self.at) or (self.take("(") and self.comment())
        self.at = start
        if not self.text.startswith("<", self.at) and not self.phrase():
            return False
        self.skip(_SPACE)
        if group and self.take(":"):
            return self.address(group=False) and self.comments() and self.take(";") and self.comments()
        return self.take("<") and self.specification() and self.take(">")

    def specification(self) -> bool:
        """Parse ``local@domain``."""
        self.skip(_SPACE)
        if self.text.startswith('"', self.at):
            found = self.skip(_QUOTED)
            if found is None or not found[1]:
                return False
        elif not self.dotted():
            return False
        if not self.take("@"):
            return False
        self.skip(_SPACE)
        if self.text.startswith("[", self.at):
            found = self.skip(_LITERAL)
            return found is not None and _is_address(found[1])
        return self.dotted()

    def dotted(self) -> bool:
        found = self.skip(_ATOM)
        return found is not None and not (found[0].startswith(".") or found[0].endswith(".") or ".." in found[0])

    def phrase(self) -> bool:
        """Parse a display name: one word or more."""
        words = 0
        while True:
            if words and not self.comments():
                return False
            self.skip(_SPACE)
            if self.skip(_QUOTED if self.text.startswith('"', self.at) else _ATOM) is None:
                return words > 0 or self.at == len(self.text)
            words += 1

    def comments(self) -> bool:
        self.skip(_SPACE)
        while self.take("("):
            if not self.comment():
                return False
            self.skip(_SPACE)
        return True

    def comment(self) -> bool:
        """Parse to the end of a comment that has begun."""
        depth = 1
        while self.at < len(self.text) and depth:
            sign = self.text[self.at]
            if sign == "\\" and self.at + 1 < len(self.text):
                self.at += 1
            else:
                depth += (sign == "(") - (sign == ")")
            self.at += 1
        return depth == 0


def _is_address(text: str) -> bool:
    with suppress(ValueError):
        ipaddress.ip_address(text)
        return "%" not in text
    return False


def is_email(text: str) -> bool:
    """Whether a text is one mail address, with or without a display name."""
    return _Mail(text).single()
