"""Service account tokens: signed by this server, and valid while the objects they are bound to exist.

Guarantees
- A token is accepted only if this server, or an earlier one on the same store, signed it.
- It is accepted only for its audiences, within its lifetime, and only while its service account, and the object that it
  is bound to, are the ones it was made for. Nothing is cached: deleting the object ends its tokens at once.
- The key is created with the first token and kept in the store under a name that no resource has. Neither the key nor a
  token is ever part of a message.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from steersman.aio import randomness, utc_now
from steersman.apiserver.identity.signing_key import KEY_BYTES, SigningKey, decoded
from steersman.apiserver.identity.user import User
from steersman.apiserver.storage import Mismatch, Record, Storage
from steersman.objects import parse_time

#: The issuer of tokens, and their default audience.
ISSUER = AUDIENCE = "https://kubernetes.default.svc"
#: The id of a token in audit events, in the extra values of its user.
CREDENTIAL = "authentication.kubernetes.io/credential-id"

#: Allowed clock skew, and how long a marked deletion may last before it counts, in seconds.
_LEEWAY = 60
_KEY = ".server/tokens/key"
_EXTRA = "authentication.kubernetes.io/"
_FORGED = "go-jose/go-jose: error in cryptographic primitive"
_INVALIDATED = "service account token has been invalidated"


class Claimed(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object that a token is bound to."""

    name: str
    uid: str = ""


class Subject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The Kubernetes claims of a token."""

    namespace: str
    serviceaccount: Claimed
    pod: Claimed | None = None
    secret: Claimed | None = None
    node: Claimed | None = None
    #: When it should have been renewed, though it is still valid.
    warnafter: int | None = None


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a token; times are seconds since 1970."""

    aud: tuple[str, ...]
    exp: int
    iat: int
    iss: str = ISSUER
    jti: str
    subject: Subject = msgspec.field(name="kubernetes.io")
    nbf: int
    sub: str

    @property
    def credential(self) -> str:
        """The id of this token, which does not reveal it."""
        return f"JTI={self.jti}"

    @property
    def user(self) -> User:
        """The user of the token."""
        about = self.subject
        extra = {CREDENTIAL: (self.credential,)}
        for kind, claimed in (("node", about.node), ("pod", about.pod)):
            if claimed is not None:
                extra[f"{_EXTRA}{kind}-name"] = (claimed.name,)
                if claimed.uid:
                    extra[f"{_EXTRA}{kind}-uid"] = (claimed.uid,)
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{about.namespace}", "system:authenticated")
        return User(name=self.sub, uid=about.serviceaccount.uid, groups=groups, extra=extra)


class NotAccepted(Exception):
    """A token is rejected; holds kube-apiserver's reason, if it has one beyond an unknown user."""


class Reviewed(NamedTuple):
    """An accepted token: its claims, and the matching audiences."""

    claims: Claims
    audiences: list[str]


_decode_claims = msgspec.json.Decoder(Claims).decode


class AccountTokens:
    """Signs and reviews the tokens of a server's service accounts."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._key: SigningKey | None = None

    async def load(self) -> None:
        """Load the key that signed earlier tokens, if any."""
        record, _ = await self._storage.get(_KEY)
        if record is not None:
            self._key = SigningKey(record.value)

    async def sign(self, claims: Claims) -> str:
        """The token with these claims."""
        return (await self.key()).signed(msgspec.json.encode(claims))

    async def key(self) -> SigningKey:
        """The key that signs tokens, created on first use."""
        if self._key is None:
            await self._make_key()
        assert self._key is not None
        return self._key

    def read(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> Reviewed:
        """The claims of a token, without checking that its objects exist."""
        claims = self._claims(token)
        found = [audience for audience in audiences if audience in claims.aud]
        if not found:
            what = f"token audiences {_go_list(claims.aud)} is invalid for the target audiences {_go_list(audiences)}"
            raise NotAccepted(what)
        moment = utc_now().timestamp()
        if moment - _LEEWAY > claims.exp:
            raise NotAccepted("service account token has expired")
        if moment + _LEEWAY < claims.nbf:
            raise NotAccepted("service account token is not valid yet")
        return Reviewed(claims, found)

    async def review(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> Reviewed:
        """The claims of a token that is valid now."""
        reviewed = self.read(token, audiences)
        about = reviewed.claims.subject
        account, namespace = about.serviceaccount, about.namespace
        record, _ = await self._storage.get(f"core/serviceaccounts/{namespace}/{account.name}")
        if record is None:
            raise NotAccepted(f'serviceaccounts "{account.name}" not found')
        uid, is_gone = _life(record)
        if uid != account.uid:
            raise NotAccepted(f"service account UID ({uid}) does not match claim ({account.uid})")
        if is_gone:
            raise NotAccepted(f"service account {namespace}/{account.name} has been deleted")
        await self._check_bound("secret", about.secret, f"secrets/{namespace}/")
        await self._check_bound("pod", about.pod, f"pods/{namespace}/")
        if about.pod is None:
            await self._check_bound("node", about.node, "nodes/")
        return reviewed

    async def _check_bound(self, kind: str, claimed: Claimed | None, prefix: str) -> None:
        if claimed is None:
            return
        record, _ = await self._storage.get(f"core/{prefix}{claimed.name}")
        uid, is_gone = _life(record) if record is not None else ("", True)
        if record is not None and uid != claimed.uid:
            raise NotAccepted(f"{kind} UID ({uid}) does not match service account {kind} ref claim ({claimed.uid})")
        if is_gone:
            raise NotAccepted(_INVALIDATED)

    async def _make_key(self) -> None:
        # On an unbound loop, this is the system's randomness, fit for secrets.
        key = randomness().randbytes(KEY_BYTES)
        with contextlib.suppress(Mismatch):
            await self._storage.put(_KEY, key, expect=0)
        # Another server on the same store may have been faster.
        await self.load()

    def _claims(self, token: str) -> Claims:
        given = token.encode("utf-8", "surrogatepass")
        if self._key is None or not self._key.has_signed(given):
            raise NotAccepted(_FORGED) if _seems_ours(given) else NotAccepted
        return _decode_claims(decoded(given.split(b".")[1]))


def _seems_ours(token: bytes) -> bool:
    """Whether a foreign token has the form of one of ours: only then its signature is reported."""
    try:
        header, claims, _ = (decoded(part) for part in token.split(b"."))
        trees: list[Any] = [msgspec.json.decode(header), msgspec.json.decode(claims)]
    except (ValueError, msgspec.DecodeError, RecursionError):
        return False
    return all(isinstance(tree, dict) for tree in trees) and trees[1].get("iss") == ISSUER


class _Metadata(msgspec.Struct):
    uid: str = ""
    deletion: str = msgspec.field(default="", name="deletionTimestamp")


class _Object(msgspec.Struct):
    metadata: _Metadata


_decode_object = msgspec.json.Decoder(_Object).decode


def _life(record: Record) -> tuple[str, bool]:
    """The uid of an object, and whether it has been terminating for so long that it counts as gone."""
    metadata = _decode_object(record.value).metadata
    if not metadata.deletion:
        return metadata.uid, False
    return metadata.uid, parse_time(metadata.deletion).timestamp() < utc_now().timestamp() - _LEEWAY


def _go_list(texts: Sequence[str]) -> str:
    return f"[{' '.join(json.dumps(text, ensure_ascii=False) for text in texts)}]"
