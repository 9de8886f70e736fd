"""Label and field selectors: parse, build, match, print.

Guarantees:

- Selectors are immutable and hashable, and print as Kubernetes prints them: label requirements sorted by key, values
  sorted.
- ``parse(str(selector)) == selector`` for every selector.
- Every label selector is valid: keys, values and operators are checked when it is made. A violation raises
  `SelectorError` with the offending part and the allowed form.
- Matching follows Kubernetes: ``!=`` and ``notin`` also match objects without the label; a missing field is empty.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, Protocol, Self, TypeAlias, cast

import msgspec

from steersman.errors import SelectorError

LabelOperator: TypeAlias = Literal[
    "Equals", "DoubleEquals", "NotEquals", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"
]
"""The operator of a label requirement; ``DoubleEquals`` is ``Equals`` written as ``==``."""

FieldOperator: TypeAlias = Literal["=", "!="]

_OPERATORS: Final = ("Equals", "DoubleEquals", "NotEquals", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_SIGNS: Final[dict[str, str]] = {"Equals": "=", "DoubleEquals": "==", "NotEquals": "!=", "Gt": ">", "Lt": "<"}
_OPERATOR_OF: Final = {sign: operator for operator, sign in _SIGNS.items()} | {"in": "In", "notin": "NotIn"}

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_TOKEN: Final = re.compile(r"[ \t\r\n]*(?P<token>==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+|$)")
_SYMBOLS: Final = frozenset({"", "==", "!=", "=", "!", "(", ")", ",", "<", ">"})


class _Expression(Protocol):
    """One of ``matchExpressions`` of a typed meta/v1 LabelSelector."""

    @property
    def key(self) -> Any: ...
    @property
    def operator(self) -> Any: ...
    @property
    def values(self) -> Any: ...


class _LabelSelector(Protocol):
    """A typed meta/v1 LabelSelector."""

    @property
    def match_labels(self) -> Any: ...
    @property
    def match_expressions(self) -> Any: ...


class LabelRequirement(msgspec.Struct, frozen=True):
    """One condition on a label; checked when made, its values sorted and unique."""

    key: str
    operator: LabelOperator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that Kubernetes would accept the requirement."""
        _check_key(self.key)
        if self.operator not in _OPERATORS:
            raise SelectorError(
                f"label {self.key!r}: unknown operator {self.operator!r}; use one of {', '.join(_OPERATORS)}"
            )
        _check_values(self.key, self.operator, self.values)
        msgspec.structs.force_setattr(self, "values", tuple(sorted(set(self.values))))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels meets the requirement."""
        value = labels.get(self.key)
        match self.operator:
            case "Equals" | "DoubleEquals" | "In":
                return value is not None and value in self.values
            case "NotEquals" | "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                number, bound = _int64(value), _int64(self.values[0])
                if number is None or bound is None:
                    return False
                return number > bound if self.operator == "Gt" else number < bound

    def __str__(self) -> str:
        match self.operator:
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case "In" | "NotIn":
                return f"{self.key} {self.operator.lower()} ({','.join(self.values)})"
            case _:
                return f"{self.key}{_SIGNS[self.operator]}{self.values[0]}"


def check_equalities(wanted: Mapping[str, object]) -> None:
    """Reject a dictionary with values other than strings, and explain how to write the intended selector."""
    for key, value in wanted.items():
        match value:
            case str():
                continue
            case None:
                write = f'"!{key}" for objects without it, "{key}" for objects with any value'
            case Mapping():
                write = "Selector.from_label_selector({...}) for a LabelSelector"
            case list() | tuple() | set() | frozenset():
                write = f'"{key} in ({",".join(str(each) for each in cast("Iterable[object]", value))})"'
            case _:
                write = f'"{str(value).lower() if isinstance(value, bool) else value}"'
        raise TypeError(f"selector {{{key!r}: {value!r}}}: values of a dictionary must be strings; write {write}")


class Selector(msgspec.Struct, frozen=True):
    """A label selector: all its requirements must hold. An empty one selects everything.

    Example: ``Selector.parse("app=web,tier in (front,back),!legacy")``, or ``Selector.of({"app": "web"})``.
    """

    requirements: tuple[LabelRequirement, ...] = ()

    def __post_init__(self) -> None:
        """Sort by key, stably, as Kubernetes does."""
        msgspec.structs.force_setattr(self, "requirements", tuple(sorted(self.requirements, key=lambda each: each.key)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text form: ``app=web,tier in (a,b),!legacy``."""
        return cls(_LabelParser(text).requirements())

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Self:
        """Select objects that have all these labels with these values."""
        check_equalities(labels)
        return cls(tuple(LabelRequirement(key, "Equals", (value,)) for key, value in labels.items()))

    @classmethod
    def nothing(cls) -> Self:
        """Select no object: a contradiction that every server understands."""
        return cls((LabelRequirement("nothing", "Exists"), LabelRequirement("nothing", "DoesNotExist")))

    @classmethod
    def from_label_selector(cls, selector: Mapping[str, Any] | _LabelSelector | None) -> Self:
        """Convert a meta/v1 LabelSelector, typed or JSON. As in Kubernetes, None selects nothing, an empty one all."""
        if selector is None:
            return cls.nothing()
        if isinstance(selector, Mapping):
            labels, expressions = selector.get("matchLabels"), selector.get("matchExpressions")
        else:
            labels, expressions = selector.match_labels, selector.match_expressions
        matching = cast("dict[str, str]", labels or {})
        return cls(
            (
                *(LabelRequirement(key, "Equals", (value,)) for key, value in matching.items()),
                *(_requirement(expression) for expression in cast("Iterable[Any]", expressions or ())),
            )
        )

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether an object with these labels is selected."""
        found = labels or {}
        return all(requirement.matches(found) for requirement in self.requirements)

    def required_value(self, key: str) -> str | None:
        """The one value that the label must have, if the selector requires one; an index can use it."""
        for requirement in self.requirements:
            if (
                requirement.key == key
                and requirement.operator in {"Equals", "DoubleEquals", "In"}
                and len(requirement.values) == 1
            ):
                return requirement.values[0]
        return None

    def __and__(self, other: "Selector") -> "Selector":
        return Selector((*self.requirements, *other.requirements))

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


def _requirement(expression: Mapping[str, Any] | _Expression) -> LabelRequirement:
    if isinstance(expression, Mapping):
        key, operator, values = expression.get("key", ""), expression.get("operator", ""), expression.get("values")
    else:
        key, operator, values = expression.key, expression.operator, expression.values
    if operator not in {"In", "NotIn", "Exists", "DoesNotExist"}:
        raise SelectorError(
            f"label {key!r}: {operator!r} is not an operator of matchExpressions; use In, NotIn, Exists or DoesNotExist"
        )
    return LabelRequirement(key, operator, tuple(values or ()))


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        raise SelectorError(
            f"label key {_shown(key)}: the part before '/' must be a lower-case DNS name such as example.com, at most"
            " 253 characters"
        )
    if len(name) > 63 or not _NAME.fullmatch(name):
        raise SelectorError(
            f"label key {_shown(key)}: the name must be 1 to 63 letters, digits, '-', '_' or '.', starting and ending"
            " with a letter or digit"
        )


def _check_values(key: str, operator: str, values: tuple[str, ...]) -> None:
    if operator in {"Exists", "DoesNotExist"}:
        if values:
            raise SelectorError(f"label {key!r}: {operator} takes no values (got {len(values)})")
    elif operator in {"In", "NotIn"}:
        if not values:
            raise SelectorError(f"label {key!r}: {operator} needs at least one value")
    elif len(values) != 1:
        raise SelectorError(f"label {key!r}: {operator} takes exactly one value (got {len(values)})")
    elif operator in {"Gt", "Lt"} and _int64(values[0]) is None:
        raise SelectorError(f"label {key!r}: {operator} needs an integer (got {_shown(values[0])})")
    for value in values:
        if value and (len(value) > 63 or not _NAME.fullmatch(value)):
            raise SelectorError(
                f"label {key!r}: the value {_shown(value)} must be at most 63 letters, digits, '-', '_' or '.', "
                "starting and ending with a letter or digit"
            )


def _int64(text: str | None) -> int | None:
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:80]}...")


class _LabelParser:
    """Parses the text form of a label selector."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [match for match in _TOKEN.finditer(text) if match["token"] or match.end() == len(text)]
        self._at = 0

    def requirements(self) -> tuple[LabelRequirement, ...]:
        found: list[LabelRequirement] = []
        if self._peek() == "":
            return ()
        while True:
            found.append(self._requirement())
            following = self._next()
            if following == "":
                return tuple(found)
            if following != ",":
                raise self._unexpected("',' or the end")

    def _requirement(self) -> LabelRequirement:
        negated = self._peek() == "!"
        if negated:
            self._next()
        key = self._word("a label key")
        try:
            if negated or self._peek() in {",", ""}:
                return LabelRequirement(key, "DoesNotExist" if negated else "Exists")
            operator = cast("LabelOperator | None", _OPERATOR_OF.get(self._next()))
            if operator is None:
                raise self._unexpected("one of =, ==, !=, in, notin, >, <, ',' or the end")
            values = self._values() if operator in {"In", "NotIn"} else self._value()
            return LabelRequirement(key, operator, values)
        except SelectorError as error:
            if str(error).startswith("cannot read"):
                raise
            raise SelectorError(f"cannot read the label selector {_shown(self._text)}: {error}") from None

    def _value(self) -> tuple[str, ...]:
        if self._peek() in {",", ""}:
            return ("",)
        return (self._word("a label value"),)

    def _values(self) -> tuple[str, ...]:
        if self._next() != "(":
            raise self._unexpected("'('")
        values: list[str] = []
        while True:
            # An empty item between separators is the empty value.
            values.append("" if self._peek() in {",", ")"} else self._word("a label value"))
            following = self._next()
            if following == ")":
                return tuple(values)
            if following != ",":
                raise self._unexpected("',' or ')'")

    def _peek(self) -> str:
        return self._tokens[self._at]["token"] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _word(self, expected: str) -> str:
        token = self._next()
        if token in _SYMBOLS:
            raise self._unexpected(expected)
        return token

    def _unexpected(self, expected: str) -> SelectorError:
        """The error for the last token."""
        last = min(self._at, len(self._tokens)) - 1
        token = self._tokens[last]["token"]
        found = f"{_shown(token)} at position {self._tokens[last].start('token') + 1}" if token else "the end"
        return SelectorError(f"cannot read the label selector {_shown(self._text)}: expected {expected}, found {found}")


