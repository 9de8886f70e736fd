"""Whether the bearer of a token may read an endpoint, decided by the API server.

Guarantees
- Access requires two answers from the API server: the token's user (TokenReview), and that RBAC allows this user to
  ``get`` the path as a nonResourceURL (SubjectAccessReview).
- An answer is reused for a short time, so that not every scrape costs two requests. Only digests of tokens are kept.
- The number of concurrent reviews is bounded, and so is the number of requests that wait for one.
- Unknown tokens are reviewed at a bounded rate, for each address and in all. Beyond it the answer is 429, without a
  review: made-up tokens cannot load the API server through this program.
- Unknown tokens neither evict the answer for an allowed one nor delay its renewal.

This program needs permission to review: bind the ClusterRole ``system:auth-delegator`` to its ServiceAccount.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from typing import TypeAlias

import msgspec

from steersman.client import Client
from steersman.errors import ApiError, Forbidden
from steersman.kinds.authentication_v1 import TokenReview, TokenReviewSpec, UserInfo
from steersman.kinds.authorization_v1 import NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from steersman.objects import ObjectMeta
from steersman.transport import current_peer

_log = logging.getLogger("steersman.manager")

#: Seconds for which an answer is reused: a positive one, and a negative one.
ALLOWED_SECONDS = 30.0
REFUSED_SECONDS = 5.0
_REMEMBERED = 256
#: How many reviews run at once, and how many requests with unknown tokens may wait for one.
_AT_ONCE, _WAITING_MAX = 4, 64
#: Reviews of unknown tokens per second and at once: from one address, and in all.
_RATE, _BURST = 1.0, 10
_RATE_OF_ALL, _BURST_OF_ALL = 10.0, 50
_ADDRESSES_MAX = 1024


#: The digest of a token, and a path.
_Place: TypeAlias = tuple[bytes, str]


class Verdict(msgspec.Struct, frozen=True):
    """An HTTP status, and a message for a denied client."""

    status: int
    words: str = ""

    @property
    def allowed(self) -> bool:
        """Whether the path may be served."""
        return self.status == 200


class _Rate:
    """Takes so many per second, and so many at once."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._interval = 1.0 / per_second
        self._burst = burst
        self._full_at = 0.0

    def take(self, now: float) -> bool:
        """Take one; False if there are too many."""
        full_at = max(self._full_at, now) + self._interval
        if full_at - now > self._burst * self._interval:
            return False
        self._full_at = full_at
        return True


class Reviewer:
    """Reviews tokens with the rights of a client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        #: Turns for tokens that were allowed before, and for all others.
        self._known, self._unknown = asyncio.Semaphore(_AT_ONCE), asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0
        self._rate_of_all = _Rate(_RATE_OF_ALL, _BURST_OF_ALL)
        #: The rate of each address, the one used last at the end.
        self._rates: OrderedDict[str, _Rate] = OrderedDict()
        #: The verdict for each digest and path, and until when it is valid. Allowed ones are kept beyond that.
        self._allowed: OrderedDict[_Place, tuple[Verdict, float]] = OrderedDict()
        self._refused: OrderedDict[_Place, tuple[Verdict, float]] = OrderedDict()

    async def review(self, authorization: str | None, path: str) -> Verdict:
        """Whether the bearer of this ``Authorization`` header may get this path."""
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or not token.isascii():
            return Verdict(401, f"{path} requires a token: send Authorization: Bearer TOKEN")
        place = (hashlib.sha256(token.encode()).digest(), path)
        if (recalled := self._recall(place)) is not None:
            return recalled
        if place in self._allowed:
            async with self._known:
                return await self._reviewed(place, token, path)
        if not self._in_rate():
            return Verdict(429, "too many unknown tokens from this address, or in all; try again in a few seconds")
        if self._waiting >= _WAITING_MAX:
            return Verdict(503, "too many unknown tokens are being reviewed; try again")
        self._waiting += 1
        try:
            async with self._unknown:
                return await self._reviewed(place, token, path)
        finally:
            self._waiting -= 1

    def _in_rate(self) -> bool:
        """Whether one more unknown token may be reviewed now."""
        now, peer = asyncio.get_running_loop().time(), current_peer()
        address = peer.host if peer is not None else ""
        rate = self._rates.setdefault(address, _Rate(_RATE, _BURST))
        self._rates.move_to_end(address)
        if len(self._rates) > _ADDRESSES_MAX:
            self._rates.popitem(last=False)
        # that of the address first: a flood from one leaves the common rate to the others
        return rate.take(now) and self._rate_of_all.take(now)

    async def _reviewed(self, place: _Place, token: str, path: str) -> Verdict:
        # Another request may have reviewed the same token meanwhile.
        if (recalled := self._recall(place)) is not None:
            return recalled
        try:
            verdict = await self._ask(token, path)
        except ApiError as error:
            return _unable(error)
        self._remember(place, verdict)
        return verdict

    def _recall(self, place: _Place) -> Verdict | None:
        verdict, until = self._allowed.get(place) or self._refused.get(place, (None, 0.0))
        return verdict if asyncio.get_running_loop().time() < until else None

    def _remember(self, place: _Place, verdict: Verdict) -> None:
        kept, other, seconds = self._refused, self._allowed, REFUSED_SECONDS
        if verdict.allowed:
            kept, other, seconds = self._allowed, self._refused, ALLOWED_SECONDS
        other.pop(place, None)
        kept[place] = (verdict, asyncio.get_running_loop().time() + seconds)
        kept.move_to_end(place)
        while len(kept) > _REMEMBERED:
            kept.popitem(last=False)

    async def _ask(self, token: str, path: str) -> Verdict:
        review = await self._client.create(TokenReview(metadata=ObjectMeta(), spec=TokenReviewSpec(token=token)))
        status = review.status
        if status is None or not status.authenticated or status.user is None:
            return Verdict(401, "the API server does not recognize this token, or it has expired")
        user = status.user
        access = await self._client.create(SubjectAccessReview(metadata=ObjectMeta(), spec=_spec(user, path)))
        if access.status is not None and access.status.allowed:
            return Verdict(200)
        return Verdict(
            403,
            f"{user.username} may not get {path}: bind a ClusterRole with"
            f' rules: [{{nonResourceURLs: ["{path}"], verbs: ["get"]}}]',
        )


def _spec(user: UserInfo, path: str) -> SubjectAccessReviewSpec:
    return SubjectAccessReviewSpec(
        user=user.username,
        groups=user.groups,
        uid=user.uid,
        extra=user.extra,
        non_resource_attributes=NonResourceAttributes(path=path, verb="get"),
    )


def _unable(error: ApiError) -> Verdict:
    _log.warning("cannot review a token: %s", error)
    if isinstance(error, Forbidden):
        return Verdict(
            500, "this program may not review tokens: bind the ClusterRole system:auth-delegator to its ServiceAccount"
        )
    return Verdict(503, "the API server could not review the token; try again")
