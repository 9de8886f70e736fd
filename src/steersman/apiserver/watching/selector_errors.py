"""kube-apiserver's messages about invalid selectors."""

from __future__ import annotations

import re

from steersman.errors import SelectorError
from steersman.objects.field_problems import problem
from steersman.schemas.names import label_value, qualified_name

_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+|$)")
_SYMBOLS = frozenset({"", "==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_OPERATORS = frozenset({"=", "==", "!=", "in", "notin", "<", ">"})

#: A term of a field selector, up to a comma that is not escaped.
_TERM = re.compile(r"(?:\\.|[^,\\]|\\$)*", re.DOTALL)
_TERM_OPERATOR = re.compile("!=|==|=")
#: What must not stand alone in a value.
_ESCAPED = re.compile(r"\\.?|[,=]", re.DOTALL)
_ESCAPES = frozenset({"\\\\", "\\,", "\\="})


def field_problem(text: str) -> str:
    """The message about an invalid field selector: about its first mistake, in the order of its terms."""
    for term in filter(None, _TERM.findall(text)):
        operator = _TERM_OPERATOR.search(term)
        if operator is None:
            return f"invalid selector: '{text}'; can't understand '{term}'"
        value = term[operator.end() :]
        for found in _ESCAPED.finditer(value):
            if found[0] not in _ESCAPES:
                # Go prints the number of a character that should be escaped.
                what = f"unescaped character in value: {ord(found[0])}" if found[0] in "=," else None
                return f"invalid field selector: {what or f'invalid escape sequence: {found[0]}'}"
    return f"invalid selector: '{text}'; can't understand '{text}'"


def label_problem(text: str, error: SelectorError) -> str:
    """The message about an invalid label selector."""
    try:
        _Reader(text).read()
    except SelectorError as wrong:
        return str(wrong)
    return f"unable to parse requirement: {error}"


class _Reader:
    """Parses a label selector as kube-apiserver does, up to its first mistake."""

    def __init__(self, text: str) -> None:
        self._words = [*(found[1] for found in _TOKEN.finditer(text)), "", ""]
        self._at = 0

    def read(self) -> None:
        while self._word:
            if self._word != "!" and self._word in _SYMBOLS:
                raise SelectorError(f"found '{self._word}', expected: !, identifier, or 'end of string'")
            try:
                self._requirement()
            except SelectorError as wrong:
                raise SelectorError(f"unable to parse requirement: {wrong}") from None
            if not self._word:
                return
            if self._word != ",":
                raise SelectorError(f"found '{self._word}', expected: ',' or 'end of string'")
            self._at += 1
            following = self._words[self._at]
            if following != "!" and following in _SYMBOLS:
                raise SelectorError(f"found '{following}', expected: identifier after ','")

    @property
    def _word(self) -> str:
        return self._words[self._at]

    def _next(self) -> str:
        self._at += 1
        return self._words[self._at - 1]

    def _requirement(self) -> None:
        negated = self._word == "!"
        self._at += negated
        key = self._next()
        if key in _SYMBOLS:
            raise SelectorError(f"found '{key}', expected: identifier")
        _check("<nil>", key, qualified_name(key))
        if negated or self._word in {",", ""}:
            return
        operator = self._next()
        if operator not in _OPERATORS:
            raise SelectorError(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if operator in {"in", "notin"} else [self._value()]
        if operator in {"<", ">"} and not re.fullmatch(r"[+-]?[0-9]{1,18}", values[0]):
            words = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise SelectorError(str(problem("<nil>", "FieldValueInvalid", values[0], words)))
        for index, value in enumerate(values):
            _check(f"values[{index}][{key}]", value, label_value(value))

    def _value(self) -> str:
        if self._word in {",", ""}:
            return ""
        value = self._next()
        if value in _SYMBOLS:
            raise SelectorError(f"found '{value}', expected: identifier")
        return value

    def _values(self) -> list[str]:
        opening = self._next()
        if opening != "(":
            raise SelectorError(f"found '{opening}' expected: '('")
        values: list[str] = []
        if self._word not in _SYMBOLS or self._word == ",":
            pass
        elif self._word != ")":
            raise SelectorError(f"found '{self._word}', expected: ',', ')' or identifier")
        while True:
            values.append("" if self._word in {",", ")"} else self._value())
            following = self._next()
            if following == ")":
                return values
            if following != ",":
                raise SelectorError(f"found '{following}', expected: ',' or ')'")


def _check(path: str, value: str, words: list[str]) -> None:
    if words:
        raise SelectorError(str(problem(path, "FieldValueInvalid", value, words[0])))
