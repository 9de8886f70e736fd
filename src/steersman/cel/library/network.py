"""Functions for URLs, IP addresses and networks, as in Go's ``net/url`` and ``net/netip``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qs, quote

from steersman.cel.values import CelError, Opaque, no_overload, one
from steersman.golang import is_uri, quoted

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_URL: Final = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<authority>[^/?#]*))?(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?",
    re.DOTALL,
)


class Url(Opaque):
    """A URL."""

    __slots__ = ("parts", "text")
    type_name = "kubernetes.URL"

    def __init__(self, text: str) -> None:
        if not is_uri(text):
            raise CelError(f"URL parse error during conversion from string: {url_error(text)}")
        self.text = text
        found = _URL.fullmatch(text)
        parts = found.groupdict("") if found else {}
        self.parts: dict[str, str] = {**parts, "scheme": parts.get("scheme", "").lower()}
        self.parts["host"] = parts.get("authority", "").rpartition("@")[2]

    def equals(self, other: Any) -> bool:
        """Whether both print the same."""
        if not isinstance(other, Url):
            raise no_overload()
        return self.text == other.text

    def hostname(self) -> str:
        """The host without its port and brackets."""
        host = self.parts["host"]
        if host.startswith("["):
            return host[1:].partition("]")[0]
        return host.partition(":")[0]

    def port(self) -> str:
        """The port; empty if there is none."""
        host = self.parts["host"].rpartition("]")[2]
        port = host.partition(":")[2]
        return port if port.isdigit() else ""


def url_error(text: str) -> str:
    """Go's message for an invalid URL."""
    return f"parse {quoted(text)}: {_wrong_with_url(text)}"


def _wrong_with_url(text: str) -> str:
    if not text:
        return "empty url"
    if re.search(r"[\x00-\x1f\x7f]", text):
        return "net/url: invalid control character in URL"
    if text.startswith(":"):
        return "missing protocol scheme"
    host = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)", text)
    wrong = _wrong_with_host(host[1]) if host else ""
    if wrong:
        return wrong
    escape = re.search(r"%(?![0-9a-fA-F]{2}).{0,2}", text)
    return f"invalid URL escape {quoted(escape[0])}" if escape and "://" in text else "invalid URI for request"


def _wrong_with_host(host: str) -> str:
    if host.startswith("[") and "]" not in host:
        return "missing ']' in host"
    sign = re.search(r"[^A-Za-z0-9._~!$&'()*+,;=:\[\]<>\"%@\x80-\U0010ffff-]", host)
    if sign:
        return f"invalid character {quoted(sign[0])} in host name"
    escape = re.search(r"%(?!25)[0-7][0-9a-fA-F]", host)
    if escape:
        return f"invalid URL escape {quoted(escape[0])}"
    port = re.search(r":([^:\]]*)$", host)
    return f"invalid port {quoted(':' + port[1])} after host" if port and not port[1].isdigit() else ""


