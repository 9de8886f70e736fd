"""``.env`` files and files of ``env_file`` and ``label_file``, with the rules of Compose.

``NAME=value``, ``NAME: value``, ``export NAME=value``; a name without a value takes it from the environment. `` #`` begins a
comment after a value without quotes. Single quotes are literal; double quotes expand escapes and variables. Values in
quotes may have several lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from steersman.application.model import Place
from steersman.application.syntax.interpolation import Interpolation, InterpolationError
from steersman.application.syntax.report import Report, shown

_BLANK = re.compile(r"(?:\s+|#[^\n]*)+")
_EXPORT = re.compile(r"export[ \t]+(?=\S)")
#: A name, and the sign after it. A name alone ends at the end of its line.
_KEY = re.compile(r"(?P<name>[\w.\-\[\]]+)[ \t\r]*(?P<sign>[=:]|\n|\Z|#[^\n]*)[ \t]*")
_SINGLE = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:0[0-7]{1,3}|[abfnrtv\\\"$])")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", '"': '"'}
#: A file with more errors is not a dotenv file: reading stops.
_PROBLEMS_MAX = 20


def parse_dotenv(text: str, file: Path, environment: Mapping[str, str], report: Report) -> dict[str, str]:
    """The variables of a file. Where a value refers to a variable, ``environment`` overrides the file."""
    text = text.replace("\r\n", "\n")
    found: dict[str, str] = {}
    interpolation = Interpolation(lambda name: environment.get(name, found.get(name)))
    at = problems = 0
    while problems < _PROBLEMS_MAX:
        if blank := _BLANK.match(text, at):
            at = blank.end()
        if at >= len(text):
            return found
        if export := _EXPORT.match(text, at):
            at = export.end()
        key = _KEY.match(text, at)
        if key is None:
            report.error(_place(file, text, at), "expected NAME=value")
            at = _end_of_line(text, at)
            problems += 1
            continue
        name, at = key["name"], key.end()
        if key["sign"] not in {"=", ":"}:
            if name in environment:
                found[name] = environment[name]
            continue
        try:
            found[name], at = _value(text, at, interpolation)
        except InterpolationError as error:
            report.error(_place(file, text, key.start()), f"{name}: {error}")
            at = _end_of_line(text, at)
            problems += 1
    return found


def parse_raw_dotenv(text: str, file: Path, environment: Mapping[str, str], report: Report) -> dict[str, str]:
    """The variables of a file with literal values, including quotes and dollar signs."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, sign, value = line.lstrip().rstrip("\r").partition("=")
        if not name or re.search(r"\s", name):
            report.error(Place(file, number, 1), f"expected NAME=value, not {shown(name)}")
        elif sign:
            found[name] = value
        elif name in environment:
            found[name] = environment[name]
    return found


def _value(text: str, at: int, interpolation: Interpolation) -> tuple[str, int]:
    quote = text[at : at + 1]
    if quote == "'":
        if (single := _SINGLE.match(text, at)) is None:
            raise InterpolationError("the single quote is not closed")
        return single[1].replace("\\'", "'"), _rest_of_line(text, single.end())
    if quote == '"':
        if (double := _DOUBLE.match(text, at)) is None:
            raise InterpolationError("the double quote is not closed")
        return interpolation.replace(_ESCAPE.sub(_unescaped, double[1])), _rest_of_line(text, double.end())
    end = _end_of_line(text, at)
    value = "" if quote == "#" else re.split(r"[ \t]#", text[at:end], maxsplit=1)[0].rstrip()
    return interpolation.replace(value), end


def _unescaped(escape: re.Match[str]) -> str:
    inner = escape[0][1:]
    if inner == "$":
        return "$$"
    if inner[0] == "0":
        return chr(int(inner, 8))
    return _ESCAPES[inner]


def _rest_of_line(text: str, at: int) -> int:
    """The position after a closing quote and the rest of its line, which may only hold a comment."""
    end = _end_of_line(text, at)
    rest = text[at:end].strip()
    if rest and not rest.startswith("#"):
        raise InterpolationError("unexpected text after the closing quote")
    return end


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _place(file: Path, text: str, at: int) -> Place:
    return Place(file, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
