"""Replaces variables in values: ``$NAME``, ``${NAME:-default}`` and Compose's other operators, nested; ``$$`` is ``$``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from steersman.application.syntax.nodes import ListNode, MapNode, Node, ScalarNode
from steersman.application.syntax.report import Report

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATOR = re.compile(r":?[-?+]")
_BRACES = re.compile(r"\$\$|\{|\}")
_VARIABLE_BRACES = re.compile(r"\$\$|\$\{|\}")
_DEPTH_MAX = 20
_CHARACTERS_MAX = 8 * 1024 * 1024

Lookup = Callable[[str], str | None]


class InterpolationError(Exception):
    """A required variable is missing, or the text is invalid."""


class Interpolation:
    """Replaces variables. The total size of the results is limited."""

    def __init__(self, lookup: Lookup, on_unset: Callable[[str], object] | None = None) -> None:
        self._lookup = lookup
        self._on_unset = on_unset
        self._characters = 0

    def replace(self, text: str) -> str:
        """The text with its variables replaced. Raises InterpolationError."""
        if "$" not in text:
            return text
        return self._replaced(text, 0)

    def _replaced(self, text: str, depth: int) -> str:
        if depth > _DEPTH_MAX:
            raise InterpolationError(f"variables are nested deeper than {_DEPTH_MAX} levels")
        parts: list[str] = []
        at, pairs = 0, _paired_braces(text)
        while (found := text.find("$", at)) >= 0:
            parts.append(text[at:found])
            part, at = self._variable(text, found, depth, pairs)
            parts.append(part)
            self._characters += len(part)
            if self._characters > _CHARACTERS_MAX:
                raise InterpolationError(
                    f"the values of the variables have more than {_CHARACTERS_MAX} characters in total"
                )
        parts.append(text[at:])
        return "".join(parts)

    def _variable(self, text: str, at: int, depth: int, pairs: Mapping[int, int]) -> tuple[str, int]:
        """The value of the variable at a dollar sign, and the position after it."""
        following = text[at + 1 : at + 2]
        if following == "$":
            return "$", at + 2
        if following == "{":
            end = _closing_brace(text, at + 1, pairs)
            return self._braced(text[at + 2 : end], depth), end + 1
        if name := _NAME.match(text, at + 1):
            return self._value(name[0]), name.end()
        return "$", at + 1

    def _value(self, name: str) -> str:
        value = self._lookup(name)
        if value is None and self._on_unset is not None:
            self._on_unset(name)
        return value or ""

    def _braced(self, inner: str, depth: int) -> str:
        name = _NAME.match(inner)
        if name is None:
            raise InterpolationError(f"${{{inner}}} has no variable name; write $$ for a dollar sign")
        rest = inner[name.end() :]
        if not rest:
            return self._value(name[0])
        operator = _OPERATOR.match(rest)
        if operator is None:
            raise InterpolationError(
                f"${{{inner}}} is not valid after {name[0]}; the operators are :- - :? ? :+ +, and $$ is a dollar sign"
            )
        value, operand = self._lookup(name[0]), rest[operator.end() :]
        is_set = bool(value) if operator[0].startswith(":") else value is not None
        match operator[0][-1]:
            case "-":
                return (value or "") if is_set else self._replaced(operand, depth + 1)
            case "+":
                return self._replaced(operand, depth + 1) if is_set else ""
            case _:
                if is_set:
                    return value or ""
                reason = self._replaced(operand, depth + 1) or "set it in the environment or in .env"
                raise InterpolationError(f"the variable {name[0]} is required: {reason}")


def _paired_braces(text: str) -> dict[int, int]:
    """The closing brace of each opening one that has its own, by their positions. Linear in the text."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for brace in _BRACES.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:
            found[opened.pop()] = brace.start()
    return found


def _closing_brace(text: str, at: int, pairs: Mapping[int, int]) -> int:
    """The end of the variable whose brace is at a position: a default may contain braces, such as those of JSON."""
    if (paired := pairs.get(at)) is not None:
        return paired
    # A brace in the default has no partner.
    depth, at = 1, at + 1
    while found := _VARIABLE_BRACES.search(text, at):
        if found[0] != "$$":
            depth += 1 if found[0] == "${" else -1
        if not depth:
            return found.start()
        at = found.end()
    raise InterpolationError("${ has no closing brace; write $$ for a dollar sign")


def interpolate(node: Node, report: Report) -> Node:
    """Replace the variables in the values of a document, not in its keys."""
    environment = node.origin.environment
    unset: dict[str, None] = {}
    interpolation = Interpolation(environment.get, unset.setdefault)
    warned: set[str] = set()

    def replaced(inner: Node) -> Node:
        if isinstance(inner, ListNode):
            return ListNode(inner.origin, inner.line, inner.column, inner.tag, items=tuple(map(replaced, inner.items)))
        if isinstance(inner, MapNode):
            items = {name: value if name.startswith("x-") else replaced(value) for name, value in inner.items.items()}
            return inner.with_items(items, {})
        if not isinstance(inner, ScalarNode) or "$" not in inner.text:
            return inner
        try:
            text = interpolation.replace(inner.text)
        except InterpolationError as error:
            report.lose(inner, str(error))
            text = ""
        for name in unset.keys() - warned:
            own = "a shell" if inner.origin.is_compose else "a shell (shell: true)"
            report.warn(
                inner,
                f"the variable {name} is not set, so it is empty; set it in the environment or in .env,"
                f" or write $${name} if {own} of the service is to replace it",
            )
        warned.update(unset)
        return ScalarNode(inner.origin, inner.line, inner.column, inner.tag, text=text)

    return replaced(node)
