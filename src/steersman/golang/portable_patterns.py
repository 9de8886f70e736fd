r"""Regular expressions with the same meaning in Go (which enforces a CRD's patterns) and in Python (which validates).

Guarantees
- `check_pattern` accepts an expression only if both engines support it; otherwise its error gives the reason.
- `compile_pattern` returns a Python expression that matches what Go's matches: ``$`` is the end of the text only, not
  also before a final newline; ``\d``, ``\w``, ``\s`` and ``\b`` are ASCII only; POSIX classes work.

Python's engine backtracks and Go's does not: an expression such as ``(a+)+$`` can be slow in Python on hostile input.
These expressions are therefore never used for matching: they only decide what a class may declare.
"""

from __future__ import annotations

import re

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"!-\~",
    "lower": "a-z",
    "print": r" -\~",
    "punct": r"!-/:-@\[-`{-\~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
#: Classes with their own escape, and their members.
_ESCAPED_CLASSES = {
    "d": "0-9",
    "D": r"\x00-/:-\U0010ffff",
    "s": r"\t\n\f\r ",
    "S": r"\x00-\x08\x0b\x0e-\x1f!-\U0010ffff",
    "w": "0-9A-Za-z_",
    "W": r"\x00-/:-@\[-\^`{-\U0010ffff",
}
_SAME_ESCAPES = frozenset("afnrtv")
_FOREIGN_ESCAPES = {
    "p": "Unicode classes, which Python does not have",
    "P": "Unicode classes, which Python does not have",
    "Q": r"\Q...\E, which Python does not have",
    "C": r"\C, which Python does not have",
    "Z": r"\Z, which Go does not have: write $",
    "b": r"\b inside [...], which Go does not have",
    "B": r"\B inside [...], which Go does not have",
}
_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_FLAGS = re.compile(r"\(\?(?P<on>[ims]*)(?:-(?P<off>[ims]+))?(?P<end>[:)])")
_NAMED = re.compile(r"\(\?P?<(?P<name>[A-Za-z_][A-Za-z0-9_]*)>")
_POSIX_CLASS = re.compile(r"\[:(\^?)(\w*):\]")
#: Go rejects more repetitions than this, counting nested ones multiplied.
_REPEAT_MAX = 1000


def check_pattern(expression: str) -> None:
    """Raise ValueError unless both Go's RE2 and Python's re support ``expression``."""
    compile_pattern(expression)


def compile_pattern(expression: str) -> re.Pattern[str]:
    """Compile ``expression`` for Python with Go's meaning; ValueError if the two engines differ."""
    translated = _Translation(expression).run()
    try:
        return re.compile(translated)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"the pattern {expression!r} is not a regular expression: {error}") from error


