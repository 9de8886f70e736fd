"""Authorization: whether a user may do what a request asks for.

Guarantees
- Nothing happens before it is allowed; a rejection is a 403 with kube-apiserver's message.
- An authorizer is a function of `Access` alone, so a request, an impersonation and a review get the same answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from steersman.apiserver.errors import Named, Refused, forbidden
from steersman.apiserver.request import Next, RequestInfo, ServerRequest, User
from steersman.transport import ServerResponse

#: The verbs of rules; any other method on a resource is none of them.
_VERBS = frozenset({"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"})
NO_SNIFFING = (("X-Content-Type-Options", "nosniff"),)

DECISION, REASON = "authorization.k8s.io/decision", "authorization.k8s.io/reason"


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """A verb on a resource, or on a path: what an authorizer decides about.

    The verb is RBAC's: get, list, watch, create, update, patch, delete, deletecollection; impersonate for the sender of
    an impersonated request; escalate and bind for writers of roles and bindings. On a path it is the method in lower
    case. An empty ``namespace`` means the whole cluster, an empty ``name`` any name.
    """

    user: User
    verb: str
    is_resource: bool = True
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    def __str__(self) -> str:
        """The text of a rejection."""
        if not self.is_resource:
            return f'User "{self.user.name}" cannot {self.verb} path "{self.path}"'
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return f'User "{self.user.name}" cannot {self.verb} resource "{resource}" in API group "{self.group}" {where}'


class Decision(msgspec.Struct, frozen=True):
    """Whether it is allowed, and the reason: ``Decision(allowed=False, reason="only kim may")``."""

    allowed: bool
    reason: str = ""


#: Decides: ``async def only_reading(access: Access) -> Decision``.
Authorizer: TypeAlias = Callable[[Access], Awaitable[Decision]]


async def always_allow(access: Access) -> Decision:
    """An authorizer that allows everything."""
    del access
    return Decision(allowed=True)


def access_of(user: User, info: RequestInfo) -> Access:
    """The access that a request asks for."""
    if not info.is_resource:
        return Access(user=user, verb=info.verb, is_resource=False, path=info.path)
    return Access(
        user=user,
        verb=info.verb if info.verb in _VERBS else "",
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        namespace=info.namespace,
        name=info.name,
        path=info.path,
    )


def refused(access: Access, reason: str = "") -> Refused:
    """The answer to a denied access."""
    why = f"{access}: {reason}" if reason else str(access)
    named = Named(access.group, access.resource) if access.is_resource else None
    return Refused(forbidden(named, access.name, why).status, NO_SNIFFING)


class Authorization:
    """A handler of the chain that passes on only requests that an authorizer allows."""

    def __init__(self, authorizer: Authorizer = always_allow) -> None:
        self._authorizer = authorizer

    async def __call__(self, request: ServerRequest, next_: Next) -> ServerResponse:
        """Pass on an allowed request; 403 otherwise."""
        access = access_of(request.user, request.info)
        decision = await self._authorizer(access)
        request.annotations[DECISION] = "allow" if decision.allowed else "forbid"
        request.annotations[REASON] = decision.reason
        if not decision.allowed:
            raise refused(access, decision.reason)

        async def authorize(verb: str) -> None:
            other = msgspec.structs.replace(access, verb=verb)
            decided = await self._authorizer(other)
            if not decided.allowed:
                raise refused(other, decided.reason)

        request.authorize = authorize
        request.authorizer = self._authorizer
        return await next_(request)