class FieldRequirement(msgspec.Struct, frozen=True):
    """One condition on a field, such as ``metadata.name=web``."""

    field: str
    operator: FieldOperator
    value: str

    def __post_init__(self) -> None:
        """Reject a name that could not be parsed back: field names have no escapes."""
        if (
            not self.field
            or any(sign in self.field for sign in "=,\\")
            or self.field.endswith("!")
            or "!=" in self.field
        ):
            raise SelectorError(f"not a field name: {_shown(self.field)}; write one such as metadata.name")
        if self.operator not in {"=", "!="}:
            raise SelectorError(f"field {self.field!r}: unknown operator {self.operator!r}; use = or !=")

    def matches(self, fields: Mapping[str, str] | Callable[[str], str | None]) -> bool:
        """Whether an object with these field values meets the requirement."""
        value = fields(self.field) if callable(fields) else fields.get(self.field)
        return ((value or "") == self.value) == (self.operator == "=")

    def __str__(self) -> str:
        escaped = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{self.operator}{escaped}"


#: The longest field selector that is parsed only once.
_KEPT_LENGTH = 256


@lru_cache(maxsize=256)
def _field_requirements(text: str) -> tuple[FieldRequirement, ...]:
    return tuple(_field_requirement(text, term) for term in _terms(text) if term)


