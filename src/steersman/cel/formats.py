"""String formats that kube-apiserver enforces, with its verdicts.

Guarantees
- `enforced_format` knows exactly the formats that Kubernetes 1.37 checks; all others are documentation only.
- `matches_format` agrees with the server, also where the server is more lenient or stricter than a format's RFC: it
  accepts ``010.0.0.1`` as an IPv4 address and rejects the empty text as ``byte``.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from calendar import isleap
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from steersman import golang
from steersman.golang import duration_nanoseconds

_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
# The dot before the fraction matches any character, as in the server's own expression.
_CLOCK: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_HOST: Final = re.compile(r"[a0s](?:-?[a0s]{0,62})?|(?:[a0s](?:[a0s-]{0,61}[a0s])?\.)+a{2,63}")
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9a-fA-F])")
_MASK: Final = re.compile(r"[0-9]{1,8}")
_SHORT_NAME: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
# Possessive: backtracking would cost memory for each group.
_BASE64: Final = re.compile(r"(?=.)(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?+", re.ASCII)
_CARD: Final = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_COLOR_PART: Final = r"[\t\n\f\r ]*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*"
_MAC: Final = re.compile(
    r"(?:[0-9a-fA-F]{2}(?P<sign>[:-])(?:[0-9a-fA-F]{2}(?P=sign)){4,18}[0-9a-fA-F]{2}"
    r"|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){2,9}|[0-9a-fA-F]{12,40})"
)
#: The longest text of an address.
_ADDRESS_MAX: Final = 64
_MAC_DIGITS: Final = frozenset({12, 16, 40})
# The possessive quantifiers keep it linear: a run of digits or spaces is read only once.
_SCALA_TERM: Final = re.compile(r"([0-9]++)(?:[\t\n\f\r ]*+([A-Za-zµ]+))?")
#: Units of a duration, and prefixes of the words for units.
_SCALA_UNITS: Final = frozenset({"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"})
_SCALA_WORDS: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_INT64_MAX: Final = 2**63 - 1


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = (int(part) for part in found.groups())
    longest = 30 + (month in {1, 3, 5, 7, 8, 10, 12}) if month != 2 else 28 + isleap(year)
    return 1 <= month <= 12 and 1 <= day <= longest


def _is_date_time(text: str) -> bool:
    parts = text.lower().split("t")
    if len(parts) < 2 or not _is_date(parts[0]):
        return False
    # The server ignores everything after a second "t", too.
    found = _CLOCK.fullmatch(parts[1])
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _is_duration(text: str) -> bool:
    with suppress(ValueError):
        duration_nanoseconds(text)
        return True
    known = False
    for found in _SCALA_TERM.finditer(text):
        if found[2] is None:
            continue
        if len(found[1]) > 19 or int(found[1]) > _INT64_MAX:
            return False
        unit = found[2].lower()
        known = known or unit in _SCALA_UNITS or unit.startswith(_SCALA_WORDS)
    return known


def _is_hostname(text: str) -> bool:
    if len(text.encode()) > 255 or any(len(label.encode()) > 63 for label in text.split(".")):
        return False
    return _HOST.fullmatch("".join(map(_host_letter, text))) is not None


def _host_letter(character: str) -> str:
    """The class of a character: letter, digit, symbol, or the character itself."""
    if "0" <= character <= "9":
        return "0"
    category = unicodedata.category(character)[0]
    return {"L": "a", "S": "s"}.get(category, character if character in "-." else "!")


def _is_ip(text: str) -> bool:
    if "%" in text or len(text) > _ADDRESS_MAX:
        return False
    with suppress(ValueError):
        ipaddress.ip_address(text)
        return True
    return False


def _is_ipv4(text: str) -> bool:
    # An IPv6 address that ends in an IPv4 address contains a dot too, and passes.
    return "." in text and _is_ip(_without_zeros(text))


def _without_zeros(text: str) -> str:
    # What has more parts than an address is left alone: replacing millions would take much memory.
    return text if text.count(".") > 3 or text.count(":") > 7 else _LEADING_ZEROS.sub("", text)


def _is_ipv6(text: str) -> bool:
    return ":" in text and _is_ip(text)


def _is_cidr(text: str) -> bool:
    address, slash, mask = text.partition("/")
    if not slash or not _MASK.fullmatch(mask) or not _is_ip(_without_zeros(address)):
        return False
    return int(mask) <= (128 if ":" in address else 32)


_SEPARATORS = dict.fromkeys(map(ord, "\t\n\f\r -"))
_NO_DIGITS = bytes(set(range(128)) - set(b"0123456789"))


def _is_mac(text: str) -> bool:
    return _MAC.fullmatch(text) is not None and len(re.sub(r"[:.-]", "", text)) in _MAC_DIGITS


def _is_isbn10(text: str) -> bool:
    digits = text.translate(_SEPARATORS)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    return sum(place * (10 if digit == "X" else int(digit)) for place, digit in enumerate(digits, 1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = text.translate(_SEPARATORS)
    return bool(re.fullmatch(r"[0-9]{13}", digits)) and (
        sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits)) % 10 == 0
    )


def _is_credit_card(text: str) -> bool:
    digits = text.encode("ascii", "ignore").translate(None, _NO_DIGITS).decode()
    if not _CARD.fullmatch(digits):
        return False
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(amount // 10 + amount % 10 for amount in doubled) % 10 == 0


def _is_ssn(text: str) -> bool:
    return len(text) == 11 and bool(re.fullmatch(r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}", text))


def _full(expression: str, *, longest: int | None = None) -> Callable[[str], bool]:
    compiled = re.compile(expression, re.ASCII)
    return lambda text: (longest is None or len(text) <= longest) and compiled.fullmatch(text) is not None


def _uuid(version: str, variant: str = "[0-9a-fA-F]{4}") -> Callable[[str], bool]:
    return _full(rf"[0-9a-fA-F]{{8}}-?[0-9a-fA-F]{{4}}-?{version}-?{variant}-?[0-9a-fA-F]{{12}}")


def _is_email(text: str) -> bool:
    return golang.is_email(text)  # imported on first use


def _is_uri(text: str) -> bool:
    return golang.is_uri(text)  # as above


_STRING_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _full(r"[0-9a-fA-F]{24}"),
    "byte": lambda text: _BASE64.fullmatch(text) is not None,
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": _is_email,
    "hexcolor": _full(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": _full(rf"{_SHORT_NAME}(?:\.{_SHORT_NAME})*", longest=253),
    "k8sshortname": _full(_SHORT_NAME, longest=63),
    "mac": _is_mac,
    "password": lambda _: True,
    "rgbcolor": _full(rf"rgb\({_COLOR_PART},{_COLOR_PART},{_COLOR_PART}\)"),
    "ssn": _is_ssn,
    "uri": _is_uri,
    "uuid": _uuid("[0-9a-fA-F]{4}"),
    "uuid3": _uuid("3[0-9a-fA-F]{3}"),
    "uuid4": _uuid("4[0-9a-fA-F]{3}", "[89abAB][0-9a-fA-F]{3}"),
    "uuid5": _uuid("5[0-9a-fA-F]{3}", "[89abAB][0-9a-fA-F]{3}"),
}
_NUMBER_FORMATS: Final = {"integer": frozenset({"int32", "int64"}), "number": frozenset({"float", "double"})}


def enforced_format(types: tuple[str, ...], name: str) -> str:
    """The format that the server enforces for a schema of these types; empty if it enforces none."""
    kind = types[0] if len(types) == 1 else ""
    if kind in {"", "string"}:
        return name if name.replace("-", "") in _STRING_FORMATS else ""
    return name if name in _NUMBER_FORMATS.get(kind, ()) else ""


def matches_format(name: str, text: str) -> bool:
    """Whether a text has a format. Formats that the server does not enforce match every text."""
    check = _STRING_FORMATS.get(name.replace("-", ""))
    return check is None or check(text)
