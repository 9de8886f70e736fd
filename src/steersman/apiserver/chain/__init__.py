"""The chain: handlers that process every request before the server routes it.

The order is that of the engine: limits, authentication, audit, impersonation, flow control, authorization. An
`ApiServer` assembles the chain itself; use `chain` to add your own handlers.
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
from steersman.apiserver.chain.flow_control import FlowControl as FlowControl
from steersman.apiserver.chain.impersonation import ImpersonationHandler as ImpersonationHandler
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


def unlimited(
    authorizer: Authorizer,
    authentication: Authentication,
    audit: AuditHook | None,
    flow_control: FlowControl | None = None,
) -> list[ChainHandler]:
    """The handlers in their order, without limits: a program that sends requests to itself waits only for itself."""
    handlers: list[ChainHandler] = [authentication]
    if audit is not None:
        handlers = [AuthenticationAudit(audit), authentication, Audit(audit)]
    flows = () if flow_control is None else (flow_control,)
    return [*handlers, ImpersonationHandler(authorizer), *flows, Authorization(authorizer)]