class _Translation:
    """One pass over an expression, from Go's syntax to Python's."""

    def __init__(self, expression: str) -> None:
        self.source = expression
        self.at = 0
        self.out: list[str] = []
        #: For each open group: whether ^ and $ match at lines, and the highest repetition count inside.
        self.groups: list[tuple[bool, int]] = [(False, 1)]
        #: For each open group: the flags set inside, each of them a separate group in Python.
        self.flags: list[list[str]] = [[]]
        #: How often the last atom repeats; None if there is nothing to repeat.
        self.atom: int | None = None

    def refuse(self, what: str) -> ValueError:
        return ValueError(f"the pattern {self.source!r} uses {what}")

    def run(self) -> str:
        while self.at < len(self.source):
            sign = self.source[self.at]
            match sign:
                case "\\":
                    self.emit(self.escape(in_class=False))
                case "[":
                    self.emit(self.character_class())
                case "(":
                    self.open_group()
                case ")":
                    self.close_group()
                case "*" | "+" | "?":
                    self.repeat(sign, 1)
                case "{":
                    self.braces()
                case "$":
                    self.at += 1
                    self.emit("$" if self.groups[-1][0] else r"\Z")
                case "|":
                    self.at += 1
                    # Flags extend over alternatives, groups do not.
                    self.out += [")" * len(self.flags[-1]), sign, *self.flags[-1]]
                    self.atom = None
                case _:
                    self.at += 1
                    self.emit(sign)
        return "".join(self.out) + ")" * len(self.flags[0])

    def emit(self, text: str) -> None:
        self.out.append(text)
        self.atom = 1

    def escape(self, *, in_class: bool) -> str:
        sign = self.source[self.at + 1 : self.at + 2]
        self.at += 2
        if sign in _ESCAPED_CLASSES:
            members = _ESCAPED_CLASSES[sign]
            return members if in_class else f"[{members}]"
        if sign in {"b", "B"} and not in_class:
            return f"(?a:\\{sign})"
        if sign in _SAME_ESCAPES or (sign == "A" and not in_class):
            return f"\\{sign}"
        if sign == "z" and not in_class:
            return r"\Z"
        if sign == "x":
            return self.hexadecimal()
        if sign in _FOREIGN_ESCAPES:
            raise self.refuse(_FOREIGN_ESCAPES[sign])
        if sign.isdigit():
            raise self.refuse("back references or octal escapes, which Go and Python do not share")
        if not sign or sign.isalpha() or not sign.isascii():
            raise self.refuse(f"the escape \\{sign}, which Go and Python do not share")
        return f"\\{sign}"

    def hexadecimal(self) -> str:
        found = re.compile(r"\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2})").match(self.source, self.at)
        code = int(found[1] or found[2], 16) if found else 0x110000
        if found is None or code > 0x10FFFF:
            raise self.refuse(r"\x without a hexadecimal number: write \x7f or \x{10ffff}")
        self.at = found.end()
        return f"\\U{code:08x}"

    def character_class(self) -> str:
        """Translate ``[...]``, escaping characters that are special in Python only."""
        start, parts = self.at, ["["]
        self.at += 1
        if self.source.startswith("^", self.at):
            parts.append("^")
            self.at += 1
        first = True
        while first or not self.source.startswith("]", self.at):
            if self.at >= len(self.source):
                raise ValueError(f"the pattern {self.source!r} does not close the [ at position {start}")
            parts.append(self.class_member(first=first))
            first = False
        self.at += 1
        return "".join([*parts, "]"])

    def class_member(self, *, first: bool) -> str:
        sign = self.source[self.at]
        if sign == "\\":
            return self.escape(in_class=True)
        if posix := _POSIX_CLASS.match(self.source, self.at):
            if posix[1] or posix[2] not in _POSIX:
                raise self.refuse(f"the class {posix[0]}, which Go and Python do not share")
            self.at = posix.end()
            return _POSIX[posix[2]]
        if self.source.startswith("--", self.at) and not first:
            raise self.refuse(r"-- inside [...], which reads as a set operation: write \-")
        self.at += 1
        return f"\\{sign}" if sign in "[]&~|" else sign

    def open_group(self) -> None:
        lines, _ = self.groups[-1]
        if not self.source.startswith("(?", self.at):
            self.at += 1
            self.out.append("(")
        elif named := _NAMED.match(self.source, self.at):
            self.at = named.end()
            self.out.append(f"(?P<{named['name']}>")
        elif flags := _FLAGS.match(self.source, self.at):
            self.at = flags.end()
            opened = f"{flags[0][:-1]}:"
            self.out.append(opened)
            lines = ("m" in flags["on"] or lines) and "m" not in (flags["off"] or "")
            if flags["end"] == ")":
                self.flags[-1].append(opened)
                self.groups[-1] = (lines, self.groups[-1][1])
                return
        else:
            what = self.source[self.at : self.at + 4]
            raise self.refuse(
                f"{what}: of the groups that start with (?, Go and Python share (?:, (?P<name> and the flags i, m, s"
            )
        self.groups.append((lines, 1))
        self.flags.append([])
        self.atom = None

    def close_group(self) -> None:
        if len(self.groups) == 1:
            raise ValueError(f"the pattern {self.source!r} closes a group that is not open")
        _, busiest = self.groups.pop()
        self.at += 1
        self.out.append(")" * (len(self.flags.pop()) + 1))
        self.atom = busiest
        self._note(busiest)

    def braces(self) -> None:
        found = _REPEAT.match(self.source, self.at)
        if found is None:
            if re.compile(r"\{,\d+\}").match(self.source, self.at):
                raise self.refuse("{,n}, which Go takes literally: write {0,n}")
            self.at += 1
            self.emit(r"\{")
            return
        # Python refuses to parse thousands of digits.
        self.repeat(found[0], max(int(found[1][:9]), int((found[2] or "0")[:9])))

    def repeat(self, operator: str, times: int) -> None:
        if self.atom is None:
            raise ValueError(f"the pattern {self.source!r} has nothing to repeat at position {self.at}")
        times = max(times, 1) * self.atom
        if times > _REPEAT_MAX:
            raise self.refuse(f"more than {_REPEAT_MAX} repetitions, which Go rejects")
        self.at += len(operator)
        self.out.append(operator)
        if self.source.startswith("?", self.at):
            self.at += 1
            self.out.append("?")
        if re.compile(r"[*+?]|\{\d+(?:,\d*)?\}").match(self.source, self.at):
            raise self.refuse("a repetition of a repetition, which Go rejects: put the inner one into (?:...)")
        self._note(times)
        # A repeated atom can be repeated again only as a group.
        self.atom = times

    def _note(self, times: int) -> None:
        lines, busiest = self.groups[-1]
        self.groups[-1] = (lines, max(busiest, times))