class Ip(Opaque):
    """An IP address."""

    __slots__ = ("address",)
    type_name = "net.IP"

    def __init__(self, address: Address) -> None:
        self.address = address

    @property
    def length(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The number of its bytes."""
        return 4 if self.address.version == 4 else 16

    def equals(self, other: Any) -> bool:
        """Whether it is the same address."""
        if not isinstance(other, Ip):
            raise no_overload()
        return self.address == other.address

    def __str__(self) -> str:
        return str(self.address)


class Cidr(Opaque):
    """An address with the prefix length of its network."""

    __slots__ = ("address", "bits")
    type_name = "net.CIDR"

    def __init__(self, address: Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    @property
    def length(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The number of bytes of its prefix."""
        return -(-self.bits // 8)

    @property
    def network(self) -> Network:
        """The network of its addresses."""
        return ipaddress.ip_network(f"{self.address}/{self.bits}", strict=False)

    def equals(self, other: Any) -> bool:
        """Whether address and prefix are the same."""
        if not isinstance(other, Cidr):
            raise no_overload()
        return self.address == other.address and self.bits == other.bits

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


def _ipv4_error(text: str) -> str:
    """Go's message for an invalid IPv4 address; empty if it is valid."""
    digits, fields, value = 0, 0, 0
    for at, sign in enumerate(text):
        if sign.isascii() and sign.isdigit():
            if digits == 1 and value == 0:
                return "IPv4 field has octet with leading zero"
            value = value * 10 + int(sign)
            digits += 1
            if value > 255:
                return "IPv4 field has value >255"
        elif sign == ".":
            if at == 0 or at == len(text) - 1 or text[at - 1] == ".":
                return f"IPv4 field must have at least one digit (at {quoted(text[at:])})"
            if fields == 3:
                return "IPv4 address too long"
            fields, value, digits = fields + 1, 0, 0
        else:
            return f"unexpected character (at {quoted(text[at:])})"
    return "IPv4 address too short" if fields < 3 else ""


def _ipv6_error(text: str) -> str:  # noqa: PLR0911 - one answer for each mistake
    """Go's most likely message for an invalid IPv6 address."""
    for at, field in ((found.start(), found[0]) for found in re.finditer(r"[^:]+", text)):
        rest = text[at:]
        bad = re.match(r"[0-9a-fA-F]*", field)
        taken = bad[0] if bad else ""
        if len(taken) > 4:
            return f"each group must have 4 or less digits (at {quoted(rest)})"
        if not taken:
            return f"each colon-separated field must have at least one digit (at {quoted(rest)})"
        if taken != field and "." not in field:
            return f"unexpected character, want colon (at {quoted(rest[len(taken) :])})"
    if text[:1] == ":" and text[:2] != "::":
        return f"each colon-separated field must have at least one digit (at {quoted(text)})"
    if text.count("::") > 1:
        return f"multiple :: in address (at {quoted(text[text.rindex('::') + 1 :])})"
    if text.endswith(":") and not text.endswith("::"):
        return 'colon must be followed by more characters (at ":")'
    groups = text.split(":")
    if len([part for part in groups if part]) < 8:
        return "address string too short"
    return f"trailing garbage after address (at {quoted(':'.join(groups[8:]))})"


def parse_address(text: str) -> Address:
    """Go's ``ParseAddr``. Raises ValueError with its message."""
    match = re.search(r"[.:%]", text)
    if match is None:
        raise ValueError(f"ParseAddr({quoted(text)}): unable to parse IP")
    if match[0] == "%":
        raise ValueError(f"ParseAddr({quoted(text)}): missing IPv6 address")
    if match[0] == ".":
        wrong = _ipv4_error(text)
        if wrong:
            raise ValueError(f"ParseAddr({quoted(text)}): {wrong}")
        return ipaddress.IPv4Address(text)
    plain, percent, zone = text.partition("%")
    if percent and not zone:
        raise ValueError(f"ParseAddr({quoted(text)}): zone must be a non-empty string")
    try:
        return ipaddress.IPv6Address(text)
    except ValueError:
        raise ValueError(f"ParseAddr({quoted(text)}): {_ipv6_error(plain)}") from None


def _ip(value: Any) -> Ip:
    if isinstance(value, Cidr):
        return Ip(value.address)
    try:
        address = parse_address(value)
    except ValueError as error:
        raise CelError(f"IP Address {quoted(value)} parse error during conversion from string: {error}") from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise CelError(f"IP address {quoted(value)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise CelError(f"IPv4-mapped IPv6 address {quoted(value)} is not allowed")
    return Ip(address)


def _prefix(text: str) -> Cidr:
    start, slash, bits = text.rpartition("/")
    said = f"netip.ParsePrefix({quoted(text)}): "
    if not slash:
        raise ValueError(f"{said}no '/'")
    try:
        address = parse_address(start)
    except ValueError as error:
        raise ValueError(f"{said}{error}") from None
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        raise ValueError(f"{said}IPv6 zones cannot be present in a prefix")
    if not (bits.isascii() and bits.isdigit()) or (len(bits) > 1 and bits[0] == "0"):
        raise ValueError(f"{said}bad bits after slash: {quoted(bits)}")
    if int(bits) > address.max_prefixlen:
        raise ValueError(f"{said}prefix length out of range")
    return Cidr(address, int(bits))


def _cidr(text: str) -> Cidr:
    twice = "network address parse error during conversion from string: "
    try:
        made = _prefix(text)
    except ValueError as error:
        raise CelError(f"{twice}{twice}{error}") from None
    if isinstance(made.address, ipaddress.IPv6Address) and made.address.ipv4_mapped is not None:
        raise CelError(f"{twice}IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return made


def _works(make: Callable[[str], Any]) -> Callable[[str], bool]:
    def works(text: str) -> bool:
        try:
            make(text)
        except CelError:
            return False
        return True

    return works


def _contains_ip(network: Cidr, address: Any) -> bool:
    try:
        made = address if isinstance(address, Ip) else _ip(address)
    except CelError:
        # For a text that is not an address, the server reports only this.
        raise no_overload() from None
    return made.address.version == network.address.version and made.address in network.network


def _contains_cidr(network: Cidr, other: Any) -> bool:
    made = other if isinstance(other, Cidr) else _cidr(other)
    return (
        made.address.version == network.address.version
        and network.bits <= made.bits
        and network.network.overlaps(made.network)  # pyright: ignore[reportArgumentType] - of one version
    )


def _is_link_local_multicast(value: Ip) -> bool:
    address = value.address
    return (
        address.packed[:3] == b"\xe0\x00\x00"
        if address.version == 4
        else address.packed[0] == 0xFF and address.packed[1] & 15 == 2
    )


def _is_link_local(value: Ip) -> bool:
    packed = value.address.packed
    return packed[:2] == b"\xa9\xfe" if value.address.version == 4 else packed[0] == 0xFE and packed[1] & 0xC0 == 0x80


def _is_global(value: Ip) -> bool:
    address = value.address
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or _is_link_local(value)
        or str(address) == "255.255.255.255"
    )


NETWORK: Final[dict[str, Callable[..., Any]]] = {
    "url": Url,
    "isURL": is_uri,
    "getScheme": one(lambda url: url.parts["scheme"]),
    "getHost": one(lambda url: url.parts["host"]),
    "getHostname": one(lambda url: url.hostname()),
    "getPort": one(lambda url: url.port()),
    "getEscapedPath": one(lambda url: quote(url.parts["path"], safe="/%:@!$&'()*+,;=~-._")),
    "getQuery": one(lambda url: parse_qs(url.parts["query"], keep_blank_values=True)),
    "ip": _ip,
    "isIP": _works(_ip),
    "ip.isCanonical": one(lambda text: str(_ip(text)) == text),
    "family": one(lambda value: value.address.version),
    "isUnspecified": one(lambda value: value.address.is_unspecified),
    "isLoopback": one(lambda value: value.address.is_loopback),
    "isLinkLocalMulticast": _is_link_local_multicast,
    "isLinkLocalUnicast": _is_link_local,
    "isGlobalUnicast": _is_global,
    "cidr": _cidr,
    "isCIDR": _works(_cidr),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "prefixLength": one(lambda value: value.bits),
    "masked": one(lambda value: Cidr(value.network.network_address, value.bits)),
}
