"""The chain: handlers that every request passes before it is answered.

The order is the engine's: limits, authentication, audit, impersonation, authorization; then the server routes the
request. An `ApiServer` assembles the chain itself; use `chain` to add your own handlers.
"""

from __future__ import annotations

from steersman.apiserver.chain.audit import (
    Audit as Audit,
    AuditFile as AuditFile,
    AuditHook as AuditHook,
    AuthenticationAudit as AuthenticationAudit,
)
from steersman.apiserver.chain.authentication import Authentication as Authentication, everybody_is as everybody_is
from steersman.apiserver.chain.authorization import Authorization as Authorization
from steersman.apiserver.chain.impersonation import Impersonation as Impersonation
from steersman.apiserver.chain.limits import RequestLimits as RequestLimits
from steersman.apiserver.chain.rbac import Rbac as Rbac
from steersman.apiserver.chain.reviews import Reviews as Reviews
from steersman.apiserver.identity import (
    Access as Access,
    Authorizer as Authorizer,
    Decision as Decision,
    always_allow as always_allow,
)
from steersman.apiserver.request import ChainHandler


def chain(
    *,
    authorizer: Authorizer = always_allow,
    authentication: Authentication | None = None,
    audit: AuditHook | None = None,
    limits: RequestLimits | None = None,
) -> list[ChainHandler]:
    """The handlers in their order. Without an authorizer, every authenticated sender may do everything."""
    authentication = authentication or Authentication()
    limits = limits or RequestLimits()
    limits.sender = limits.sender or authentication.sender
    return [limits, *unlimited(authorizer, authentication, audit)]


def unlimited(authorizer: Authorizer, authentication: Authentication, audit: AuditHook | None) -> list[ChainHandler]:
    """The handlers in their order, without limits: a program that sends requests to itself waits only for itself."""
    handlers: list[ChainHandler] = [authentication]
    if audit is not None:
        handlers = [AuthenticationAudit(audit), authentication, Audit(audit)]
    return [*handlers, Impersonation(authorizer), Authorization(authorizer)]
