"""The characters that the view draws with: Unicode, or ASCII where the locale has no UTF-8."""

from __future__ import annotations

from typing import Final

import msgspec


class Look(msgspec.Struct, frozen=True):
    """Characters of one column each."""

    dot: str
    cursor: str
    rule: str
    bar: str
    ellipsis: str
    arrows: str
    separator: str
    is_ascii: bool = False


UNICODE: Final = Look("●", "▸", "─", "│", "…", "↑↓", " · ")
ASCII: Final = Look("*", ">", "-", "|", "...", "j/k", ", ", is_ascii=True)
