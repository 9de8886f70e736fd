"""Proxies: the proxy for a server, from the environment.

Guarantees
- The environment is read as kubectl does: HTTPS_PROXY or HTTP_PROXY by the server's scheme, upper case first; NO_PROXY
  with names, suffixes, addresses, networks and ports. This machine is never reached through a proxy.
- The password of a proxy is sent to the proxy alone and never shown.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit, urlunsplit

from steersman.errors import ConfigError
from steersman.transport.addresses import join_host_port


def proxy_from_environment(server: str, environment: Mapping[str, str]) -> str | None:
    """Return the address of the proxy for a server; None for a direct connection."""
    address = urlsplit(server)
    host = (address.hostname or "").rstrip(".")
    port = address.port or (443 if address.scheme == "https" else 80)
    name = "HTTPS_PROXY" if address.scheme == "https" else "HTTP_PROXY"
    proxy = environment.get(name) or environment.get(name.lower())
    if not proxy or not host or _is_own_machine(host):
        return None
    exceptions = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if any(_matches(entry.strip().lower(), host, port) for entry in exceptions.split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_own_machine(host: str) -> bool:
    if host == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def _matches(entry: str, host: str, port: int) -> bool:
    """Whether an entry of NO_PROXY matches the server."""
    if entry in {"", "*"}:
        return entry == "*"
    address = _address(host)
    if "/" in entry:
        return address is not None and _in_network(address, entry)
    if _address(entry) is None and ":" in entry:
        entry, _, wanted = entry.rpartition(":")
        if wanted != str(port):
            return False
    if (plain := _address(entry)) is not None:
        return address == plain
    # "example.com" and ".example.com" both match subdomains; only the first matches the name itself
    suffix = entry.removeprefix("*")
    return host.endswith(suffix if suffix.startswith(".") else f".{suffix}") or host == suffix


def _in_network(address: ipaddress.IPv4Address | ipaddress.IPv6Address, network: str) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def split_proxy(proxy: str) -> tuple[str, dict[str, str]]:
    """Split the address of a proxy into one without credentials and the headers that carry them."""
    try:
        parts = urlsplit(proxy)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme != "http" or not host:
        # not shown: a proxy's address may contain a password
        raise ConfigError(
            "invalid proxy address: write http://HOST:PORT; the connection to the server through it still uses TLS"
        )
    address = urlunsplit(("http", join_host_port(host, port or 80), "", "", ""))
    if parts.username is None:
        return address, {}
    secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return address, {"Proxy-Authorization": "Basic " + base64.b64encode(secret.encode()).decode("ascii")}
