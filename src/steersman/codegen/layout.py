"""Python text laid out like ``ruff format``, for the few forms that generated models use.

Guarantees
- Text is deterministic and at most 120 columns wide, except for single strings that are longer themselves.
- Formatting the output with ruff (line length 120) changes nothing.
"""

from __future__ import annotations

import re
import textwrap
from typing import TypeAlias

import msgspec

WIDTH = 120
_STEP = 4


class Bracket(msgspec.Struct, frozen=True):
    """``head(items)`` or ``head[items]``."""

    head: str
    opening: str
    items: tuple[Expression, ...]

    @property
    def closing(self) -> str:
        """The closing bracket."""
        return {"(": ")", "[": "]", "{": "}"}[self.opening]


class Keyword(msgspec.Struct, frozen=True):
    """``name=value`` inside a call."""

    name: str
    value: Expression


class Alternatives(msgspec.Struct, frozen=True):
    """``X | Y``."""

    members: tuple[Expression, ...]


Expression: TypeAlias = str | Bracket | Keyword | Alternatives


def call(head: str, *items: Expression) -> Bracket:
    """``head(items)``."""
    return Bracket(head, "(", items)


def subscript(head: str, *items: Expression) -> Bracket:
    """``head[items]``."""
    return Bracket(head, "[", items)


def literal(value: object) -> str:
    """A constant as ruff spells it: with double quotes, raw if that saves backslashes."""
    if not isinstance(value, str):
        return repr(value)
    if "\\" in value and '"' not in value and value.isprintable() and not value.endswith("\\"):
        return f'r"{value}"'
    spelled = repr(value)
    if spelled.startswith("'"):
        inner = spelled[1:-1]
        if '"' in inner and "\\'" not in inner and "'" not in value:
            return spelled  # ruff prefers the quotes that need fewer escapes
        return '"' + inner.replace("\\'", "'").replace('"', '\\"') + '"'
    return spelled


def flat(expression: Expression) -> str:
    """An expression on one line."""
    match expression:
        case str():
            return expression
        case Keyword(name, value):
            return f"{name}={flat(value)}"
        case Alternatives(members):
            return " | ".join(map(flat, members))
        case Bracket(head, opening, items):
            comma = "," if opening == "(" and not head and len(items) == 1 else ""
            return f"{head}{opening}{', '.join(map(flat, items))}{comma}{expression.closing}"


def _fits(text: str) -> bool:
    return len(text) <= WIDTH


def laid_out(expression: Expression, *, indent: int, before: str, after: str) -> list[str]:
    """The lines of ``before`` + expression + ``after``; ``before`` includes its indentation."""
    whole = f"{before}{flat(expression)}{after}"
    if _fits(whole):
        return [whole]
    match expression:
        case Keyword(name, value):
            return laid_out(value, indent=indent, before=f"{before}{name}=", after=after)
        case Bracket(head, opening, items) if items:
            return [
                f"{before}{head}{opening}",
                *_items(expression, indent + _STEP),
                f"{' ' * indent}{expression.closing}{after}",
            ]
        case _:
            return [whole]


def _items(bracket: Bracket, indent: int) -> list[str]:
    """The content of a bracket: on one line if it fits, else one item per line."""
    margin = " " * indent
    items = bracket.items
    joined = margin + ", ".join(map(flat, items))
    lone = len(items) == 1 and (bracket.opening == "[" or isinstance(items[0], str))
    is_tuple = bracket.opening == "(" and not bracket.head
    if _fits(joined) and not (is_tuple and len(items) == 1):
        return [joined]
    if lone and not is_tuple:
        return laid_out(items[0], indent=indent, before=margin, after="")
    return [line for item in items for line in laid_out(item, indent=indent, before=margin, after=",")]


def assignment(name: str, annotation: Expression, value: Expression | None, *, indent: int = _STEP) -> list[str]:
    """``name: annotation = value`` inside a class body."""
    margin = " " * indent
    right = "" if value is None else f" = {flat(value)}"
    whole = f"{margin}{name}: {flat(annotation)}{right}"
    if _fits(whole):
        return [whole]
    left = f"{margin}{name}: {flat(annotation)} = "
    if isinstance(value, Bracket) and _fits(f"{left}{value.head}{value.opening}"):
        return laid_out(value, indent=indent, before=left, after="")
    if value is not None and not isinstance(annotation, Bracket) and _fits(f"{left}("):
        return [f"{left}(", f"{margin}    {flat(value)}", f"{margin})"]
    if isinstance(annotation, Bracket):
        return laid_out(annotation, indent=indent, before=f"{margin}{name}: ", after=right)
    return [f"{margin}{name}: (", *_alternatives(annotation, indent + _STEP), f"{margin}){right}"]


def _alternatives(annotation: Expression, indent: int) -> list[str]:
    margin = " " * indent
    whole = margin + flat(annotation)
    if _fits(whole) or not isinstance(annotation, Alternatives):
        return [whole]
    first, *others = annotation.members
    lines = laid_out(first, indent=indent, before=margin, after="")
    for member in others:
        lines += laid_out(member, indent=indent, before=f"{margin}| ", after="")
    return lines


def class_line(name: str, arguments: tuple[Expression, ...]) -> list[str]:
    """``class name(arguments):``."""
    return laid_out(call(f"class {name}", *arguments), indent=0, before="", after=":")


def import_line(module: str, names: list[str], *, indent: int = 0) -> list[str]:
    """``from module import names``, one name per line if they do not fit after ``indent`` spaces."""
    whole = f"from {module} import {', '.join(names)}"
    if _fits(" " * indent + whole):
        return [whole]
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]


def name_list(names: list[str]) -> list[str]:
    """``__all__ = [...]``."""
    return ["__all__ = [", *(f'    "{name}",' for name in names), "]"]


def docstring(text: str, *, indent: int = _STEP) -> list[str]:
    """A wrapped docstring; empty without text."""
    body = wrapped(text.replace('"""', "'''"), WIDTH - indent - len(_OPENING))
    if len(body) == 1 and len(body[0]) > WIDTH - indent - len(_OPENING) - len(_CLOSING):
        # The closing quotes do not fit on the line, and ruff would not move them to their own.
        body = wrapped(body[0], WIDTH - indent - len(_OPENING) - len(_CLOSING))
    if not body:
        return []
    margin = " " * indent
    quotes = 'r"""' if any("\\" in line for line in body) else '"""'
    opening = f"{quotes} " if body[0].startswith('"') else quotes
    if len(body) == 1:
        return [f"{margin}{opening}{body[0]}" + (" " if body[0].endswith(('"', "\\")) else "") + '"""']
    rest = textwrap.dedent("\n".join(body[1:])).split("\n")
    return [f"{margin}{opening}{body[0]}", *(f"{margin}{line}".rstrip() for line in rest), f'{margin}"""']


def wrapped(text: str, width: int) -> list[str]:
    """Wrap each line of a text. Lists, examples and empty lines between paragraphs are kept."""
    lines: list[str] = []
    for raw in text.expandtabs(4).strip().splitlines():
        line = raw.rstrip()
        if len(line) <= width:
            lines.append(line)
            continue
        lead = _LEAD.match(line)
        margin = " " * len(lead[0]) if lead else ""
        lines += textwrap.wrap(line, width, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).split("\n") if lines else []


#: The longest opening of a docstring's first line; wrapping leaves room for it on every line.
_OPENING = 'r""" '
_CLOSING = ' """'
#: The indentation of a line, with the marker of a list item.
_LEAD = re.compile(r"\s*(?:(?:[-*+]|\d{1,2}[.)])\s+)?")
