"""Requests as values: built here, sent by `transport`, parsed by a server. Nothing is sent here.

Guarantees
- `HttpRequest.target` is ready for a request line: the path, which is already percent-encoded, and the query, encoded in
  its given order. `parse_query` is the exact inverse.
- The `repr` of a request shows neither header values nor the body: both may be secret.
"""

import re
from collections.abc import Iterable
from urllib.parse import quote_plus, unquote_plus

import msgspec

#: Names and values in order; a name may be repeated.
Pairs = tuple[tuple[str, str], ...]

#: The verbs of the methods that write; a DELETE of a collection and a PATCH that applies have other names too.
WRITE_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

# text that urllib.parse.quote_plus would not change: nearly every query, and quote_plus is slow
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]*")


class HttpRequest(msgspec.Struct, frozen=True):
    """One HTTP request: `path` is percent-encoded, `query` is not."""

    method: str
    path: str
    query: Pairs = ()
    headers: Pairs = ()
    body: bytes | None = None

    @property
    def target(self) -> str:
        """The path and the encoded query, as in the request line."""
        return f"{self.path}?{print_query(self.query)}" if self.query else self.path

    def header(self, name: str) -> str | None:
        """The first value of a header, case-insensitive; None if it is absent."""
        wanted = name.lower()
        return next((value for present, value in self.headers if present.lower() == wanted), None)

    def with_headers(self, *added: tuple[str, str]) -> "HttpRequest":
        """The same request with headers inserted before its own."""
        return HttpRequest(self.method, self.path, self.query, (*added, *self.headers), self.body)

    def __repr__(self) -> str:
        size = "no body" if self.body is None else f"{len(self.body)} bytes"
        names = ", ".join(name for name, _ in self.headers)
        return f"<HttpRequest {self.method} {self.target} headers=[{names}] {size}>"


def print_query(query: Iterable[tuple[str, str]]) -> str:
    """Encode names and values as application/x-www-form-urlencoded, as Go's url.Values does."""
    return "&".join([f"{_quote(name)}={_quote(value)}" for name, value in query])


def parse_query(text: str) -> Pairs:
    """Parse a query string; empty parts are skipped, a name without `=` has the empty value."""
    pairs: list[tuple[str, str]] = []
    for part in text.split("&"):
        if part:
            name, _, value = part.partition("=")
            pairs.append((unquote_plus(name), unquote_plus(value)))
    return tuple(pairs)


def _quote(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else quote_plus(text)
