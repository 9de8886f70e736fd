"""A bearer token in a file that another program rotates: a projected service account token.

The kubelet replaces the directory by renaming a symbolic link, so every read sees a complete token, old or new.
"""

from __future__ import annotations

import asyncio
import logging

from steersman.client.configuration.bounded_file import read_bounded_file, reason
from steersman.client.configuration.config import TokenFile
from steersman.client.configuration.secrecy import Hidden, printable
from steersman.client.credentials.credentials import ClientCertificate, Headers, bearer_headers
from steersman.errors import CredentialsError

_log = logging.getLogger("steersman.client.credentials")

_TOKEN_LIMIT = 1 << 20


class TokenFileCredentials:
    """A token from a file, re-read as `TokenFile` describes.

    While the file is unreadable, the last token stays in use until the server rejects it.
    """

    def __init__(self, source: TokenFile) -> None:
        self._source = source
        self._headers: Headers | None = None
        self._read_at = 0.0

    def __repr__(self) -> str:
        return f"<TokenFileCredentials {self._source.path}>"

    async def headers(self) -> Headers:
        """Return the header with the token."""
        # Reading a small local file takes microseconds, less than a thread handoff.
        now = asyncio.get_running_loop().time()
        held = self._headers
        if held is not None and now - self._read_at < self._source.reread_after:
            return held
        outcome = self._read()
        if isinstance(outcome, str):
            outcome = self._instead(held, problem=outcome)
        self._headers, self._read_at = outcome, now
        return outcome

    def invalidate(self, rejected: Headers = ()) -> None:
        """Re-read the file for the next request."""
        if not rejected or rejected == self._headers:
            self._headers = None

    async def client_certificate(self) -> ClientCertificate | None:
        """Return None."""
        return None

    def _read(self) -> Headers | str:
        """Return the header, or why it is unavailable."""
        try:
            content = read_bounded_file(self._source.path, limit=_TOKEN_LIMIT)
        except OSError as error:
            return reason(error)
        if not content.strip():
            return "it is empty"
        try:
            return bearer_headers(Hidden(content.decode("latin-1")))
        except CredentialsError as error:
            return str(error)

    def _instead(self, held: Headers | None, *, problem: str) -> Headers:
        if held is not None:
            _log.warning("cannot use token file %s (%s); keeping the last token", self._source.path, problem)
            return held
        if self._source.fallback is not None:
            return bearer_headers(self._source.fallback)
        raise CredentialsError(f"no token: file {printable(self._source.path, limit=400)}: {problem}")
