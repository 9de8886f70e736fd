"""URLs as Go's ``net/url`` parses them."""

from __future__ import annotations

import re
from ipaddress import IPv4Address
from typing import Final
from urllib.parse import unquote_to_bytes

from steersman.golang.netip import parse_address
from steersman.golang.quotes import quoted

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)?:")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_USER: Final = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_IN_HOST: Final = r"""A-Za-z0-9._~!$&'()*+,;=:\[\]<>"\-"""
_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
#: In a host, an escape must encode a byte beyond ASCII, or the percent sign.
_HOST: Final = re.compile(rf"%(?![0-9A-Fa-f]{{2}})|%(?!25)[0-7]|[^%{_IN_HOST}\x80-\U0010ffff]")
#: In a zone, an escape must encode a space, the percent sign, or a character that a host may contain.
_ZONE: Final = re.compile(rf"%(?![0-9A-Fa-f]{{2}})|%..|[^%{_IN_HOST}\x80-\U0010ffff]")
_HOST_SIGN: Final = re.compile(rf"[ %{_IN_HOST}]")


class _Wrong(Exception):
    """The URL is invalid; the message is Go's."""


def is_uri(text: str) -> bool:
    """Whether a text is an absolute URI or a rooted path."""
    return not uri_problem(text)


def uri_problem(text: str) -> str:
    """The message of ``url.ParseRequestURI``; empty if the text is valid."""
    try:
        if not text:
            raise _Wrong("empty url")  # noqa: TRY301 - one message for all
        _check(text, in_request=True)
    except _Wrong as wrong:
        return f"parse {quoted(text)}: {wrong}"
    return ""


def url_problem(text: str) -> str:
    """The message of ``url.Parse``; empty if the text is valid."""
    shown, _, fragment = text.partition("#")
    try:
        _check(shown, in_request=False)
        shown = text
        _check_escapes(fragment, _ESCAPE)
    except _Wrong as wrong:
        return f"parse {quoted(shown)}: {wrong}"
    return ""


def _check(text: str, *, in_request: bool) -> None:
    if _CONTROL.search(text):
        raise _Wrong("net/url: invalid control character in URL")
    if text == "*":
        return
    found = _SCHEME.match(text)
    if found is not None and found[1] is None:
        raise _Wrong("missing protocol scheme")
    scheme = found[1].lower() if found is not None else ""
    rest = (text[found.end() :] if found is not None else text).partition("?")[0]
    if not rest.startswith("/"):
        if scheme:
            return
        if in_request:
            raise _Wrong("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise _Wrong("first path segment in URL cannot contain colon")
    if rest.startswith("//") and (scheme or not (in_request or rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        _check_authority(scheme, authority)
        rest = slash + path
    _check_escapes(rest, _ESCAPE)


def _check_authority(scheme: str, authority: str) -> None:
    user, _, host = authority.rpartition("@")
    _check_host(scheme, host)
    if not _USER.fullmatch(user):
        raise _Wrong("net/url: invalid userinfo")
    for part in user.split(":", 1):
        _check_escapes(part, _ESCAPE)


def _check_host(scheme: str, host: str) -> None:
    bracket = host.rfind("[")
    if bracket > 0:
        raise _Wrong("invalid IP-literal")
    if bracket == 0:
        literal, closing, port = host[1:].rpartition("]")
        if not closing:
            raise _Wrong("missing ']' in host")
        _check_port(port)
        _check_literal(literal)
        return
    first = host.find(":") if scheme in {"http", "https"} else host.rfind(":")
    if first >= 0:
        _check_port(host[first:])
    _check_escapes(host, _HOST)


def _check_port(port: str) -> None:
    if not _PORT.fullmatch(port):
        raise _Wrong(f"invalid port {quoted(port)} after host")


def _check_literal(literal: str) -> None:
    zone = literal.find("%25")
    _check_escapes(literal[:zone] if zone >= 0 else literal, _HOST)
    if zone >= 0:
        _check_escapes(literal[zone:], _ZONE)
    try:
        address = parse_address(unquote_to_bytes(literal).decode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise _Wrong(f"invalid host: {error}") from None
    if isinstance(address, IPv4Address):
        raise _Wrong("invalid IP-literal")


def _check_escapes(text: str, wrong: re.Pattern[str]) -> None:
    for found in wrong.finditer(text):
        at = found.start()
        if text[at] != "%":
            raise _Wrong(f"invalid character {quoted(text[at])} in host name")
        if wrong is _ZONE and len(found[0]) > 1 and _HOST_SIGN.fullmatch(chr(int(found[0][1:], 16))):
            continue
        # Go cuts the text by bytes.
        shown = text[at : at + 3].encode("utf-8", "surrogateescape")[:3].decode("utf-8", "surrogateescape")
        raise _Wrong(f"invalid URL escape {quoted(shown)}")
