"""The formats of texts and numbers in Kubernetes' types. Each function returns messages; empty if the value is valid."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any

from steersman.golang import quoted
from steersman.schemas.names import expected, too_long

_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER = "[-A-Za-z0-9]+"
_PERCENT = "[0-9]+%"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"

MAX_PORT = 65535
MAX_INT32 = 2**31 - 1
_MAX_KEY = 253


_CONFIG_KEY_WORDS = expected(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)


def config_key(text: str) -> list[str]:
    """Check a key of a ConfigMap or Secret."""
    problems = too_long(text, _MAX_KEY)
    if not re.fullmatch(_CONFIG_KEY, text):
        problems.append(_CONFIG_KEY_WORDS)
    if text in {".", ".."}:
        problems.append(f"must not be '{text}'")
    elif text.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def env_name(text: str) -> list[str]:
    """Check the name of an environment variable."""
    problems = [] if text else ["environment variable name must be non-empty"]
    if any(not " " <= character <= "~" or character == "=" for character in text):
        problems.append(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
    return problems


def port_number(port: int) -> list[str]:
    """Check a port number."""
    return in_range(port, 1, MAX_PORT)


def in_range(value: int, low: int, high: int) -> list[str]:
    """Check that a number is within a range."""
    return [] if low <= value <= high else [f"must be between {low} and {high}, inclusive"]


def port_name(text: str) -> list[str]:
    """Check the name of a port."""
    problems = too_long(text, 15)
    if not re.fullmatch("[-a-z0-9]+", text):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text[:1] == "-" or text[-1:] == "-":
        problems.append("must not begin or end with a hyphen")
    return problems


def port(value: Any) -> list[str]:
    """Check a port by number or name."""
    return port_name(value) if isinstance(value, str) else port_number(value)


def header_name(text: str) -> list[str]:
    """Check the name of an HTTP header."""
    words = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [] if re.fullmatch(_HEADER, text) else [expected(words, _HEADER, "X-Header-Name")]


def percent(text: str) -> list[str]:
    """Check a percentage."""
    words = "a valid percent string must be a numeric string followed by an ending '%'"
    return [] if re.fullmatch(_PERCENT, text) else [expected(words, _PERCENT, "1%", "93%")]


def http_path(text: str) -> list[str]:
    """Check the path after the domain of a domain-prefixed path."""
    return [] if re.fullmatch(_HTTP_PATH, text) else [expected("Invalid path", _HTTP_PATH)]


def ip_family(text: str) -> int:
    """4 or 6, or 0 for an invalid address; leading zeros are ignored here."""
    parts = text.split(".")
    if len(parts) == 4 and all(re.fullmatch("0*[0-9]{1,3}", part) and _octet(part) < 256 for part in parts):
        return 4
    try:
        IPv6Address(text)
    except ValueError:
        return 0
    return 0 if "%" in text else 6


def _octet(part: str) -> int:
    """A part of an IPv4 address. Before the last three digits are only zeros; Python cannot convert thousands."""
    return int(part[-3:])


def ip_address(text: str) -> list[str]:
    """Check an IP address in its unambiguous notation."""
    family = ip_family(text)
    if not family:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    if family == 4 and any(len(part) > 1 and part.startswith("0") for part in text.split(".")):
        return ["must not have leading 0s"]
    if family == 6 and IPv6Address(text).ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return []


def unreachable(address: str) -> list[str]:
    """Check that other hosts can reach an address: it is not unspecified, loopback or link-local."""
    parsed = ipv4(address) or IPv6Address(address)
    said: list[str] = []
    if parsed.is_unspecified:
        said.append(f"may not be unspecified ({address})")
    if parsed.is_loopback:
        said.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if parsed.is_link_local:
        said.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if address.startswith("224.0.0.") or address.lower().startswith("ff02:"):
        said.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return said


def cidr(text: str) -> list[str]:
    """Check a CIDR."""
    address, slash, length = text.partition("/")
    family = ip_family(address)
    bits = 32 if family == 4 else 128
    if not (slash and family and re.fullmatch("[0-9]{1,3}", length) and int(length) <= bits):
        return ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]
    if "must not have leading 0s" in ip_address(address) or (len(length) > 1 and length.startswith("0")):
        return ["must not have leading 0s in IP or prefix length"]
    if ip_address(address):
        return ["must not have an IPv4-mapped IPv6 address"]
    number = int(IPv4Address(address) if family == 4 else IPv6Address(address))
    if number & ((1 << (bits - int(length))) - 1):
        return ["must not have bits set beyond the prefix length"]
    return []


def network(text: str) -> IPv4Network | IPv6Network | None:
    """The network of a CIDR, without the bits beyond its prefix; None if it is invalid."""
    address, _, length = text.partition("/")
    family = ip_family(address)
    if not family or not re.fullmatch("[0-9]{1,3}", length) or int(length) > (32 if family == 4 else 128):
        return None
    if family == 4:
        return IPv4Network((int(ipv4(address) or 0), int(length)), strict=False)
    return IPv6Network((int(IPv6Address(address)), int(length)), strict=False)


def canonical_cidr(text: str) -> list[str]:
    """Check that a text is a CIDR in canonical form."""
    problems = cidr(text)
    if problems:
        return problems
    form = str(network(text))
    return [] if text == form else [f"must be in canonical form ({quoted(form)})"]


def canonical_address(text: str) -> list[str]:
    """Check that a text is an IP address in canonical form."""
    problems = ip_address(text)
    if problems:
        return problems
    form = str(IPv4Address(text) if ip_family(text) == 4 else IPv6Address(text))
    return [] if text == form else [f"must be in canonical form ({quoted(form)})"]


def cidr_warnings(path: str, text: str) -> list[str]:
    """Warnings about a valid CIDR that is not in canonical form."""
    form = str(network(text))
    if ":" not in text or form == text:
        return []
    return [f"{path}: IPv6 CIDR value {quoted(text)} should be in RFC 5952 canonical format ({quoted(form)})"]


def address_warnings(path: str, text: str) -> list[str]:
    """Warnings about a valid IP address that is not in canonical form."""
    form = str(IPv6Address(text)) if ip_family(text) == 6 else text
    if form == text:
        return []
    return [f"{path}: IPv6 address {quoted(text)} should be in RFC 5952 canonical format ({quoted(form)})"]


def ipv4(text: str) -> IPv4Address | None:
    """The IPv4 address in a text."""
    return IPv4Address(".".join(str(_octet(part)) for part in text.split("."))) if ip_family(text) == 4 else None
