"""The identity of requests: the headers that prove it, kept fresh.

- `Credentials.headers()` is called before every request and answers from memory unless something has expired.
- `Credentials.invalidate(rejected)` is called after a 401. It drops only the rejected credentials: a hundred requests
  rejected together cause one renewal.
- Unavailable credentials raise `CredentialsError`, whose message gives the reason and contains no secret.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from steersman.client.configuration.config import BasicAuth, Impersonation
from steersman.client.configuration.secrecy import Hidden, printable
from steersman.errors import CredentialsError

Headers: TypeAlias = tuple[tuple[str, str], ...]

# Visible ASCII: the characters a header may carry, none of which can end it.
_TOKEN = re.compile(r"[\x21-\x7e]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# RFC 9110's token characters except "%", which starts an escape.
_HEADER_NAME = frozenset("!#$&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate chain and its key, both PEM."""

    certificate: bytes
    key: Hidden[bytes]


class Credentials(Protocol):
    """Proves who sends a request."""

    async def headers(self) -> Headers:
        """Return the headers to add to a request. Raises CredentialsError."""
        ...

    def invalidate(self, rejected: Headers = ()) -> None:
        """Drop the rejected headers, as returned by `headers`; () drops whatever is held."""
        ...

    async def client_certificate(self) -> ClientCertificate | None:
        """Return the client certificate of these credentials, for new connections; usually None."""
        ...


class StaticCredentials:
    """Constant headers: a token, a password, or none at all."""

    def __init__(self, headers: Headers = ()) -> None:
        self._headers = headers

    def __repr__(self) -> str:
        return f"<StaticCredentials {', '.join(name for name, _ in self._headers) or 'none'}>"

    async def headers(self) -> Headers:
        """Return the headers."""
        return self._headers

    def invalidate(self, rejected: Headers = ()) -> None:
        """Do nothing: static credentials cannot be renewed."""

    async def client_certificate(self) -> ClientCertificate | None:
        """Return None."""
        return None


class ImpersonatingCredentials:
    """Other credentials, plus the headers that ask to act as another user."""

    def __init__(self, inner: Credentials, impersonation: Impersonation) -> None:
        self._inner = inner
        self._added = impersonation_headers(impersonation)

    def __repr__(self) -> str:
        return f"<ImpersonatingCredentials of {self._inner!r}>"

    async def headers(self) -> Headers:
        """Return the inner credentials' headers and our own."""
        return *(await self._inner.headers()), *self._added

    def invalidate(self, rejected: Headers = ()) -> None:
        """Invalidate the inner credentials."""
        ours = len(self._added)
        self._inner.invalidate(rejected[:-ours] if rejected[-ours:] == self._added else rejected)

    async def client_certificate(self) -> ClientCertificate | None:
        """Return the inner credentials' certificate."""
        return await self._inner.client_certificate()


def bearer_headers(token: Hidden[str]) -> Headers:
    """Return the header for a bearer token; CredentialsError if the token is not a valid header value."""
    text = token.reveal().strip()
    if not _TOKEN.fullmatch(text):
        raise CredentialsError(
            "the token is empty or contains blanks, control or non-ASCII characters: not a valid header value"
        )
    return (("Authorization", f"Bearer {text}"),)


def basic_headers(auth: BasicAuth) -> Headers:
    """Return the header for a user name and a password."""
    if ":" in auth.username:
        raise CredentialsError('the user name for basic authentication must not contain ":"')
    pair = f"{auth.username}:{auth.password.reveal()}".encode("utf-8", "surrogatepass")
    return (("Authorization", f"Basic {base64.b64encode(pair).decode('ascii')}"),)


def impersonation_headers(impersonation: Impersonation) -> Headers:
    """Return ``Impersonate-*`` headers; keys of extra values are percent-encoded as client-go does."""
    pairs: list[tuple[str, str]] = [("Impersonate-User", impersonation.user)]
    if impersonation.uid:
        pairs.append(("Impersonate-Uid", impersonation.uid))
    pairs.extend(("Impersonate-Group", group) for group in impersonation.groups)
    for key, values in impersonation.extra:
        name = f"Impersonate-Extra-{_escaped(key)}"
        pairs.extend((name, value) for value in values)
    for name, value in pairs:
        if _CONTROL.search(value):
            raise CredentialsError(
                f"{printable(name, limit=200)}: the value contains control characters: not a valid header value"
            )
    return tuple(pairs)


def _escaped(key: str) -> str:
    characters = (chr(byte) for byte in key.encode("utf-8", "surrogatepass"))
    return "".join(char if char in _HEADER_NAME else f"%{ord(char):02X}" for char in characters)
