"""Authorization: whether a user may do what a request asks for.

Guarantees
- Nothing happens before it is allowed; a rejection is a 403 with kube-apiserver's message.
- An authorizer is a function of `Access` alone, so a request, an impersonation and a review get the same answer.
"""

from __future__ import annotations

import msgspec

from steersman.apiserver.errors import Named, RequestRejected, forbidden
from steersman.apiserver.identity import Access, Authorizer, always_allow
from steersman.apiserver.request import NextHandler, ServerRequest, access_of
from steersman.transport import ServerResponse

NO_SNIFFING = (("X-Content-Type-Options", "nosniff"),)

DECISION, REASON = "authorization.k8s.io/decision", "authorization.k8s.io/reason"


def refused(access: Access, reason: str = "") -> RequestRejected:
    """The answer to a denied access."""
    why = f"{access}: {reason}" if reason else str(access)
    named = Named(access.group, access.resource) if access.is_resource else None
    return forbidden(named, access.name, why).with_headers(*NO_SNIFFING)


class Authorization:
    """A handler of the chain that passes on only requests that an authorizer allows."""

    def __init__(self, authorizer: Authorizer = always_allow) -> None:
        self._authorizer = authorizer

    async def __call__(self, request: ServerRequest, next_: NextHandler) -> ServerResponse:
        """Pass on an allowed request; 403 otherwise."""
        access = access_of(request.user, request.info)
        decision = await self._authorizer(access)
        request.annotations[DECISION] = "allow" if decision.allowed else "forbid"
        request.annotations[REASON] = decision.reason
        if not decision.allowed:
            raise refused(access, decision.reason)

        # For a verb that turns out to be another: a PUT that creates.
        async def authorize(verb: str) -> None:
            other = msgspec.structs.replace(access, verb=verb)
            decided = await self._authorizer(other)
            if not decided.allowed:
                raise refused(other, decided.reason)

        request.authorize = authorize
        request.authorizer = self._authorizer
        return await next_(request)
