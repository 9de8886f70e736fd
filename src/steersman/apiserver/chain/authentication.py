"""Authentication: who sends a request.

Guarantees
- The sender of a request over a port is the user of its certificate or its token. Otherwise the answer is 401; only
  health and version are open.
- The sender of a request within this process is the server's own administrator, unless it carries a token.
- A certificate ends at its time, also on an open connection and in a resumed TLS session.
- Tokens are compared in constant time and never shown. Those of service accounts end with the object they are bound to.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

import msgspec

from steersman.aio import utc_now
from steersman.apiserver.errors import unauthorized
from steersman.apiserver.identity import IN_PROCESS, User, request_peer
from steersman.apiserver.identity.account_tokens import CREDENTIAL, NotAccepted
from steersman.apiserver.request import ChainHandler, NextHandler, ServerRequest
from steersman.transport import ServerResponse

AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
ANONYMOUS = User(name="system:anonymous", groups=(UNAUTHENTICATED,))

_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
_BEARER = "bearer "


class Authentication:
    """A handler of the chain that authenticates senders: ``Authentication(tokens={"secret": User(...)})``."""

    def __init__(self, *, tokens: Mapping[str, User] | None = None) -> None:
        self._tokens = {_digest(token): _authenticated(user) for token, user in (tokens or {}).items()}

    def add_token(self, token: str, user: User) -> None:
        """Accept another token."""
        self._tokens[_digest(token)] = _authenticated(user)

    async def __call__(self, request: ServerRequest, next_: NextHandler) -> ServerResponse:
        """Pass a request on with its user; 401 if the user is unknown."""
        request.user = self._known(request) or await _account(request)
        return await next_(request)

    def user_of_token(self, token: str) -> User | None:
        """The user of a configured token; None for any other token."""
        digest = _digest(token)
        # Found by its digest, so that timing reveals nothing about the token.
        found = self._tokens.get(digest)
        return found if found is not None and token else None

    def sender(self, request: ServerRequest) -> User:
        """The sender of a request, by its headers alone; 401 if unknown. A service account may already be deleted."""
        return self._known(request) or _claimed_account(request)

    def _known(self, request: ServerRequest) -> User | None:
        """The sender of a request; None if its token decides. 401 if unknown."""
        peer = request_peer()
        token = _bearer_token(request)
        if peer is not None and peer.certificate:
            if utc_now() <= certificate_end(peer.certificate):
                return user_of_certificate(peer.certificate)
            if not token:
                raise unauthorized()
        if token:
            return self.user_of_token(token)
        if peer is None:
            return request.user
        if request.info.path in _OPEN_PATHS and request.wire.method in {"GET", "HEAD"}:
            return ANONYMOUS
        raise unauthorized()


def single_user(user: User = IN_PROCESS) -> ChainHandler:
    """A handler of the chain that treats every sender as one user. Use it only for a port that no one else can reach."""

    async def handler(request: ServerRequest, next_: NextHandler) -> ServerResponse:
        request.user = user
        return await next_(request)

    return handler


def _claimed_account(request: ServerRequest) -> User:
    """The service account that a request's token claims."""
    if request.accounts is None:
        raise unauthorized()
    try:
        return request.accounts.read(_bearer_token(request)).claims.user
    except NotAccepted:
        raise unauthorized() from None


async def _account(request: ServerRequest) -> User:
    """The service account whose token a request carries."""
    if request.accounts is None:
        raise unauthorized()
    try:
        return (await request.accounts.review(_bearer_token(request))).claims.user
    except NotAccepted:
        raise unauthorized() from None


def _bearer_token(request: ServerRequest) -> str:
    header = (request.wire.header("Authorization") or "").strip()
    return header[len(_BEARER) :].strip() if header[: len(_BEARER)].lower() == _BEARER else ""


def _digest(token: str) -> bytes:
    # A token within this process may be any string, even half a surrogate pair.
    return hmac.digest(b"steersman", token.encode("utf-8", "surrogatepass"), "sha256")


def _authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups:
        return user
    return msgspec.structs.replace(user, groups=(*user.groups, AUTHENTICATED))


@lru_cache(maxsize=256)
def certificate_end(certificate: bytes) -> datetime:
    """When a certificate (DER) expires. TLS checks it only in a full handshake."""
    from cryptography import x509  # noqa: PLC0415 - an extra, and only servers with certificates need it

    return x509.load_der_x509_certificate(certificate).not_valid_after_utc


@lru_cache(maxsize=256)
def user_of_certificate(certificate: bytes) -> User:
    """The user of a verified certificate (DER): its common name, with its organizations as groups."""
    from cryptography import x509  # noqa: PLC0415 - an extra, and only servers with certificates need it
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    subject = x509.load_der_x509_certificate(certificate).subject
    names = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if not names:
        raise unauthorized()
    groups = tuple(str(each.value) for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    fingerprint = hashlib.sha256(certificate).hexdigest()
    return _authenticated(User(name=names[0], groups=groups, extra={CREDENTIAL: (f"X509SHA256={fingerprint}",)}))
