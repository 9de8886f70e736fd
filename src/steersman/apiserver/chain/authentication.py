"""Authentication: who sends a request.

Guarantees
- A request that came over a port is from whoever its certificate or its token names, or it is refused with 401; only
  health and version are answered to anybody.
- A request from within this process is from the server's own administrator, unless it carries a token.
- Tokens are compared in constant time and never shown; those of service accounts end with what they are about.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from steersman.apiserver.chain.tokens import CREDENTIAL, NotAccepted
from steersman.apiserver.errors import unauthorized
from steersman.apiserver.peer import request_peer
from steersman.apiserver.request import IN_PROCESS, ChainHandler, Next, ServerRequest, User
from steersman.transport import ServerResponse

AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
ANONYMOUS = User(name="system:anonymous", groups=(UNAUTHENTICATED,))

_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
_BEARER = "bearer "


class Authentication:
    """A handler of the chain that finds out who sends a request: ``Authentication(tokens={"secret": User(...)})``."""

    def __init__(self, *, tokens: Mapping[str, User] | None = None) -> None:
        self._tokens = {_digest(token): _authenticated(user) for token, user in (tokens or {}).items()}

    async def __call__(self, request: ServerRequest, next_: Next) -> ServerResponse:
        """Pass a request on with its user; 401 if that is nobody."""
        request.user = self._known(request) or await _account(request)
        return await next_(request)

    def user_of_token(self, token: str) -> User | None:
        """Whose token it is, of those that were given; None if it is none of them."""
        digest = _digest(token)
        # Found by its digest, so that the time tells nothing about the token.
        found = self._tokens.get(digest)
        return found if found is not None and token else None

    def sender(self, request: ServerRequest) -> User:
        """Who sends a request, by its head alone; 401 if that is nobody. A service account may be gone already."""
        return self._known(request) or _claimed_account(request)

    def _known(self, request: ServerRequest) -> User | None:
        """Who sends a request; None if its token is to tell. 401 if it is nobody."""
        peer = request_peer()
        if peer is not None and peer.certificate:
            return user_of_certificate(peer.certificate)
        token = _bearer_token(request)
        if token:
            return self.user_of_token(token)
        if peer is None:
            return request.user
        if request.info.path in _OPEN_PATHS and request.wire.method in {"GET", "HEAD"}:
            return ANONYMOUS
        raise unauthorized()


def everybody_is(user: User = IN_PROCESS) -> ChainHandler:
    """A handler of the chain that takes every sender for one user: only for a port that nobody else can reach."""

    async def handler(request: ServerRequest, next_: Next) -> ServerResponse:
        request.user = user
        return await next_(request)

    return handler


def _claimed_account(request: ServerRequest) -> User:
    """Whose token a request carries, as far as the token itself says."""
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
    # A token within this process may be any string, half a character too.
    return hmac.digest(b"steersman", token.encode("utf-8", "surrogatepass"), "sha256")


def _authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups:
        return user
    return msgspec.structs.replace(user, groups=(*user.groups, AUTHENTICATED))


@lru_cache(maxsize=256)
def user_of_certificate(certificate: bytes) -> User:
    """Who a certificate (DER) names: its common name, a member of its organizations. It was verified before."""
    from cryptography import x509  # noqa: PLC0415 - an extra, and only servers with certificates need it
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    subject = x509.load_der_x509_certificate(certificate).subject
    names = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if not names:
        raise unauthorized()
    groups = tuple(str(each.value) for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    fingerprint = hashlib.sha256(certificate).hexdigest()
    return _authenticated(
        User(name=names[0], groups=groups, extra={CREDENTIAL: (f"X509SHA256={fingerprint}",)}),
    )
