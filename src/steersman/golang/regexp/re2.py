"""Regular expressions run by RE2, if google-re2 is installed.

Guarantees
- RE2 gets an expression without classes, flags or case: Go's tables decide what matches, not RE2's.
- If an expression is too large for RE2, `re2_expression` returns None.
- Nothing imports google-re2 before an expression is matched, and everything works without it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

from steersman.golang.regexp.character_ranges import Ranges
from steersman.golang.regexp.nodes import Characters, Choice, Node, Place, Repetition, Sequence, Where

#: Bytes for the program of an expression and for RE2's machine.
_MEMORY_MAX: Final = 512 * 1024
#: RE2 gets no expression with more ranges: its text would be megabytes long.
_RANGES_MAX: Final = 10_000
#: An expression used this often is compiled a second time, to match faster.
_OFTEN: Final = 8
_PLACES: Final[dict[Where, str]] = {
    "text begin": r"\A",
    "text end": r"\z",
    "line begin": "(?m:^)",
    "line end": "(?m:$)",
    "word boundary": r"\b",
}


@cache
def _library() -> Any:
    try:
        return import_module("re2")
    except ImportError:
        return None


class Re2Expression:
    """An expression compiled by RE2."""

    __slots__ = ("_alone", "_make_set", "_set", "_used", "size")

    def __init__(self, alone: Any, make_set: Callable[[], Any]) -> None:
        self._alone = alone
        self._make_set = make_set
        self._set: Any = None
        self._used = 0
        #: The number of instructions of its program.
        self.size: int = alone.programsize

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere in a text. Raises UnicodeEncodeError if the text holds half a character."""
        encoded = text.encode()
        if self._set is None and self._used < _OFTEN:
            self._used += 1
            if self._used == _OFTEN:
                self._set = self._make_set()
        # A set says yes four times as fast. Its no may mean that it ran out of memory.
        if self._set is not None and self._set.Match(encoded) is not None:
            return True
        return self._alone.search(encoded) is not None


def re2_expression(root: Node) -> Re2Expression | None:
    """Compile an expression; None without google-re2, or if the expression is too large for it."""
    library = _library()
    if library is None:
        return None
    options = library.Options()
    options.max_mem = _MEMORY_MAX
    options.log_errors = False
    options.never_capture = True
    written = _written(root)
    if written is None:
        return None
    try:
        alone = library.compile(written, options)
    except library.error:
        return None

    def make_set() -> Any:
        made = library.Set.SearchSet(options)
        try:
            made.Add(written)
            made.Compile()
        except library.error:
            return None
        return made

    return Re2Expression(alone, make_set)


def _written(root: Node) -> str | None:  # noqa: C901 - one case for each kind
    """The expression in RE2's syntax; None if RE2 would find other matches, or the text would be too long."""
    out: list[str] = []
    ranges = 0
    pending: list[Node | str] = [root]
    while pending:
        node = pending.pop()
        match node:
            case str():
                out.append(node)
            case Characters():
                ranges += len(node.ranges)
                if ranges > _RANGES_MAX:
                    return None
                out.append(_class(node.ranges))
            case Place(where="no word boundary"):
                # RE2 finds such a position between the bytes of a character.
                return None
            case Place():
                out.append(_PLACES[node.where])
            case Sequence():
                pending += reversed(node.parts)
            case Choice():
                between: list[Node | str] = [")"]
                for part in reversed(node.parts):
                    between += (part, "|")
                pending += [*between[:-1], "(?:"]
            case Repetition():
                most = "" if node.most is None else node.most
                greedy = "" if node.greedy else "?"
                pending += (f"){{{node.least},{most}}}{greedy}", node.part, "(?:")
    return "".join(out)


def _class(ranges: Ranges) -> str:
    if not ranges:
        return r"[^\x{0}-\x{10ffff}]"
    return "[" + "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in ranges) + "]"
