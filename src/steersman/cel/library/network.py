"""Functions for URLs, IP addresses and networks, as in Go's ``net/url`` and ``net/netip``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qs, quote

from steersman.cel.values import CelError, Opaque, no_overload, one
from steersman.golang import Address, is_uri, parse_address, parse_prefix, quoted, uri_problem

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
        if problem := uri_problem(text):
            raise CelError(f"URL parse error during conversion from string: {problem}")
        self.text = text
        found = _URL.fullmatch(text)
        parts = found.groupdict("") if found else {}
        self.parts: dict[str, str] = {**parts, "scheme": parts.get("scheme", "").lower()}
        self.parts["host"] = parts.get("authority", "").rpartition("@")[2]

    def equals(self, other: Any) -> bool:
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
        if not isinstance(other, Cidr):
            raise no_overload()
        return self.address == other.address and self.bits == other.bits

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


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


def _cidr(text: str) -> Cidr:
    twice = "network address parse error during conversion from string: "
    try:
        made = Cidr(*parse_prefix(text))
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
