"""The chain: what every request passes before it is answered, one handler each.

The order is that of the engine: limits, authentication, audit, impersonation, authorization; then the server routes it.
An `ApiServer` puts them together by itself; `chain` does it for those who want other ones between them.
"""

from __future__ import annotations

from steersman.apiserver.chain.audit import Audit, AuditFile, AuditHook
from steersman.apiserver.chain.authentication import Authentication, everybody_is
from steersman.apiserver.chain.authorization import Access, Authorization, Authorizer, Decision, always_allow
from steersman.apiserver.chain.impersonation import Impersonation
from steersman.apiserver.chain.limits import RequestLimits
from steersman.apiserver.chain.rbac import Rbac
from steersman.apiserver.chain.rbac_policy import create_policy
from steersman.apiserver.chain.reviews import Reviews
from steersman.apiserver.request import ChainHandler

__all__ = [
    "Access",
    "Audit",
    "AuditFile",
    "AuditHook",
    "Authentication",
    "Authorization",
    "Authorizer",
    "Decision",
    "Impersonation",
    "Rbac",
    "RequestLimits",
    "Reviews",
    "always_allow",
    "chain",
    "create_policy",
    "everybody_is",
    "unlimited",
]


def chain(
    *,
    authorizer: Authorizer = always_allow,
    authentication: Authentication | None = None,
    audit: AuditHook | None = None,
    limits: RequestLimits | None = None,
) -> list[ChainHandler]:
    """The handlers in their order; without an authorizer everything is allowed to whoever is somebody."""
    return [limits or RequestLimits(), *unlimited(authorizer, authentication or Authentication(), audit)]


def unlimited(authorizer: Authorizer, authentication: Authentication, audit: AuditHook | None) -> list[ChainHandler]:
    """The handlers in their order but the limits: a program that sends itself requests waits for itself alone."""
    handlers: list[ChainHandler] = [authentication]
    if audit is not None:
        handlers.append(Audit(audit))
    return [*handlers, Impersonation(authorizer), Authorization(authorizer)]
