"""Kubernetes' own values in expressions: quantities, semantic versions, named formats."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from steersman.cel.declarations import NAMED_FORMATS
from steersman.cel.formats import matches_format
from steersman.cel.values import INT_MAX, INT_MIN, NOTHING, CelError, Maybe, Opaque, no_overload, one, two
from steersman.golang import parse_uint, quoted, uri_problem
from steersman.objects import Quantity


class QuantityValue(Opaque):
    """A quantity. The server cannot compare a `summed` one as the right operand."""

    __slots__ = ("quantity", "summed")
    type_name = "kubernetes.Quantity"

    def __init__(self, quantity: Quantity, *, summed: bool = False) -> None:
        self.quantity = quantity
        self.summed = summed

    def equals(self, other: Any) -> bool:
        if not isinstance(other, QuantityValue) or other.summed:
            raise no_overload()
        return self.quantity == other.quantity


def _quantity(text: str) -> QuantityValue:
    made = Quantity(text)
    if text != text.strip() or not made.is_valid():
        raise CelError(_quantity_error(text))
    return QuantityValue(made)


def _quantity_error(text: str) -> str:
    if not text:
        return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    found = re.match(r"[+-]?[0-9]*(?:\.[0-9]*)?", text)
    rest = text[found.end() :] if found else text
    if (
        found
        and (found[0] in {"+", "-"} or re.search(r"[0-9]", found[0]))
        and re.fullmatch(r"[eEinumkKMGTP]*[-+]?[0-9]*", rest)
    ):
        return "unable to parse quantity's suffix"
    return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def _is_quantity(text: str) -> bool:
    return text == text.strip() and Quantity(text).is_valid()


def _whole(value: QuantityValue) -> int | None:
    amount = value.quantity.as_fraction()
    if amount.denominator != 1 or not INT_MIN < amount.numerator < INT_MAX:
        return None
    return amount.numerator


def _approximate_float(value: QuantityValue) -> float:
    exact = value.quantity.as_fraction()
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _as_integer(value: QuantityValue) -> int:
    whole = _whole(value)
    if whole is None:
        raise CelError("cannot convert value to integer")
    return whole


def _joined(sign: int) -> Callable[[QuantityValue, Any], QuantityValue]:
    def joined(value: QuantityValue, other: Any) -> QuantityValue:
        right = other.quantity if isinstance(other, QuantityValue) else Quantity(other)
        return QuantityValue(value.quantity + right if sign > 0 else value.quantity - right, summed=True)

    return joined


def _sign(amount: Fraction | int) -> int:
    return (amount > 0) - (amount < 0)


class Version(Opaque):
    """A semantic version."""

    __slots__ = ("numbers", "pre")
    type_name = "kubernetes.Semver"

    def __init__(self, numbers: tuple[int, int, int], pre: tuple[tuple[int, int, str], ...]) -> None:
        self.numbers = numbers
        self.pre = pre

    def key(self) -> tuple[Any, ...]:
        """The sort key: a pre-release comes before its release."""
        return (self.numbers, not self.pre, self.pre)

    def equals(self, other: Any) -> bool:
        """Whether neither is older; build metadata does not count."""
        if not isinstance(other, Version):
            raise no_overload()
        return self.key() == other.key()


def _number(text: str, name: str) -> int:
    if not re.fullmatch(r"[0-9]*", text):
        raise CelError(f"Invalid character(s) found in {name} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise CelError(f"{name.capitalize()} number must not contain leading zeroes {quoted(text)}")
    return _uint(text)


def _uint(text: str) -> int:
    try:
        return parse_uint(text)
    except ValueError as error:
        raise CelError(str(error)) from None


def _pre(text: str) -> tuple[int, int, str]:
    if not text:
        raise CelError("Prerelease is empty")
    if re.fullmatch(r"[0-9]+", text):
        if len(text) > 1 and text[0] == "0":
            raise CelError(f"Numeric PreRelease version must not contain leading zeroes {quoted(text)}")
        return 0, _uint(text), ""
    if not re.fullmatch(r"[A-Za-z0-9-]+", text):
        raise CelError(f"Invalid character(s) found in prerelease {quoted(text)}")
    return 1, 0, text


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for at, part in enumerate(parts):
        if len(part) > 1:
            bare = part.lstrip("0")
            parts[at] = bare if bare[:1].isdigit() else f"0{bare}"
    if len(parts) < 3:
        if re.search(r"[+-]", parts[-1]):
            raise CelError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _semver(text: str, normalize: bool = False) -> Version:  # noqa: FBT001, FBT002 - an argument of CEL
    if normalize:
        text = _normalized(text)
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    rest, plus, build = parts[2].partition("+")
    patch, dash, pre = rest.partition("-")
    numbers = (_number(parts[0], "major"), _number(parts[1], "minor"), _number(patch, "patch"))
    releases = tuple(_pre(part) for part in pre.split(".")) if dash else ()
    for part in build.split(".") if plus else ():
        if not part:
            raise CelError("Build meta data is empty")
        if not re.fullmatch(r"[A-Za-z0-9-]+", part):
            raise CelError(f"Invalid character(s) found in build meta data {quoted(part)}")
    return Version(numbers, releases)


def _is_semver(text: str, *normalize: bool) -> bool:
    try:
        _semver(text, *normalize)
    except CelError:
        return False
    return True


def _compare(one: Any, two: Any) -> int:
    if isinstance(one, Version):
        return (one.key() > two.key()) - (one.key() < two.key())
    return _sign(one.quantity.as_fraction() - two.quantity.as_fraction())


class Format(Opaque):
    """A named format."""

    __slots__ = ("name",)
    type_name = "kubernetes.NamedFormat"

    def __init__(self, name: str) -> None:
        self.name = name

    def equals(self, other: Any) -> bool:
        if not isinstance(other, Format):
            raise no_overload()
        return self.name == other.name


#: The server's length of a format's expression in cost estimates.
FORMAT_SIZES: Final = {
    "dns1123Label": 30,
    "dns1123Subdomain": 60,
    "dns1035Label": 30,
    "qualifiedName": 60,
    "dns1123LabelPrefix": 30,
    "dns1123SubdomainPrefix": 60,
    "dns1035LabelPrefix": 30,
    "labelValue": 40,
    "uri": 1103,
    "uuid": 71,
    "byte": 84,
    "date": 72,
    "datetime": 72,
}
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SENTENCES: Final = {
    "label": "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')",
    "subdomain": "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    rf"'{_LABEL}(\.{_LABEL})*')",
    "1035": "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')",
    "qualified": "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{_QUALIFIED}')",
    "value": "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    r"'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
}
_NAMES: Final = {
    "dns1123Label": (_LABEL, 63, "label"),
    "dns1123Subdomain": (rf"{_LABEL}(\.{_LABEL})*", 253, "subdomain"),
    "dns1035Label": ("[a-z]([-a-z0-9]*[a-z0-9])?", 63, "1035"),
    "labelValue": (rf"({_QUALIFIED})?", 63, "value"),
    "prefix": (rf"{_LABEL}(\.{_LABEL})*", 253, "subdomain"),
}
_TOLD: Final = {
    "uuid": ("uuid", "does not match the UUID format"),
    "byte": ("byte", "invalid base64"),
    "date": ("date", "invalid date"),
    "datetime": ("datetime", "invalid datetime"),
}


def _name_problems(name: str, text: str) -> list[str]:
    expression, most, sentence = _NAMES[name]
    unit = "bytes" if name in {"labelValue", "prefix"} else "characters"
    problems = [f"must be no more than {most} {unit}"] if len(text.encode()) > most else []
    if not re.fullmatch(expression, text, re.ASCII):
        dotted = name == "dns1123Label" and re.fullmatch(_NAMES["dns1123Subdomain"][0], text, re.ASCII)
        problems.append("must not contain dots" if dotted else _SENTENCES[sentence])
    return problems


def _qualified_problems(text: str) -> list[str]:
    problems: list[str] = []
    parts = text.split("/")
    if len(parts) > 2:
        sentence = _SENTENCES["qualified"].removeprefix("name part ")
        return [
            "a valid label key "
            + sentence
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {said}" for said in _name_problems("prefix", parts[0])]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not re.fullmatch(_QUALIFIED, name, re.ASCII):
        problems.append(_SENTENCES["qualified"])
    return problems


def _validate(form: Format, text: str) -> Maybe:
    name = form.name
    if name.endswith("Prefix"):
        name = name.removesuffix("Prefix")
        text = f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text
    if name in _NAMES:
        problems = _name_problems(name, text)
    elif name == "qualifiedName":
        problems = _qualified_problems(text)
    elif name == "uri":
        problems = list(filter(None, [uri_problem(text)]))
    else:
        known, sentence = _TOLD[name]
        problems = [] if matches_format(known, text) else [sentence]
    return Maybe(problems) if problems else NOTHING


def _constant(name: str) -> Callable[[], Format]:
    made = Format(name)
    return lambda: made


RESOURCES: Final[dict[str, Callable[..., Any]]] = {
    "quantity": _quantity,
    "isQuantity": _is_quantity,
    "sign": one(lambda value: _sign(value.quantity.as_fraction())),
    "isGreaterThan": two(lambda one, two: _compare(one, two) == 1),
    "isLessThan": two(lambda one, two: _compare(one, two) == -1),
    "compareTo": _compare,
    "asApproximateFloat": one(_approximate_float),
    "asInteger": _as_integer,
    "isInteger": one(lambda value: _whole(value) is not None),
    "add": _joined(1),
    "sub": _joined(-1),
    "semver": _semver,
    "isSemver": _is_semver,
    "major": one(lambda value: value.numbers[0]),
    "minor": one(lambda value: value.numbers[1]),
    "patch": one(lambda value: value.numbers[2]),
    "validate": _validate,
    "format.named": one(lambda name: Maybe(Format(name)) if name in NAMED_FORMATS else NOTHING),
    **{f"format.{name}": _constant(name) for name in NAMED_FORMATS},
}