class FieldSelector(msgspec.Struct, frozen=True):
    """A field selector: all its requirements must hold. An empty one selects everything."""

    requirements: tuple[FieldRequirement, ...] = ()

    def __post_init__(self) -> None:
        """Sort the terms by their text, as Kubernetes does."""
        if len(self.requirements) > 1:
            msgspec.structs.force_setattr(self, "requirements", tuple(sorted(self.requirements, key=str)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text form: ``metadata.name=web,spec.nodeName!=``."""
        # Clients repeat a few short selectors; long ones may be anything.
        return cls(_field_requirements(text) if len(text) <= _KEPT_LENGTH else _field_requirements.__wrapped__(text))

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> Self:
        """Select objects whose fields all have these values."""
        return cls(tuple(FieldRequirement(field, "=", value) for field, value in fields.items()))

    def matches(self, fields: Mapping[str, str] | Callable[[str], str | None]) -> bool:
        """Whether an object is selected, given its field values or a function that returns one."""
        return all(requirement.matches(fields) for requirement in self.requirements)

    def required_value(self, field: str) -> str | None:
        """The one value that the field must have, if the selector requires one."""
        for requirement in self.requirements:
            if requirement.field == field and requirement.operator == "=":
                return requirement.value
        return None

    def __and__(self, other: "FieldSelector") -> "FieldSelector":
        return FieldSelector((*self.requirements, *other.requirements))

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


_FIELD_TERM: Final = re.compile(r"(?:[^\\,]|\\.)*\\?", re.DOTALL)
_FIELD_OPERATOR: Final = re.compile(r"!=|==|=")


def _terms(text: str) -> list[str]:
    """Split at unescaped commas; the escapes stay."""
    terms: list[str] = []
    position = 0
    while True:
        match = _FIELD_TERM.match(text, position)
        assert match is not None  # the pattern also matches the empty string
        terms.append(match[0])
        position = match.end() + 1
        if match.end() >= len(text):
            return terms


def _field_requirement(text: str, term: str) -> FieldRequirement:
    operator = _FIELD_OPERATOR.search(term)
    if operator is None:
        raise SelectorError(f"cannot read the field selector {_shown(text)}: {_shown(term)} has no =, == or !=")
    value: list[str] = []
    signs = iter(term[operator.end() :])
    for sign in signs:
        if sign == "\\":
            escaped = next(signs, "")
            if escaped not in {"\\", ",", "="}:
                raise SelectorError(
                    f"cannot read the field selector {_shown(text)}: unknown escape '\\{escaped}'; only \\\\, \\, and \\= exist"
                )
            value.append(escaped)
        elif sign == "=":
            raise SelectorError(f"cannot read the field selector {_shown(text)}: write '=' within a value as \\=")
        else:
            value.append(sign)
    return FieldRequirement(term[: operator.start()], "!=" if operator[0] == "!=" else "=", "".join(value))
