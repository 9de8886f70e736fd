"""Whether the bearer of a token may read an endpoint, decided by the API server.

Guarantees
- Access requires two answers from the API server: the token's user (TokenReview), and that RBAC allows this user to
  ``get`` the path as a nonResourceURL (SubjectAccessReview).
- An answer is reused for a short time, so that not every scrape costs two requests. Only digests of tokens are kept.
- The number of concurrent reviews is bounded.

This program needs permission to review: bind the ClusterRole ``system:auth-delegator`` to its ServiceAccount.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict

import msgspec

from steersman.client import Client
from steersman.errors import ApiError, Forbidden
from steersman.kinds.authentication_v1 import TokenReview, TokenReviewSpec, UserInfo
from steersman.kinds.authorization_v1 import NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from steersman.objects import ObjectMeta

_log = logging.getLogger("steersman.manager")

#: Seconds for which an answer is reused: a positive one, and a negative one.
ALLOWED_SECONDS = 30.0
REFUSED_SECONDS = 5.0
_REMEMBERED = 256
_AT_ONCE = 4


class Verdict(msgspec.Struct, frozen=True):
    """An HTTP status, and a message for a denied client."""

    status: int
    words: str = ""

    @property
    def allowed(self) -> bool:
        """Whether the path may be served."""
        return self.status == 200


class Reviewer:
    """Reviews tokens with the rights of a client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        #: The verdict for each digest and path, and until when it is valid.
        self._remembered: OrderedDict[tuple[bytes, str], tuple[Verdict, float]] = OrderedDict()

    async def review(self, authorization: str | None, path: str) -> Verdict:
        """Whether the bearer of this ``Authorization`` header may get this path."""
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return Verdict(401, f"{path} requires a token: send Authorization: Bearer TOKEN")
        place = (hashlib.sha256(token.encode()).digest(), path)
        if (known := self._recall(place)) is not None:
            return known
        async with self._at_once:
            # Another request may have reviewed the same token meanwhile.
            if (known := self._recall(place)) is not None:
                return known
            try:
                verdict = await self._ask(token, path)
            except ApiError as error:
                return _unable(error)
        self._remember(place, verdict)
        return verdict

    def _recall(self, place: tuple[bytes, str]) -> Verdict | None:
        verdict, until = self._remembered.get(place, (None, 0.0))
        return verdict if asyncio.get_running_loop().time() < until else None

    def _remember(self, place: tuple[bytes, str], verdict: Verdict) -> None:
        seconds = ALLOWED_SECONDS if verdict.allowed else REFUSED_SECONDS
        self._remembered[place] = (verdict, asyncio.get_running_loop().time() + seconds)
        self._remembered.move_to_end(place)
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)

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
            500,
            "this program may not review tokens: bind the ClusterRole system:auth-delegator to its ServiceAccount",
        )
    return Verdict(503, "the API server could not review the token; try again")
