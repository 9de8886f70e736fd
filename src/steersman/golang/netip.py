"""IP addresses and prefixes as Go's ``net/netip`` parses them."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from steersman.golang.quotes import quoted
from steersman.golang.strconv import parse_int

Address = IPv4Address | IPv6Address

_HEX: Final = re.compile(r"[0-9a-fA-F]*")
_FIRST_SIGN: Final = re.compile(r"[.:%]")


def parse_address(text: str) -> Address:
    """Go's ``ParseAddr``. Raises ValueError with its message."""
    sign = _FIRST_SIGN.search(text)
    plain, percent, zone = text.partition("%")
    if sign is None:
        problem = "unable to parse IP"
    elif sign[0] == "%":
        problem = "missing IPv6 address"
    elif sign[0] == ".":
        problem = _ipv4_problem(text)
    elif percent and not zone:
        problem = "zone must be a non-empty string"
    else:
        problem = _ipv6_problem(plain)
    if problem:
        raise ValueError(f"ParseAddr({quoted(text)}): {problem}")
    if ":" not in plain:
        return IPv4Address(text)
    # Python allows neither / nor % inside a zone.
    return IPv6Address(f"{plain}%{zone.translate({37: 95, 47: 95})}" if zone else plain)


def parse_prefix(text: str) -> tuple[Address, int]:
    """Go's ``ParsePrefix``: an address and the number of its leading bits. Raises ValueError with its message."""
    start, slash, written = text.rpartition("/")
    begin = f"netip.ParsePrefix({quoted(text)}): "
    if not slash:
        raise ValueError(f"{begin}no '/'")
    try:
        address = parse_address(start)
    except ValueError as error:
        raise ValueError(f"{begin}{error}") from None
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise ValueError(f"{begin}IPv6 zones cannot be present in a prefix")
    try:
        bits = parse_int(written if len(written) <= 1 or written[0] in "123456789" else "")
    except ValueError:
        raise ValueError(f"{begin}bad bits after slash: {quoted(written)}") from None
    if bits > address.max_prefixlen:
        raise ValueError(f"{begin}prefix length out of range")
    return address, bits


def _at(problem: str, rest: str) -> str:
    return f"{problem} (at {quoted(rest)})" if rest else problem


def _ipv4_problem(text: str) -> str:
    digits, fields, value = 0, 0, 0
    for at, sign in enumerate(text):
        if sign in "0123456789":
            if digits == 1 and value == 0:
                return "IPv4 field has octet with leading zero"
            value = value * 10 + int(sign)
            digits += 1
            if value > 255:
                return "IPv4 field has value >255"
        elif sign == ".":
            if at == 0 or at == len(text) - 1 or text[at - 1] == ".":
                return _at("IPv4 field must have at least one digit", text[at:])
            if fields == 3:
                return "IPv4 address too long"
            fields, value, digits = fields + 1, 0, 0
        else:
            return _at("unexpected character", text[at:])
    return "IPv4 address too short" if fields < 3 else ""


def _ipv6_problem(rest: str) -> str:  # noqa: C901, PLR0911, PLR0912 - one return a problem
    ellipsis = rest.startswith("::")
    if ellipsis:
        rest = rest[2:]
        if not rest:
            return ""
    count = 0
    while count < 8:
        found = _HEX.match(rest)
        digits = found.end() if found else 0
        if digits > 4:
            return _at("each group must have 4 or less digits", rest)
        if digits == 0:
            return _at("each colon-separated field must have at least one digit", rest)
        if rest[digits : digits + 1] == ".":
            if problem := _embedded_problem(rest, count, ellipsis=ellipsis):
                return problem
            rest, count = "", count + 2
            break
        rest, count = rest[digits:], count + 1
        if not rest:
            break
        if rest[0] != ":":
            return _at("unexpected character, want colon", rest)
        if len(rest) == 1:
            return _at("colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis:
                return _at("multiple :: in address", rest)
            ellipsis, rest = True, rest[1:]
            if not rest:
                break
    if rest:
        return _at("trailing garbage after address", rest)
    if count < 8:
        return "" if ellipsis else "address string too short"
    return "the :: must expand to at least one field of zeros" if ellipsis else ""


def _embedded_problem(rest: str, count: int, *, ellipsis: bool) -> str:
    """The problem of an IPv4 address at the end, after ``count`` fields."""
    if not ellipsis and count != 6:
        return _at("embedded IPv4 address must replace the final 2 fields of the address", rest)
    if count > 6:
        return _at("too many hex fields to fit an embedded IPv4 at the end of the address", rest)
    return _ipv4_problem(rest)
