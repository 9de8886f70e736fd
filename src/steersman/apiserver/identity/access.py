"""Access: the question that an authorizer decides, and its decision."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from steersman.apiserver.identity.user import User


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
