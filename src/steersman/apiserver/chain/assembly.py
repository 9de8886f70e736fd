"""The handlers of the chain, in their order."""

from __future__ import annotations

from steersman.apiserver.chain.audit import Audit, AuditHook, AuthenticationAudit
from steersman.apiserver.chain.authentication import Authentication
from steersman.apiserver.chain.authorization import Authorization
from steersman.apiserver.chain.flow_classifier import FlowClassifier
from steersman.apiserver.chain.impersonation import ImpersonationHandler
from steersman.apiserver.chain.limits import RequestLimits
from steersman.apiserver.identity import Authorizer, always_allow
from steersman.apiserver.request import ChainHandler


def chain(
    *,
    authorizer: Authorizer = always_allow,
    authentication: Authentication | None = None,
    audit: AuditHook | None = None,
    limits: RequestLimits | None = None,
) -> list[ChainHandler]:
    """Limits, then the access handlers. Without an authorizer, every authenticated sender may do everything."""
    authentication = authentication or Authentication()
    limits = limits or RequestLimits()
    limits.sender = limits.sender or authentication.sender
    return [limits, *access_handlers(authorizer, authentication, audit)]


def access_handlers(
    authorizer: Authorizer,
    authentication: Authentication,
    audit: AuditHook | None,
    flow_classifier: FlowClassifier | None = None,
) -> list[ChainHandler]:
    """The handlers that decide about access, in their order.

    A program that sends requests to itself needs no others: limits would make it wait for itself.
    """
    handlers: list[ChainHandler] = [authentication]
    if audit is not None:
        handlers = [AuthenticationAudit(audit), authentication, Audit(audit)]
    flows = () if flow_classifier is None else (flow_classifier,)
    return [*handlers, ImpersonationHandler(authorizer), *flows, Authorization(authorizer)]
