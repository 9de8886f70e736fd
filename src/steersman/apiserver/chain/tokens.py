"""Tokens of service accounts: signed by this server, and good for as long as what they are about is there.

Guarantees
- A token is accepted only if this server, or one before it on the same store, has signed it: its whole text is compared
  with what would have been signed, in constant time, and what it says of its own algorithm counts for nothing.
- It is accepted only for its audiences and in its time, and only while its service account, and the object that it is
  bound to, are the ones for which it was made. Nothing of that is remembered: what is deleted ends its tokens at once.
- The key is made when the first token is, and is kept in the store under a name that no resource has. Neither it nor a
  token is ever part of a message.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from steersman.aio import now, randomness
from steersman.apiserver.request import User
from steersman.apiserver.storage import Mismatch, Record, Storage
from steersman.objects import parse_time

#: Who signs tokens, and for whom unless somebody else is named.
ISSUER = AUDIENCE = "https://kubernetes.default.svc"
#: What identifies a token to an audit, in the extra values of its user.
CREDENTIAL = "authentication.kubernetes.io/credential-id"

#: Seconds by which clocks may differ, and a deletion may be marked, before it counts.
_LEEWAY = 60
_KEY = ".server/tokens/key"
_EXTRA = "authentication.kubernetes.io/"
_FORGED = "go-jose/go-jose: error in cryptographic primitive"
_INVALIDATED = "service account token has been invalidated"


class Claimed(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object that a token is about."""

    name: str
    uid: str = ""


class Subject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a token says in Kubernetes' words."""

    namespace: str
    serviceaccount: Claimed
    pod: Claimed | None = None
    secret: Claimed | None = None
    node: Claimed | None = None
    #: From when on it should no longer be used, though it could.
    warnafter: int | None = None


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What a token says; times are seconds since 1970."""

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
        """What names this token without showing it."""
        return f"JTI={self.jti}"

    @property
    def user(self) -> User:
        """Whose token it is."""
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
    """A token is not accepted; says why, in kube-apiserver's words, if that is more than that it is nobody's."""


class Reviewed(NamedTuple):
    """A token that is accepted: what it says, and for which of the audiences that were asked for."""

    claims: Claims
    audiences: list[str]


_decode_claims = msgspec.json.Decoder(Claims).decode
_HEADER = base64.urlsafe_b64encode(b'{"alg":"HS256"}').rstrip(b"=") + b"."


class AccountTokens:
    """Signs and reviews the tokens of a server's service accounts."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._key = b""

    async def load(self) -> None:
        """Find the key with which tokens were signed before, if any were."""
        record, _ = await self._storage.get(_KEY)
        if record is not None:
            self._key = record.value

    async def sign(self, claims: Claims) -> str:
        """The token that says this."""
        if not self._key:
            await self._make_key()
        return self._signed(_HEADER + _encoded(msgspec.json.encode(claims))).decode()

    def read(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> Reviewed:
        """What a token says, by itself: whether what it is about is there is not looked at."""
        claims = self._claims(token)
        found = [each for each in audiences if each in claims.aud]
        if not found:
            what = f"token audiences {_go_list(claims.aud)} is invalid for the target audiences {_go_list(audiences)}"
            raise NotAccepted(what)
        moment = now().timestamp()
        if moment - _LEEWAY > claims.exp:
            raise NotAccepted("service account token has expired")
        if moment + _LEEWAY < claims.nbf:
            raise NotAccepted("service account token is not valid yet")
        return Reviewed(claims, found)

    async def review(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> Reviewed:
        """What a token says, if it is to be believed now."""
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
        # Of a loop that nobody has bound, these are the system's own, fit for secrets.
        key = randomness().randbytes(hashlib.sha256().block_size)
        with contextlib.suppress(Mismatch):
            await self._storage.put(_KEY, key, expect=0)
        # Somebody else may have been faster.
        await self.load()

    def _signed(self, text: bytes) -> bytes:
        return text + b"." + _encoded(hmac.digest(self._key, text, "sha256"))

    def _claims(self, token: str) -> Claims:
        given = token.encode("utf-8", "surrogatepass")
        text = given.rpartition(b".")[0]
        if not self._key or not hmac.compare_digest(self._signed(text), given):
            raise NotAccepted(_FORGED) if _seems_ours(given) else NotAccepted
        return _decode_claims(_decoded(text.rpartition(b".")[2]))


def _encoded(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")


def _decoded(text: bytes) -> bytes:
    if b"=" in text:
        raise ValueError("padded")
    return base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _seems_ours(token: bytes) -> bool:
    """Whether a token that is not ours has the form of one: only then there is something to say of its signature."""
    try:
        header, claims, _ = (_decoded(part) for part in token.split(b"."))
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
    """The uid of an object, and whether it has been going away for so long that it counts as gone."""
    metadata = _decode_object(record.value).metadata
    if not metadata.deletion:
        return metadata.uid, False
    return metadata.uid, parse_time(metadata.deletion).timestamp() < now().timestamp() - _LEEWAY


def _go_list(texts: Sequence[str]) -> str:
    return f"[{' '.join(json.dumps(text, ensure_ascii=False) for text in texts)}]"
