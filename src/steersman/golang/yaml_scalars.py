"""The values of YAML's plain and tagged scalars, as Go's YAML packages read them for Kubernetes.

Guarantees
- ``on`` and ``y`` are booleans, ``010`` is eight, ``1e3`` is a thousand; a date and ``1:30`` are strings.
- A number that does not fit a double is a string. Infinities and NaN, which JSON cannot express, raise `ValueError`.
- A tag such as ``!!int`` decides about the type, quoted or not. A text that is not of that type is a `WrongTag`.
- Long digits take linear time.
"""

from __future__ import annotations

import binascii
import math
import re
from base64 import b64decode

_BOOLS = {
    name: value for value, names in ((True, "y yes on true"), (False, "n no off false")) for name in names.split()
}
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_FIRST = frozenset("+-.0123456789")
_BASES = {"0x": 16, "0o": 8, "0b": 2}
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|[0-9]+)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = {
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), "+Inf"),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), "-Inf"),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), "NaN"),
}


_TAGS = "tag:yaml.org,2002:"


class WrongTag(ValueError):
    """A scalar does not have the type of its tag; the message is Go's."""


def tagged_yaml_scalar(tag: str, text: str) -> str | float | bool | None:
    """The value of a scalar with a tag."""
    name = tag.removeprefix(_TAGS) if tag.startswith(_TAGS) else ""
    if name == "binary":
        try:
            return b64decode(re.sub("[\r\n]", "", text), validate=True).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            raise WrongTag("yaml: !!binary value contains invalid base64 data") from None
    if name not in {"null", "bool", "int", "float"}:
        return text
    found = _type(text)
    if found != name and (name, found) != ("float", "int"):
        raise WrongTag(f"yaml: cannot decode !!{found} `{text}` as a !!{name}")
    return yaml_scalar(text)


def _type(text: str) -> str:
    """The tag that a plain scalar has without saying so."""
    if text in _NOT_FINITE:
        return "float"
    value = yaml_scalar(text)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "str"
    return "int" if _INTEGER.fullmatch(text.replace("_", "")) else "float"


def yaml_scalar(text: str) -> str | float | bool | None:
    """The value of a plain scalar."""
    if text in _NULLS:
        return None
    if text.lower() in _BOOLS and text in {text.lower(), text.title(), text.upper()}:
        return _BOOLS[text.lower()]
    if text in _NOT_FINITE:
        raise ValueError(f"json: unsupported value: {_NOT_FINITE[text]}")
    if text[0] not in _FIRST:
        return text
    digits = text.replace("_", "")
    found = _integer(digits) if _INTEGER.fullmatch(digits) else None
    if found is not None:
        return found
    return _float(digits, text) if _FLOAT.fullmatch(digits) else text


def _integer(digits: str) -> float | None:
    """The value of a whole number; None if it is too large or has digits that its base lacks."""
    bare = digits.lstrip("+-")
    base = _BASES.get(bare[:2].lower()) or (8 if bare[0] == "0" else 10)
    try:
        value = int(bare, base) * (-1 if digits[0] == "-" else 1)
    except ValueError:
        return None
    if -(2**63) <= value < 2**63:
        return value
    return float(value) if 0 < value < 2**64 else None


def _float(digits: str, text: str) -> float | str:
    value = float(digits)
    if math.isinf(value):
        # As in Go, a number that does not fit a double is a string.
        return text
    return int(value) if value.is_integer() and abs(value) < 2**63 else value
