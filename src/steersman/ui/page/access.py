"""Access control of the page: one-time links, cookies, and checks of Host and Origin.

Guarantees
- A link works once and expires. It is exchanged for a cookie that scripts cannot read and that browsers do not add to
  requests from other sites (HttpOnly, SameSite=Strict).
- A link for a program's arguments, which every user of the machine can read, works only for processes of the user who
  runs the application, and of root. An attempt by another user does not use it up.
- Browsers share cookies between all ports of a host. So the cookie is limited to a secret path, and browsers do not send
  it to other servers on this machine.
- The Host header must be a loopback name with the right port. This defends against DNS rebinding.
- Every POST must have the page's own Origin.
- The number of links and cookies is limited.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import string
import sys
from collections.abc import Mapping
from typing import Final

from steersman import aio
from steersman.transport import current_peer, peer_user
from steersman.wire import HttpRequest
from steersman.workloads import trusted_users

#: Seconds for which a link works.
LINK_SECONDS: Final = 600.0
_LINKS_MAX: Final = 32
_COOKIES_MAX: Final = 64
_ALPHABET: Final = string.ascii_letters + string.digits
#: 43 characters have 256 bits.
_SECRET: Final = 43
_PLACE: Final = 16


class AccessRefused(Exception):
    """A request is not allowed. The message says why and what to do."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Access:
    """The links and cookies of one page. ``renewal`` is a sentence that says how to get a new link."""

    def __init__(self, *, renewal: str) -> None:
        self._renewal = f"{renewal.rstrip('.')}."
        #: A secret for other programs of this user; see `new_link`.
        self.key = _random(_SECRET)
        #: The first segment of the page's path.
        self.place = _random(_PLACE)
        self.port = 0
        #: Unused links, with the time at which each expires, and whether only processes of this user may use it.
        self._links: dict[str, tuple[float, bool]] = {}
        self._cookie_values: dict[str, None] = {}

    @property
    def origin(self) -> str:
        """The origin of the page."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def path(self) -> str:
        """The path of the page."""
        return f"/{self.place}/"

    # links and cookies

    def link(self, *, own_user: bool = False) -> str:
        """A new URL that opens the page once; with ``own_user``, only for processes of this user."""
        token = _random(_SECRET)
        self._links[token] = asyncio.get_running_loop().time() + LINK_SECONDS, own_user
        while len(self._links) > _LINKS_MAX:
            del self._links[next(iter(self._links))]
        return f"{self.origin}/open/{token}"

    def exchange(self, token: str) -> str:
        """The Set-Cookie header for a link. Raises `AccessRefused` if the link is used, expired, unknown or another's."""
        link = next((link for link in self._links if _is_same(link, token)), None)
        expires, own_user = self._links.get(link, (0.0, False)) if link is not None else (0.0, False)
        if own_user:
            self._check_user()
        if link is not None:
            del self._links[link]
        if expires <= asyncio.get_running_loop().time():
            raise AccessRefused(403, f"This link has already been used or has expired. {self._renewal}")
        value = _random(_SECRET)
        self._cookie_values[value] = None
        while len(self._cookie_values) > _COOKIES_MAX:
            del self._cookie_values[next(iter(self._cookie_values))]
        return f"{self._cookie}={value}; Path={self.path}; HttpOnly; SameSite=Strict"

    @property
    def _cookie(self) -> str:
        # The name contains the port, so that pages on several ports keep their own cookies.
        return f"steersman-page-{self.port}"

    # checks

    @property
    def refusal(self) -> str:
        """The message for a request without a cookie."""
        return f"Open this page with a one-time link. {self._renewal}"

    def _check_user(self) -> None:
        """Refuse a process of another user. Only Linux shows who connects: elsewhere such a link is in no argument."""
        if sys.platform != "linux":
            return
        peer = current_peer()
        user = peer_user(peer, self.port) if peer is not None else None
        if user not in trusted_users(os.environ):
            raise AccessRefused(
                403, f"This link works only in a browser of the user who runs the application. {self._renewal}"
            )

    def check_host(self, request: HttpRequest) -> None:
        """Refuse a request for another host or port."""
        hosts = _values(request, "host")
        allowed = {f"{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        if len(hosts) != 1 or hosts[0].lower() not in allowed:
            raise AccessRefused(403, f"The Host header names another host: open {self.origin} instead.")

    def check_origin(self, request: HttpRequest) -> None:
        """Refuse a request from a page of another site."""
        if _values(request, "origin") != [f"http://{request.header('host')}"]:
            raise AccessRefused(
                403, "The Origin header is missing or names another site: send this request from the page itself."
            )

    def check_fetch(self, request: HttpRequest) -> None:
        """Refuse to load the document into a page of another site, if the browser reports one."""
        site = request.header("sec-fetch-site")
        if site not in {None, "none", "same-origin"}:
            raise AccessRefused(403, "A page of another site cannot load this page.")

    def check_cookie(self, request: HttpRequest) -> None:
        """Refuse a request without a cookie of this page."""
        given = [
            value for header in _values(request, "cookie") for name, value in _cookies(header) if name == self._cookie
        ]
        if len(given) != 1 or not any(_is_same(value, given[0]) for value in self._cookie_values):
            raise AccessRefused(401, self.refusal)

    def check_key(self, request: HttpRequest) -> None:
        """Refuse a request without the key of the page."""
        given = _values(request, "authorization")
        if len(given) != 1 or not _is_same(f"Bearer {self.key}", given[0]):
            raise AccessRefused(
                401, "The key of the page is missing or wrong: only the user who runs the application can read it."
            )


def security_headers(*, documents: bool = False) -> Mapping[str, str]:
    """The headers of every response; a document may load its own style and script, and nothing else."""
    loads = "style-src 'self'; script-src 'self'; connect-src 'self'; " if documents else ""
    return {
        "Content-Security-Policy": f"default-src 'none'; {loads}base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


def _values(request: HttpRequest, wanted: str) -> list[str]:
    return [value for name, value in request.headers if name.lower() == wanted]


def _cookies(header: str) -> list[tuple[str, str]]:
    pairs = (cookie.strip().partition("=") for cookie in header.split(";"))
    return [(name, value) for name, _, value in pairs]


def _is_same(known: str, given: str) -> bool:
    return hmac.compare_digest(known.encode(), given.encode())


def _random(length: int) -> str:
    return "".join(aio.randomness().choices(_ALPHABET, k=length))
