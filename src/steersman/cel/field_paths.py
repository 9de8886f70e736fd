"""The ``fieldPath`` of a rule: the field below its schema that a problem is reported for."""

from __future__ import annotations

import re
from typing import Final

from steersman.cel.model import Shape

_TOKENS: Final = re.compile(r"'(?:\\.|[^'\\])*'|[.\[\]]|[^.\[\]']+")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


def normalized_path(path: str, shape: Shape) -> str | None:
    """The path as printed in problems; None if the schema has no such field."""
    tokens = iter(_TOKENS.findall(path))
    printed, here = "", shape
    for sign in tokens:
        if sign == "[":
            quoted, closing = next(tokens, ""), next(tokens, "")
            name = _unquoted(quoted)
            if name is None or closing != "]":
                return None
        elif sign == ".":
            name = next(tokens, None)
            if name is None:
                return None
        else:
            return None
        if here.properties is not None:
            inner = here.properties.get(name)
            printed = f"{printed}.{name}" if printed else name
        else:
            inner = here.additional
            printed = f"{printed}[{name}]"
        if inner is None:
            return None
        here = inner
    return printed


def _unquoted(text: str) -> str | None:
    if len(text) < 2 or text[0] != "'" or text[-1] != "'":
        return None
    wrong = False

    def escape(found: re.Match[str]) -> str:
        nonlocal wrong
        wrong = wrong or found[0][1] not in _ESCAPES
        return _ESCAPES.get(found[0][1], "")

    plain = re.sub(r"\\.", escape, text[1:-1])
    return None if wrong else plain
